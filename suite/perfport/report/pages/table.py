"""Comparison tables: variant by device, measured beside what was published for devices of the literature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from ...judge.frames import SCHEMA, Results
from ...judge.headline import amount
from ...judge.predict import Device, Predictor
from ...store.collection import Collection
from ...store.comparable import is_peer
from ...store.ratios import is_measured
from ..parts.archival import archival_table
from ..parts.ladder import Ladder, collected
from ..parts.markdown import code, join, text
from ..parts.material import headline
from ..parts.plots import Plot
from ..parts.points import Series, dots
from ..parts.summary import best_tables
from ..parts.tables import device_comparison, problem_facts, published_table
from ..parts.view import View, plain_rows
from .predict import beside, device_rows

#: Settings of one problem that a page shows in full; of more, the largest.
MOST_SETTINGS = 4


def view(collection: Collection, modelled: tuple[Predictor, Sequence[Device]] | None = None) -> View:
    """Return every setting of every problem: best variants, then variant by device.

    Parameters
    ----------
    collection : Collection
    modelled : tuple of Predictor and sequence of Device, optional
        What adds a column for each of some devices, measured, published or modelled.
    """
    ladders = collected(collection)
    first = headline(collection, ladders)
    blocks = ["# Comparison of variants and devices", best_tables(ladders)]
    for _, same in groupby(ladders, key=_problem):
        problem = list(same)
        blocks.append(_title(problem[0]))
        for _, alike in groupby(problem, key=lambda ladder: ladder.heading[:3]):
            same_setting = list(alike)
            blocks += setting_tables(same_setting)
            if modelled:
                blocks += beside(modelled[0], [ladder.subject for ladder in same_setting], modelled[1])
        published = literature([ladder for ladder in first if _problem(ladder) == _problem(problem[0])])
        blocks += ["### Archival devices and published figures", published] if published else []
    listed = rows(Results(collection))
    if modelled:
        subjects = {subject.on_any_inputs for subject in collection.subjects}
        listed += device_rows(*modelled, subjects)
    return View("Comparison of variants and devices", join(blocks), listed)


def _problem(ladder: Ladder) -> tuple[str, str]:
    return ladder.workload, ladder.problem


def _title(ladder: Ladder) -> str:
    name = code(f"{ladder.workload}/{ladder.problem}")
    return f"## {ladder.problem_title} ({name})"


def setting_tables(ladders: Sequence[Ladder]) -> list[str]:
    """Return the tables of a problem at one setting: variant by device for each precision class."""
    first = ladders[0]
    blocks = [f"### {text(first.preset or first.setting, 80)}", problem_facts(first)]
    classes = [list(same) for _, same in groupby(ladders, key=lambda ladder: ladder.precision)]
    for same in classes:
        if len(classes) > 1:
            blocks.append(f"Precision class {text(same[0].precision)}:")
        blocks.append(device_comparison(same))
    return blocks


def literature(ladders: Sequence[Ladder]) -> str:
    """Return what the devices of the literature could do at the settings that stand for a problem, and all figures."""
    tables = [archival_table(ladders), published_table(list(ladders))]
    return join(tables)


def chosen_settings(ladders: Sequence[Ladder], first: Iterable[Ladder]) -> list[list[Ladder]]:
    """Return the ladders of one problem by setting: those of ``first``, then the largest, at most `MOST_SETTINGS`."""
    by: dict[str, list[Ladder]] = {}
    for ladder in ladders:
        by.setdefault(ladder.subject.parameters, []).append(ladder)
    ahead = {ladder.subject.parameters for ladder in first}

    def size(parameters: str) -> float:
        return amount(row for ladder in by[parameters] for row in ladder.rows)

    order = sorted(by, key=lambda parameters: (parameters not in ahead, -size(parameters), parameters))
    return [by[parameters] for parameters in order[: max(MOST_SETTINGS, len(ahead))]]


def share_dots(collection: Collection, ladders: Sequence[Ladder], name: str, title: str) -> Plot | None:
    """Return the share of the problem bound by variant and device, the fastest first; ``None`` without any.

    The ladders are of one problem and precision class.
    """
    shares: dict[str, dict[str, Series]] = {}
    for ladder in ladders:
        for row in ladder.rows:
            if is_measured(row.record) and row.record.problem_bound and row.record.identity.profile is None:
                held = shares.setdefault(row.record.identity.variant + (" (peer)" if is_peer(row) else ""), {})
                share = row.record.problem_bound.share
                if ladder.site not in held or share.value > held[ladder.site].value:
                    held[ladder.site] = Series(share.value, share.low, share.high)
    if not shares:
        return None
    caption = "Share of the problem bound under measured ceilings, 95 % intervals (measured)."
    ordered = sorted(shares.items(), key=lambda held: -max(share.value for share in held[1].values()))
    return dots(name, title, caption, dict(ordered), labels(collection))


def best_dots(collection: Collection, ladders: Sequence[Ladder], name: str) -> Plot | None:
    """Return the share that the best variant of each problem reaches, by device."""
    shares: dict[str, dict[str, Series]] = {}
    for ladder in ladders:
        bound = ladder.best.record.problem_bound if ladder.best else None
        if bound and ladder.precision == "fp32":
            label = f"{ladder.workload}/{ladder.problem}"
            shares.setdefault(label, {})[ladder.site] = Series(bound.share.value, bound.share.low, bound.share.high)
    if not shares:
        return None
    caption = (
        "The best variant of each problem on each device, at the headline size or else the largest that ran (fp32; "
        "measured, 95 % intervals)."
    )
    title = "Share of the problem bound by problem and device"
    return dots(name, title, caption, shares, labels(collection))


def labels(collection: Collection) -> list[str]:
    """Return the places' names in one order, so that a device looks the same in every plot."""
    return [collection.label(site) for site in collection.places]


def rows(results: Results) -> list[dict[str, Any]]:
    """Return a row for each case, and one for each published figure, marked by ``provenance``.

    The columns are those of the data frames, without one for each parameter and tunable.
    """
    return [*plain_rows(results.cases[list(SCHEMA["cases"])]), *plain_rows(results.published)]
