"""Counted work: DRAM and L2 bytes of hardware counters in place of modelled ones, and declared beside counted work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ...measure.roofline import variant_bound
from ...model.errors import UsageError, leave_out
from ...model.names import settings
from ...model.record import Identity, Interval, Record
from ...model.work import Traffic
from ...store.environment import read_fixed
from ...store.results import Run, each_run, find_runs
from ...untimed.count import Count, Verdict, read
from ...untimed.count.counts import COUNTS
from ...untimed.count.profiled import occupancy
from .ladder import Counted
from .markdown import NONE, code, details, join, table, text, titled
from .quantities import percent, scaled, significant

#: Accesses of a trace that a page names for each width of hardware threads.
MOST_PLACES = 3


class Counts:
    """A stored counting run, read-only.

    Attributes
    ----------
    counts : list of Count
        In the order in which they were taken.
    chips : dict of str to str
        The chip behind each device id, where the environment tells.

    Raises
    ------
    UsageError
        If the folder holds no counts, or they are not what this version of the suite reads.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts = read(folder)
        environment, left_out = read_fixed(folder, versioned=False)
        for error in left_out:
            leave_out(error)
        self.chips = _chips(environment)


def stored(paths: Sequence[Path]) -> tuple[list[Run], list[Counts]]:
    """Return the runs and the counts that lie at or directly below some paths.

    Raises
    ------
    UsageError
        For a path with neither.
    """
    runs: list[Run] = []
    counts: list[Counts] = []
    for path in paths:
        holders = [path] if (path / COUNTS).exists() else sorted(file.parent for file in path.glob(f"*/{COUNTS}"))
        for folder in holders:
            try:
                counts.append(Counts(folder))
            except UsageError as error:
                if folder == path:
                    raise
                leave_out(error)
        try:
            find_runs(path)
        except UsageError:
            if not holders:
                raise
            continue
        runs += each_run(path)
    return runs, counts


def _chips(environment: dict[str, Any]) -> dict[str, str]:
    devices = environment.get("devices") or {}
    return {id_: str(info["chip"]) for id_, info in devices.items() if info.get("chip")}


def _case(identity: Identity) -> str:
    """What was run, for a look-up: nothing that only orders or groups results."""
    names = {"workload", "problem", "parameters", "variant", "tunables", "devices", "profile"}
    return json.dumps(identity.model_dump(include=names), sort_keys=True)


class Recount:
    """Gives records the DRAM and L2 bytes that hardware counters saw in the same case on the same chip."""

    def __init__(self, counted: Sequence[Counts]) -> None:
        self._found: dict[str, list[tuple[Counts, Count]]] = {}
        self._traced: dict[tuple[str, str, str], Count] = {}
        for held in counted:
            for count in held.counts:
                if count.coalescing:
                    self._traced[_variant(count.identity)] = count
                if count.counted and count.counted.dram_bytes:  # only hardware counters tell them
                    self._found.setdefault(_case(count.identity), []).append((held, count))

    def __call__(self, run: Run, record: Record) -> Counted | None:
        """Return a record with counted traffic and the variant bound that it gives; nothing without such a count.

        Of several counts the latest counts, for what warps waited for the latest that tells it.
        """
        if not self._found or record.timing is None:
            return None
        chips = _chips(run.environment)
        alike = [
            count
            for held, count in reversed(self._found.get(_case(record.identity), []))
            if all(held.chips.get(id_) == chips.get(id_) for id_ in record.identity.devices)
        ]
        if not alike or alike[0].counted is None:
            return None
        return Counted(_recounted(record, alike[0].counted), next((count for count in alike if count.stalls), alike[0]))

    def traced(self, record: Record) -> Count | None:
        """Return the latest trace of a variant's accesses, of whatever size and tunables; ``None`` without any."""
        return self._traced.get(_variant(record.identity))


def _variant(identity: Identity) -> tuple[str, str, str]:
    return identity.workload, identity.problem, identity.variant


def _recounted(record: Record, counted: Traffic) -> Record:
    assert record.timing
    seen = {"dram_read": counted.dram_read, "dram_write": counted.dram_write, "provenance": "counted"}
    if counted.l2_bytes is not None:
        seen["l2_bytes"] = counted.l2_bytes
    traffic = (record.traffic or Traffic()).model_copy(update=seen)
    chosen = record.timing.summary[record.timing.rank]
    time = Interval(value=chosen.median, low=chosen.ci_low, high=chosen.ci_high)
    cold = record.timing.cache == "cold"
    # Only GPUs have such counters, and their compilers merge no accesses.
    bound = variant_bound(traffic, record.ceilings, time, record.unit, cold, merged=False)
    return record.model_copy(update={"traffic": traffic, "variant_bound": bound})


_DEFINITION = (
    "Declared is what the variant's own model says of one execution, counted is what a tool saw of it. The ratio is "
    "declared over counted. *Shown* quantities are counted in another sense than they are declared, and not judged."
)


def counted_section(counted: Sequence[Counts]) -> str:
    """Return declared beside counted work of every counted case: a row per case, and every quantity folded below."""
    blocks = []
    for held in counted:
        blocks.append(f"Counts in {code(held.folder)}:" if len(counted) > 1 else "")
        for (workload, problem), same in groupby(held.counts, key=lambda c: (c.identity.workload, c.identity.problem)):
            counts = list(same)
            blocks += [f"### {code(f'{workload}/{problem}')}", _cases(counts)]
            if quantities := _quantities(counts):
                blocks.append(details("every quantity", quantities))
            blocks.append(_stalls(counts))
    return join([_DEFINITION, *blocks]) if blocks else ""


def _named(count: Count) -> list[str]:
    identity = count.identity
    tunables = f" [{settings(identity.tunables)}]" if identity.tunables else ""
    size = text(": ".join(filter(None, (identity.preset, settings(identity.parameters)))) or NONE, 60)
    return [code(identity.variant + tunables, 60), size]


def _cases(counts: list[Count]) -> str:
    rows = []
    for count in counts:
        judged = {
            name: comparison.ratio
            for name, comparison in count.quantities.items()
            if comparison.verdict in (Verdict.AGREES, Verdict.DEVIATES)
        }
        farthest = max(judged, key=lambda name: abs((judged[name] or 0.0) - 1), default=None)
        ratio = f"{text(_title(farthest))} {_ratio(judged[farthest])}" if farthest else NONE
        verdict = f"**{count.verdict.value}**" if count.verdict == Verdict.DEVIATES else count.verdict.value
        remarks = [count.reason, f"not counted: {', '.join(count.unknown)}" if count.unknown else ""]
        rows.append([
            *_named(count), code(" + ".join(count.identity.devices)), text(f"{count.tool} {count.tool_version}"),
            str(len(judged)), ratio, ": ".join([verdict, *(text(remark, 60) for remark in remarks if remark)]),
        ])  # fmt: skip
    headers = ["variant", "size", "device", "tool", "quantities judged", "farthest from 1", "verdict"]
    return table(headers, rows, "llllrrl")


def _quantities(counts: list[Count]) -> str:
    rows = []
    for count in counts:
        for name, comparison in count.quantities.items():
            unit = "B" if name.endswith(("_read", "_write")) else ""
            verdict = (
                f"**{comparison.verdict.value}**"
                if comparison.verdict == Verdict.DEVIATES
                else comparison.verdict.value
            )
            rows.append([
                *_named(count), text(_title(name)), scaled(comparison.declared, unit).strip(),
                scaled(comparison.counted, unit).strip(), _ratio(comparison.ratio), verdict,
            ])  # fmt: skip
    headers = ["variant", "size", "quantity", "declared", "counted", "ratio", "verdict"]
    return table(headers, rows, "lllrrrl") if rows else ""


def _stalls(counts: list[Count]) -> str:
    """Shares of the reasons for which warps waited: that of instruction fetch, and the largest."""
    rows = []
    for count in counts:
        if count.stalls:
            largest = [f"{_title(name)} {percent(share)}" for name, share in count.largest_stalls.items()]
            occupied = percent(occupancy(count.raw))
            rows.append([*_named(count), occupied, percent(count.fetch_stalls), text(", ".join(largest))])
    intro = (
        "**What warps waited for** (counted): shares of the cycles of warps that did not issue an instruction. "
        "Occupancy: active warps over those that the multiprocessors can hold."
    )
    return titled(intro, ["variant", "size", "occupancy", "no instruction fetched", "largest shares"], rows, "llrrl")


def touched_lines(count: Count) -> str:
    """Return the accesses of a trace that touch more cache lines than need be, the most lines in excess first."""
    rows = []
    for shape, same in groupby(sorted(count.coalescing, key=lambda p: p.shape), key=lambda p: p.shape):
        wasteful = [pattern for pattern in same if pattern.place and pattern.lines > pattern.ideal]
        wasteful.sort(key=lambda pattern: (pattern.ideal - pattern.lines) * pattern.accesses)
        rows += [
            [text(shape), code(pattern.kernel, 40), code(pattern.argument, 40), "store" if pattern.store else "load",
             code(pattern.place, 60), str(pattern.accesses), f"{pattern.lines:.2f}", f"{pattern.ideal:.2f}"]
            for pattern in wasteful[:MOST_PLACES]
        ]  # fmt: skip
    variant, size = _named(count)
    title = (
        "**Cache lines** that an access of a hardware thread touches, where they are more than its bytes fill "
        f"(counted in the simulator: {variant} at {size})"
    )
    headers = ["width x line", "kernel", "argument", "access", "place", "accesses", "lines", "ideal"]
    return titled(title, headers, rows, "lllllrrr")


def _title(name: str) -> str:
    return name.replace("_", " ")


def _ratio(ratio: float | None) -> str:
    return significant(ratio, 4) if ratio is not None else "nothing counted"
