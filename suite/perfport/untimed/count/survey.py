"""From the command ``perfport count`` to a folder of counts and its tables."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from tabulate import tabulate

from ... import workload
from ...machine import discovery, environment, simulator
from ...model import schema
from ...model.device import DeviceInfo
from ...model.errors import UsageError, nearest
from ...model.record import Identity, Status
from ...model.work import Traffic
from ...run.plan import parameter_sets, select_devices
from ...run.runner import stamp
from ...workload import Problem, Workload
from .. import child
from ..child import CheckCase, Job, Outcome
from . import profiled, simulated
from .coalescing import DEFAULT_SHAPES, AccessPattern, Shape, shape_of
from .counts import COUNTS, SCHEMA_VERSION, Comparison, Count, Verdict, append, begin, compare, overall

RESULTS = Path("results")
SIZES = 2  # of a problem's check sizes: two show whether a declared quantity scales as the counted one


@dataclass
class Options:
    """Options of ``perfport count``."""

    what: str | None = None
    devices: list[str] = field(default_factory=list)
    out: Path | None = None
    presets: list[str] = field(default_factory=list)
    coalescing: bool = False
    profiles: list[str] = field(default_factory=list)
    stalls: bool = False
    parameters: list[str] = field(default_factory=list)
    workloads: list[str] = field(default_factory=list)
    seed: int = 1
    timeout: float = 1800.0
    command: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Subject:
    """One problem at one size, and the variants to count."""

    found: Workload
    problem: type[Problem]
    preset: str | None
    parameters: dict[str, Any]
    variants: tuple[str, ...]


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
    shapes = _shapes(options)
    subjects = _subjects(options)
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
        stream = _profile(subjects, device, options, tool["version"], console)
    else:
        using, why = simulated.counter()
        if why:
            console.print(
                f"using Oclgrind's own counter, which sees neither vector widths nor integer data: {why}", markup=False
            )
            if shapes:
                raise UsageError(f"--coalescing: needs the plugin: {why}")
        tool = {"name": using.name, "version": device.driver, "reason": why}
        stream = _simulate(subjects, device, options, using, shapes, console)
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
    chosen = [
        info
        for info in select_devices(options.devices, discovery.discover(), "--device")
        if "cuda" in info.capabilities
    ]
    if not chosen:
        raise UsageError(
            f"--device {', '.join(options.devices)}: counting works on the simulator (the default) and on working CUDA "
            "devices; none of these is one"
        )
    return chosen[0]


def _subjects(options: Options) -> list[_Subject]:
    names = options.what.split("/") if options.what else []
    if len(names) > 3:
        raise UsageError(f"{options.what!r}: expected WORKLOAD[/PROBLEM[/VARIANT]]")
    workloads = workload.discover(options.workloads)
    if names and names[0] not in workloads:
        known = ", ".join(workloads)
        raise UsageError(f"no workload {names[0]!r}{nearest(names[0], workloads)}; there are: {known}")
    if options.parameters and not options.presets:
        raise UsageError("--set: needs the --preset whose parameters it replaces")
    subjects: list[_Subject] = []
    for found in [workloads[names[0]]] if names else workloads.values():
        every = len(names) < 2 or names[1] == "*"
        for problem in found.problems.values() if every else [found.problem(names[1])]:
            chosen = tuple(fnmatch.filter(found.variants[problem.name], names[2])) if len(names) > 2 else ()
            if len(names) > 2 and not chosen:
                if every:
                    continue
                found.variant(problem.name, names[2])  # says which there are
            subjects += [
                _Subject(found, problem, preset, parameters, chosen) for preset, parameters in _sizes(problem, options)
            ]
    presets = {preset for subject in subjects for preset in subject.problem.presets}
    if unknown := [preset for preset in options.presets if preset not in presets]:
        raise UsageError(f"--preset: no problem here has {unknown[0]!r}{nearest(unknown[0], presets)}")
    if not subjects:
        raise UsageError(f"{options.what or 'workloads'}: no such variant, or no check sizes; give --preset")
    return subjects


def _sizes(problem: type[Problem], options: Options) -> list[tuple[str | None, dict[str, Any]]]:
    axes = _axes(options.parameters)
    sizes: list[tuple[str | None, dict[str, Any]]] = []
    if not axes:
        sizes += [(None, dict(size)) for size in problem.check_sizes[:SIZES]]
    sizes += [(preset, problem.presets[preset]) for preset in options.presets if preset in problem.presets]
    return [(name, values) for name, size in sizes for values in parameter_sets(problem, size, axes, "--set ")]


def _axes(parameters: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``NAME=VALUE[,VALUE...]``, values as in YAML."""
    axes = {}
    for text in parameters:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise UsageError(f"--set {text}: expected NAME=VALUE, or several values with commas between them")
        axes[name] = [schema.parse(value, f"--set {text}") for value in values.split(",")]
    return axes


def _job(subject: _Subject, device: DeviceInfo, options: Options, peers: bool) -> Job:
    known = subject.found.variants[subject.problem.name]
    cases = [
        CheckCase(variant=name, tunables={key: t.default_for(device) for key, t in known[name].tunables.items()})
        for name in subject.variants or known
        if name in subject.variants or (peers and not known[name].host) or known[name].role != "peer"
    ]
    return Job(
        device=device, workloads=options.workloads, workload=subject.found.name, problem=subject.problem.name,
        parameters=subject.parameters, seed=options.seed, cases=cases,
    )  # fmt: skip


def _simulated_jobs(subject: _Subject, device: DeviceInfo, options: Options) -> list[Job]:
    """The simulator passes for a GPU, and for a CPU where a variant is for CPUs alone."""
    known = subject.found.variants[subject.problem.name]
    jobs = []
    for kind in ("gpu", "cpu"):
        job = _job(subject, device.model_copy(update={"kind": kind}), options, peers=False)
        cases = [case for case in job.cases if ("cpu" in known[case.variant].needs) == (kind == "cpu")]
        jobs += [job.model_copy(update={"cases": cases})] if cases else []
    return jobs


def _simulate(
    subjects: list[_Subject],
    device: DeviceInfo,
    options: Options,
    using: simulated.Counter,
    shapes: tuple[Shape, ...],
    console: Console,
) -> Iterator[Count]:
    def count(subject: _Subject) -> list[tuple[Outcome, simulated.Tally]]:
        console.print(f"counting {_title(subject)}", markup=False)
        largest = [other for other in subjects if other.problem is subject.problem][-1]  # the others would say less
        jobs = _simulated_jobs(subject, device, options)
        traced = shapes if subject is largest else ()
        return [pair for job in jobs for pair in simulated.count(job, using, traced, options.timeout)]

    with ThreadPoolExecutor(child.parallel()) as pool:
        for subject, own in zip(subjects, pool.map(count, subjects), strict=True):
            for outcome, tally in own:
                made = _count(subject, outcome, device, options, using.name, device.driver)
                if made.status is Status.OK:
                    counted = tally.traffic()
                    quantities = (using.judged, ()) if outcome.traffic else ((), using.judged)
                    _fill(made, tally, counted, compare(outcome.traffic or Traffic(), counted, *quantities))
                yield made


def _profile(
    subjects: list[_Subject], device: DeviceInfo, options: Options, version: str, console: Console
) -> Iterator[Count]:
    for subject in subjects:
        console.print(f"counting {_title(subject)}", markup=False)
        job = _job(subject, device, options, peers=True)
        job.warm_up = True  # peers compile at first use
        for outcome, tally in profiled.count(job, options.timeout, options.stalls):
            count = _count(subject, outcome, device, options, "ncu", version)
            if count.status is Status.OK:
                count.stalls = profiled.stalls(tally)
                declared, counted = outcome.traffic or Traffic(), profiled.traffic(tally)
                judged = ("flops",) if outcome.traffic and outcome.unit in profiled.FLOATING_UNITS else ()
                shown = tuple(name for name in profiled.COUNTED if name not in judged)
                expansion = {"flops": profiled.expanded_flops(tally)}
                _fill(count, tally, counted, compare(declared, counted, judged, shown, expansion))
            yield count


def _title(subject: _Subject) -> str:
    return f"{subject.found.name}/{subject.problem.name} ({_size(subject.preset, subject.parameters)})"


def _size(preset: str | None, parameters: dict[str, Any]) -> str:
    values = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return ": ".join(filter(None, (preset, values)))


def _count(subject: _Subject, outcome: Outcome, device: DeviceInfo, options: Options, tool: str, version: str) -> Count:
    cls = subject.found.variant(subject.problem.name, outcome.case.variant)
    identity = Identity(
        workload=subject.found.name, problem=subject.problem.name, preset=subject.preset,
        parameters=subject.parameters, variant=cls.name, role=cls.role, rung=cls.rung, tunables=outcome.case.tunables,
        devices=[device.id], backend=device.backend, precision=cls.precision,
    )  # fmt: skip
    unsupported = outcome.status in (Status.UNSUPPORTED, Status.UNAVAILABLE)
    return Count(
        identity=identity, time=datetime.now(UTC).isoformat(timespec="seconds"), seed=options.seed, tool=tool,
        tool_version=version, status=outcome.status, reason=outcome.reason, declared=outcome.traffic,
        verdict=Verdict.UNSUPPORTED if unsupported else Verdict.FAILED,
    )  # fmt: skip


def _fill(count: Count, tally: simulated.Tally, counted: Traffic, quantities: dict[str, Comparison]) -> None:
    count.counted, count.quantities = counted, quantities
    count.launches, count.raw, count.unknown = tally.launches, tally.raw, tally.unknown
    count.coalescing = tally.coalescing
    count.verdict = overall(quantities) if count.declared else Verdict.UNDECLARED


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
        sizes = list(dict.fromkeys(_size(count.identity.preset, count.identity.parameters) for count in group))
        parts.append(f"{workload_name}/{problem}: declared, counted, declared / counted at " + "; ".join(sizes))
        parts.append(_table(group, sizes))
        for count in group:
            if count.counted is None:
                where = _size(count.identity.preset, count.identity.parameters)
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
            by_size_of[_size(count.identity.preset, count.identity.parameters)] = comparison
    rows, previous = [], ""
    for (variant, name), by_size in cells.items():
        cell_row = [variant if variant != previous else "", name]
        for size in sizes:
            found = by_size.get(size)
            cell_row += [f"{found.declared:,.0f}", f"{found.counted:,.0f}", _ratio(found)] if found else ["", "", ""]
        verdicts = [found.verdict for found in by_size.values()]
        cell_row.append(", ".join(dict.fromkeys(verdict.value for verdict in verdicts)))
        rows.append(cell_row)
        previous = variant
    headers = ["variant", "quantity", *(["declared", "counted", "ratio"] * len(sizes)), "verdict"]
    align = ["left", "left", *(["right"] * 3 * len(sizes)), "left"]
    return tabulate(rows, headers, colalign=align, disable_numparse=True) if rows else "  nothing counted"


def _ratio(comparison: Comparison) -> str:
    return "" if comparison.ratio is None else f"{comparison.ratio:.3f}"


def _stalls(group: Sequence[Count]) -> str:
    """What warps waited for, and how much of it was for instructions to be fetched."""
    rows = []
    for count in group:
        if count.stalls:
            where = _size(count.identity.preset, count.identity.parameters)
            reasons = ", ".join(f"{name} {share:.0%}" for name, share in count.largest_stalls.items())
            rows.append([count.identity.variant, where, f"{count.fetch_stalls:.1%}", reasons])
    if not rows:
        return ""
    headers = ["variant", "size", "no instruction", "largest shares"]
    return "cycles of warps that did not issue, by what they waited for\n" + tabulate(rows, headers)


def _patterns(count: Count) -> str:
    """Cache lines per access of a hardware thread."""
    if not count.coalescing:
        return ""
    where = _size(count.identity.preset, count.identity.parameters)
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
