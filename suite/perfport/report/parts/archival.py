"""Devices of the literature beside what was measured: their bounds, and the best that was published for them."""

from __future__ import annotations

from collections.abc import Sequence

from ...machine.device_profile import DeviceProfile, all_profiles
from ...measure.roofline import datasheet_ceilings, published_ceilings
from .ladder import Ladder, ModelledBound
from .markdown import NONE, code, details, join, table, text
from .quantities import ceiling, percent, significant

NOTE = (
    "**Archival devices**: the problem bound that their datasheets give at {setting}, and with the ceilings that "
    "others measured on such boards and published in place of the datasheet's; the best published result. The modelled "
    "share is one of the datasheet's bound."
)


def archival_table(ladders: Sequence[Ladder]) -> str:
    """Return what each device of the literature could do at this setting, and the best that was published for it.

    The setting is that of the first GPU, if there is one: devices of the literature are GPUs.
    """
    ladder = min((ladder for ladder in ladders if ladder.measured), key=lambda ladder: ladder.merged, default=None)
    metric = next((row.record.metric for row in ladder.measured if row.record.metric), None) if ladder else None
    if metric is None or ladder is None:
        return ""
    listed: list[list[str]] = []
    sources: list[str] = []
    for profile in all_profiles().values():
        bound = ladder.bound_under(datasheet_ceilings(profile)) if profile.status == "archival" else None
        if bound is None:
            continue
        best_known = ladder.bound_under(published_ceilings(profile)) if profile.published else None
        sources += [_source(profile, name) for name in _published_terms(profile, best_known)]
        listed.append([
            text(profile.title), significant(bound.metric), code(bound.binding),
            significant(best_known.metric) if best_known else NONE,
            f"{code(best_known.binding)} ({_origin(profile, best_known)})" if best_known else NONE,
            *_results(ladder, profile, metric.unit, bound),
        ])  # fmt: skip
    if not listed:
        return ""
    unit = text(metric.unit)
    headers = [
        "archival device", f"bound, {unit} (modelled: datasheet)", "bound by, datasheet",
        f"bound, {unit} (modelled: published ceilings)", "bound by, published ceilings",
        "best variant (published)", f"{unit} (published)", "share, published", "share, modelled",
        f"best on {code(ladder.site)} over the datasheet's bound",
    ]  # fmt: skip
    folded = [details("published ceilings that bind, and their sources", "\n".join(sources))] if sources else []
    note = NOTE.format(setting=text(ladder.setting, 80))
    return join([note, table(headers, listed, "lrlrllrrrr"), *folded])


def _results(ladder: Ladder, profile: DeviceProfile, unit: str, bound: ModelledBound) -> list[str]:
    """Return the cells of the best that was published on a device, and of the best here over its bound."""
    stated = [f for f in ladder.published if f.title == profile.title and f.unit == unit and f.share]
    best = max(stated, key=lambda figure: figure.share or 0.0, default=None)
    here = ladder.best.record.metric if ladder.best else None
    published = [NONE] * 4
    if best:
        published = [code(best.variant), significant(best.value), percent(best.stated_share), percent(best.share)]
    return [*published, significant(here.value / bound.metric) if here and bound.metric else NONE]


def _published_terms(profile: DeviceProfile, bound: ModelledBound | None) -> list[str]:
    """Return the published ceilings that the binding term of a bound is made of; empty where it is the datasheet's."""
    return [name for name in _made_of(bound) if name in profile.published] if bound else []


def _made_of(bound: ModelledBound) -> tuple[str, ...]:
    return ("dram_read", "dram_copy") if bound.binding == "dram" else (bound.binding,)


def _origin(profile: DeviceProfile, bound: ModelledBound) -> str:
    """Return where the binding term comes from. Without a published copy ceiling writes go as fast as reads."""
    if _made_of(bound)[0] in profile.published:
        return "published"
    return "partly published" if _published_terms(profile, bound) else "datasheet"


def _source(profile: DeviceProfile, name: str) -> str:
    """Return a published ceiling of a device with its board and source, as an item of a list."""
    entry = profile.measured[name]
    where = f"{text(entry.board)}; {text(profile.sources[entry.source])}"
    return f"- {text(profile.title)}, {code(name)}: {ceiling(entry.value, entry.unit)} on {where}"
