"""Where a run took place: host, versions, commit, devices, and the ceilings that shares refer to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ...measure.ceilings import MOVED
from ...model.names import plain
from ...model.untrusted import line
from ...store.results import Run
from .labels import ordered
from .markdown import NONE, code, details, join, table, text
from .quantities import ceiling, percent, significant, size


def host_section(run: Run) -> str:
    """Return the host, the versions and the commit of a run."""
    environment = run.environment
    host = environment.get("host") or {}
    commit = environment.get("commit") or None
    if commit:
        state = f"{code(commit.get('hash', ''))}{', **with uncommitted changes**' if commit.get('dirty') else ''}"
    else:
        state = "not known (not run from a git checkout)"
    rows = [
        ("run", code(run.name)),
        ("started", text(environment.get("started", NONE))),
        ("processor", text(host.get("cpu", NONE))),
        ("cores", text(host.get("cores", NONE))),
        ("memory", size(host.get("memory_bytes"))),
        ("operating system", text(host.get("os", NONE))),
        ("Python", text(host.get("python", NONE))),
        ("commit", state),
    ]
    known = {"cpu", "cores", "memory_bytes", "os", "python"}
    rows += [(text(name), text(plain(value))) for name, value in sorted(host.items()) if name not in known]
    versions = environment.get("versions") or {}
    listed = ", ".join(f"{text(name)} {text(version)}" for name, version in sorted(versions.items()))
    rows.append(("versions", listed or NONE))
    return table(["host", ""], rows, "ll")


def devices_section(run: Run) -> str:
    """Return the devices table of a run, and which ids are one chip."""
    devices = run.environment.get("devices") or {}
    if not devices:
        return "The results name no devices."
    rows = []
    for id_, info in sorted(devices.items()):
        profile = (run.environment.get("profiles") or {}).get(id_) or {}
        units = text(info.get("compute_units", NONE))
        rows.append([
            code(id_), text(info.get("platform", "")), text(info.get("driver", ""), 40), text(_chip(info), 60), units,
            size(info.get("memory_bytes")), size(info.get("local_memory_bytes")),
            code(profile.get("name") or info.get("profile") or ""),
        ])  # fmt: skip
    headers = ["device", "platform", "driver", "chip", "units", "memory", "local memory", "profile"]
    chips: dict[str, list[str]] = {}
    for id_, info in sorted(devices.items()):
        chips.setdefault(str(info.get("chip") or id_), []).append(id_)
    notes = [
        f"- {', '.join(code(id_) for id_ in ids)} are **the same chip** ({text(chip)}) under different drivers: "
        "what differs between them is the software."
        for chip, ids in chips.items()
        if len(ids) > 1
    ]
    notes += [
        f"- {code(id_)} was found unhealthy: {text(info.get('reason', ''))}"
        for id_, info in sorted(devices.items())
        if not info.get("healthy", True)
    ]
    return join([table(headers, rows, "llllrrrl"), "\n".join(notes)])


def _chip(info: dict[str, Any]) -> str:
    chip, name = str(info.get("chip", "")), str(info.get("name", ""))
    return chip or name


def ceilings_section(run: Run, used: set[str]) -> str:
    """Return the ceilings of every device of a run: measured, probed around it, and by datasheet.

    Parameters
    ----------
    run : Run
        The run that holds the ceilings.
    used : set of str
        Ids of the devices that have records.
    """
    ceilings = run.environment.get("ceilings") or {}
    blocks = [_ceilings_of(run, id_, ceilings[id_]) for id_ in sorted(ceilings)]
    if missing := sorted(used - set(ceilings)):
        names = ", ".join(code(id_) for id_ in missing)
        blocks.append(f"**No measured ceilings for {names}**: no share of the problem bound can be given there.")
    return join(blocks)


def _ceilings_of(run: Run, id_: str, found: dict[str, Any]) -> str:
    nominal = _datasheet(run, id_)
    entries = found.get("entries") or {}
    rows, moved, sweeps = [], [], []
    for name in ordered(entries):
        entry = entries[name]
        value, unit = float(entry["value"]), text(entry.get("unit") or "B/s", 20)
        probes = []
        for when in ("before", "after"):
            ratios = _probed(run, id_, when, name, value)
            probes.append(_span(ratios))
            moved += [(name, when, ratio) for ratio in ratios if abs(ratio - 1) > MOVED]
        sheet, theory = nominal.get(name), entry.get("theory")
        limit = ceiling(theory, unit) + (" **exceeded**" if entry.get("above_theory") else "")
        rows.append([
            code(name), f"**{ceiling(value, unit)}**",
            _between(ceiling(entry["low"], unit), ceiling(entry["high"], unit)), *probes,
            ceiling(sheet, unit), percent(value / sheet) if sheet else NONE, limit if theory else NONE,
        ])  # fmt: skip
        shape = ", ".join(f"{key} {plain(v)}" for key, v in (entry.get("shape") or {}).items())
        tried = f"worst of {len(entry['sweep'])} shapes" if entry.get("sweep") else "worst shape"
        basis = f" Theory: {text(entry['theory_basis'])}." if entry.get("theory_basis") else ""
        sweeps.append(
            f"- {code(name)}: won by {text(shape) or 'an unnamed shape'}; the {tried} reached "
            f"{percent(entry.get('spread'))} of it.{basis}"
        )
    sweeps += [
        f"- {code(name)}: not measured: {text(why)}." for name, why in sorted((found.get("absent") or {}).items())
    ]
    headers = [
        "ceiling", "measured", "95 % interval", "probes before", "after", "datasheet", "reached", "theory",
    ]  # fmt: skip
    profile = (run.environment.get("profiles") or {}).get(id_) or {}
    sheet_of = f" Datasheet (published): {text(profile['title'])}." if profile.get("title") and nominal else ""
    theory_of = " Theory (modelled): what clock and width allow." if any(row[-1] != NONE for row in rows) else ""
    age = _age(found.get("date"), run.environment.get("started"))
    intro = (
        f"**{code(id_)}**: measured {text(found.get('date', 'at an unknown time'))}, {age}; working set "
        f"{size(found.get('working_set_bytes'))}. A probe repeats the winning shape around the run, in % of the "
        f"ceiling.{sheet_of}{theory_of}"
    )
    flags = []
    if moved:
        worst = ", ".join(f"{code(n)} {w} the run: {percent(ratio)}" for n, w, ratio in sorted(set(moved)))
        flags.append(
            f"> **A ceiling moved by more than {percent(MOVED)}**: {worst} of the measured ceiling. Shares of this run "
            "are as uncertain as that."
        )
    if above := [name for name in ordered(entries) if entries[name].get("above_theory")]:
        flags.append(
            f"> **A ceiling is above its theory**: {', '.join(map(code, above))}. The clock was higher than the theory "
            "takes it to be, or the measurement is wrong."
        )
    shapes = details("winning shapes", "\n".join(sweeps))
    return join([intro, table(headers, rows, "lrrrrrrr"), *flags, *_doubts(found), shapes])


def _doubts(found: dict[str, Any]) -> Iterator[str]:
    """Yield what was disturbed when ceilings were swept, and what was swept again and why."""
    if disturbed := found.get("contended"):
        how = ", ".join(f"{code(name)} ({text(why)})" for name, why in sorted(disturbed.items()))
        yield f"> **Others used what the device needs while ceilings were swept**: {how}. They are not to be trusted."
    notes = [_renewal(renewal, found.get("entries") or {}) for renewal in found.get("renewals") or []]
    if notes:
        yield details("ceilings swept again", "\n".join(notes))


def _renewal(renewal: dict[str, Any], entries: dict[str, Any]) -> str:
    """Return what was swept again, why, and what came out: both values of each ceiling where they are stored."""
    fresh = renewal.get("fresh") or {}
    pairs = []
    for name, before in (renewal.get("before") or {}).items():
        unit = text((entries.get(name) or {}).get("unit") or "B/s", 20)
        if name in fresh:
            pairs.append(f"{code(name)} {ceiling(before['value'], unit)}, then {ceiling(fresh[name]['value'], unit)}")
    return (
        f"- {text(renewal.get('date', ''))}: {', '.join(map(code, renewal.get('names') or []))}, because "
        f"{text(renewal.get('reason', ''))}"
        + (f"; {text(renewal['outcome'])}." if renewal.get("outcome") else "; all were replaced.")
        + (f" Measured before and now: {'; '.join(pairs)}." if pairs else "")
    )


def _between(low: str, high: str) -> str:
    number, _, unit = low.partition(" ")
    return f"{number} – {high}" if high.endswith(f" {unit}") else f"{low} – {high}"


def _datasheet(run: Run, id_: str) -> dict[str, float]:
    profile = (run.environment.get("profiles") or {}).get(id_) or {}
    found = dict.fromkeys(("dram_read", "dram_copy", "dram_triad"), profile.get("bandwidth"))
    found["fp32_fma"] = profile.get("fp32")
    found |= profile.get("nominal") or {}
    return {name: float(value) for name, value in found.items() if value}


def _probed(run: Run, id_: str, when: str, name: str, value: float) -> list[float]:
    """Probes of one ceiling as ratios to it."""
    probes = [p for p in run.environment.get("probes") or [] if p.get("device") == id_ and p.get("when") == when]
    found = [(probe.get("entries") or {}).get(name) for probe in probes]
    return [float(entry["value"]) / value for entry in found if entry]


def _span(ratios: list[float]) -> str:
    if not ratios:
        return NONE
    low, high = percent(min(ratios)), percent(max(ratios))
    shown = low if len(ratios) == 1 or low == high else f"{percent(min(ratios), unit=False)}–{high} ({len(ratios)})"
    return f"**{shown} moved**" if any(abs(ratio - 1) > MOVED for ratio in ratios) else shown


def _age(date: Any, started: Any) -> str:
    """How long before the run's start something was measured."""
    try:
        gap = (datetime.fromisoformat(str(started)) - datetime.fromisoformat(str(date))).total_seconds()
    except (ValueError, TypeError):
        return "age unknown"
    for limit, length, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if abs(gap) < limit:
            shown = f"{significant(abs(gap) / length, 2)} {unit}"
            break
    else:
        shown = f"**{significant(abs(gap) / 86400, 2)} days**"
    return f"{shown} {'before' if gap >= 0 else 'after'} the run's start"


def run_title(run: Run, label: str) -> str:
    """Return the name of a run for headings."""
    return f"{label}: {code(line(run.name))}" if label else code(line(run.name))
