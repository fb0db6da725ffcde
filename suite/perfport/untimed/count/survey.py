"""From the command ``perfport count`` to a folder of counts and its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from tabulate import tabulate

from ...machine import environment, simulator
from ...model.device import DeviceInfo
from ...model.errors import UsageError
from ...model.record import Identity, Status
from ...model.work import Traffic
from ...run.listing import usable_devices
from ...run.runner import stamp
from .. import child
from ..child import Outcome
from . import profiled, simulated
from .cases import begun, complete, fill
from .coalescing import DEFAULT_SHAPES, AccessPattern, Shape, shape_of
from .counts import COUNTS, SCHEMA_VERSION, Comparison, Count, append, begin, compare
from .subjects import Options, Subject, size_of, subjects_of

RESULTS = Path("results")


def run(options: Options) -> tuple[Path, list[Count]]:
    """Count what the options name and store it.

    Returns
    -------
    folder : Path
    counts : list of Count
        In the order of problems, sizes and variants.

    Raises
    ------
    UsageError
        For bad input.
    UnavailableError, InfrastructureError
        If the tool that counts on the device is missing or fails.
    """
    console = Console(stderr=True, highlight=False)
    say = partial(console.print, markup=False)
    shapes = _shapes(options)
    subjects = subjects_of(options)
    folder = options.out or RESULTS / f"count-{stamp()}"
    if (folder / COUNTS).exists():
        raise UsageError(f"--out {folder}: holds counts already; name another folder")
    # Arguments first: what is wrong with them does not depend on the tools that are installed here.
    if options.stalls and _simulated(options):
        raise UsageError("--stalls: the simulator has no warps that wait; choose a CUDA device with --device")
    device = _device(options)
    if "cuda" in device.capabilities:
        if shapes:
            raise UsageError(f"--coalescing: needs the simulator's trace of accesses, which {device.id} does not give")
        tool = {"name": "ncu", "version": profiled.version()}
        stream = _profile(subjects, _Counting(device, options, "ncu", tool["version"], say))
    else:
        using, why = simulated.counter()
        if why:
            say(f"using Oclgrind's own counter, which sees neither vector widths nor integer data: {why}")
            if shapes:
                raise UsageError(f"--coalescing: needs the plugin: {why}")
        tool = {"name": using.name, "version": device.driver, "reason": why}
        counting = _Counting(device, options, using.name, device.driver, say)
        stream = _simulate(subjects, counting, using, shapes)
    begin(folder, _environment(folder, device, tool, options))
    counts = []
    for count in stream:
        append(folder, count)  # at once: what stops the rest does not take it away
        counts.append(count)
    return folder, counts


def _shapes(options: Options) -> tuple[Shape, ...]:
    if options.profiles:
        return tuple(shape_of(profile) for profile in options.profiles)
    return DEFAULT_SHAPES if options.coalescing else ()


def _simulated(options: Options) -> bool:
    """Whether the options ask for the simulator."""
    return not options.devices or options.devices == ["oclgrind"]


def _device(options: Options) -> DeviceInfo:
    """The simulator, or the one device that the options name."""
    if _simulated(options):
        return simulator.find()
    chosen = [info for info in usable_devices(options.devices) if "cuda" in info.capabilities]
    if not chosen:
        raise UsageError(
            f"--device {', '.join(options.devices)}: counting works on the simulator (the default) and on working CUDA "
            "devices; none of these is one"
        )
    return chosen[0]


@dataclass(frozen=True)
class _Counting:
    """A device, the tool that counts on it, and what the options want of it."""

    device: DeviceInfo
    options: Options
    tool: str
    version: str
    say: Callable[[str], None]

    def count(self, subject: Subject, outcome: Outcome) -> Count:
        """Return the count of a case, without any quantity yet."""
        cls = subject.workload.variant(subject.problem.name, outcome.case.variant)
        identity = Identity(
            workload=subject.workload.name, problem=subject.problem.name, preset=subject.preset,
            parameters=subject.parameters, variant=cls.name, role=cls.role, rung=cls.rung,
            tunables=outcome.case.tunables, devices=[self.device.id], backend=self.device.backend,
            precision=cls.precision,
        )  # fmt: skip
        return begun(identity, outcome, self.options.seed, self.tool, self.version)


def _simulate(
    subjects: list[Subject], counting: _Counting, using: simulated.Counter, shapes: tuple[Shape, ...]
) -> Iterator[Count]:
    def count(subject: Subject) -> list[tuple[Outcome, simulated.Tally]]:
        counting.say(f"counting {subject.title}")
        largest = [other for other in subjects if other.problem is subject.problem][-1]  # the others would say less
        jobs = subject.simulated_jobs(counting.device, counting.options)
        traced = shapes if subject is largest else ()
        return [pair for job in jobs for pair in simulated.count(job, using, traced, counting.options.timeout)]

    with ThreadPoolExecutor(child.parallel()) as pool:
        for subject, own in zip(subjects, pool.map(count, subjects), strict=True):
            for outcome, tally in own:
                made = counting.count(subject, outcome)
                if made.status is Status.OK:
                    counted = tally.traffic()
                    quantities = (using.judged, ()) if outcome.traffic else ((), using.judged)
                    fill(made, tally, counted, compare(outcome.traffic or Traffic(), counted, *quantities))
                yield made


def _profile(subjects: list[Subject], counting: _Counting) -> Iterator[Count]:
    options = counting.options
    for subject in subjects:
        counting.say(f"counting {subject.title}")
        job = subject.job(counting.device, options, peers=True)
        job.warm_up = True  # peers compile at first use
        for outcome, tally in profiled.count(job, options.timeout, options.stalls):
            count = counting.count(subject, outcome)
            complete(count, outcome, tally)
            yield count


def _environment(folder: Path, device: DeviceInfo, tool: dict[str, Any], options: Options) -> dict[str, Any]:
    return {
        "counts_schema_version": SCHEMA_VERSION,
        "run": folder.name,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": options.seed,
        "command": options.command,
        "tool": tool,
        "host": environment.host(),
        "versions": environment.versions(),
        "commit": environment.commit(),
        "devices": {device.id: device.model_dump()},
    }


def tables(counts: Sequence[Count]) -> str:
    """Declared beside counted, one table for each problem: sizes side by side, and cases that have no counts below."""
    parts = []
    groups: dict[tuple[str, str], list[Count]] = {}
    for count in counts:
        groups.setdefault((count.identity.workload, count.identity.problem), []).append(count)
    for (workload_name, problem), group in groups.items():
        sizes = list(dict.fromkeys(size_of(count.identity.preset, count.identity.parameters) for count in group))
        parts.append(f"{workload_name}/{problem}: declared, counted, declared / counted at " + "; ".join(sizes))
        parts.append(_table(group, sizes))
        for count in group:
            if count.counted is None:
                where = size_of(count.identity.preset, count.identity.parameters)
                parts.append(f"  {count.identity.variant} ({where}): {count.status.value}: {count.reason}")
            if count.unknown:
                parts.append(f"  {count.identity.variant}: not counted: calls of {', '.join(count.unknown)}")
        parts += [text for count in group if (text := _patterns(count))]
        parts.append(_stalls(group))
        parts.append("")
    return "\n".join(parts)


def _table(group: Sequence[Count], sizes: Sequence[str]) -> str:
    cells: dict[tuple[str, str], dict[str, Comparison]] = {}
    for count in group:
        for name, comparison in count.quantities.items():
            by_size_of = cells.setdefault((count.identity.variant, name), {})
            by_size_of[size_of(count.identity.preset, count.identity.parameters)] = comparison
    rows, previous = [], ""
    for (variant, name), by_size in cells.items():
        cell_row = [variant if variant != previous else "", name]
        for size in sizes:
            cell_row += _cells(by_size[size]) if size in by_size else ["", "", ""]
        verdicts = [comparison.verdict for comparison in by_size.values()]
        cell_row.append(", ".join(dict.fromkeys(verdict.value for verdict in verdicts)))
        rows.append(cell_row)
        previous = variant
    headers = ["variant", "quantity", *(["declared", "counted", "ratio"] * len(sizes)), "verdict"]
    align = ["left", "left", *(["right"] * 3 * len(sizes)), "left"]
    return tabulate(rows, headers, colalign=align, disable_numparse=True) if rows else "  nothing counted"


def _cells(comparison: Comparison) -> list[str]:
    ratio = "" if comparison.ratio is None else f"{comparison.ratio:.3f}"
    return [f"{comparison.declared:,.0f}", f"{comparison.counted:,.0f}", ratio]


def _stalls(group: Sequence[Count]) -> str:
    """What warps waited for, how much of it was for instructions to be fetched, and how many warps there were."""
    rows = []
    for count in group:
        if count.stalls:
            where = size_of(count.identity.preset, count.identity.parameters)
            reasons = ", ".join(f"{name} {share:.0%}" for name, share in count.largest_stalls.items())
            occupied = profiled.occupancy(count.raw)
            shown = "" if occupied is None else f"{occupied:.1%}"
            rows.append([count.identity.variant, where, shown, f"{count.fetch_stalls:.1%}", reasons])
    if not rows:
        return ""
    headers = ["variant", "size", "occupancy", "no instruction", "largest shares"]
    return "cycles of warps that did not issue, by what they waited for\n" + tabulate(rows, headers)


def _patterns(count: Count) -> str:
    """Cache lines per access of a hardware thread."""
    if not count.coalescing:
        return ""
    where = size_of(count.identity.preset, count.identity.parameters)
    rows = [_pattern_row(pattern) for pattern in count.coalescing]
    headers = ["shape", "kernel", "argument", "access", "accesses", "lines", "ideal", "lines / ideal"]
    title = f"\n{count.identity.variant} ({where}): cache lines touched by an access of a hardware thread\n"
    return title + tabulate(rows, headers, floatfmt=".2f")


def _pattern_row(pattern: AccessPattern) -> list[Any]:
    at = "all" if pattern.place is None else f"{'store' if pattern.store else 'load'} {pattern.place}"
    return [
        pattern.shape, pattern.kernel, pattern.argument, at, pattern.accesses, pattern.lines, pattern.ideal,
        pattern.excess,
    ]  # fmt: skip


def as_json(counts: Sequence[Count]) -> str:
    """The counts as a JSON array."""
    return json.dumps([count.model_dump(mode="json", exclude_none=True) for count in counts], indent=1)
