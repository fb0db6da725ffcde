"""Verify variants untimed, plainly or under a sanitizer: races, accesses out of bounds, reads of unwritten memory.

Two sanitizers are used: Oclgrind simulates OpenCL devices, NVIDIA's compute-sanitizer watches CUDA ones. What they find
is read from what they print: the exit code of a program under Oclgrind is the program's own.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Protocol

from ...machine import simulator
from ...machine.device_profile import DeviceProfile, parameters_for
from ...model.device import DeviceInfo
from ...model.errors import UsageError
from ...model.record import Status
from ...model.untrusted import indented, line, opening
from ...workload import Workload
from .. import child
from ..child import CheckCase, Job, Outcome, Wrapping
from .compute_sanitizer import SANITIZED, TOOLS, ComputeSanitizer
from .finding import Finding
from .oclgrind import Oclgrind


class Tool(Protocol):
    """A way to watch kernels run."""

    @property
    def name(self) -> str:
        """The tool's name in tables."""
        ...

    @property
    def most(self) -> int:
        """So many findings in a child mean that it may print no further ones."""
        ...

    def wrapping(self) -> Wrapping:
        """How the child is started. Raises `UnavailableError`."""
        ...

    def findings(self, log: str) -> list[Finding]:
        """Read what was printed while one case ran. Raises `InfrastructureError` where the tool itself failed."""
        ...


class Plain:
    """No tool: results alone are checked."""

    name = "verify"
    most = 1  # and there are none

    def wrapping(self) -> Wrapping:
        """Start the child as it is."""
        return Wrapping()

    def findings(self, log: str) -> list[Finding]:
        """Nobody watched."""
        return []


@dataclass(frozen=True)
class Verdict:
    """What came of one case under one tool."""

    job: Job
    tool: str
    outcome: Outcome
    findings: list[Finding] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Whether the kernels are at fault: a wrong result, or a finding."""
        return bool(self.findings) or self.outcome.status is Status.WRONG

    def __str__(self) -> str:
        job, outcome = self.job, self.outcome
        size = ", ".join(f"{key}={value}" for key, value in job.parameters.items())
        text = (
            f"{job.device.id} ({job.device.kind}) {self.tool}: {job.workload}/{job.problem}/{outcome.case.variant} "
            f"[{size}] {outcome.status.value}"
        )
        if self.findings:
            text += f", {sum(finding.count for finding in self.findings)} findings"
        if outcome.reason:
            compiler = outcome.log if outcome.status is Status.COMPILE_ERROR else ""
            text += indented(line(outcome.reason, 600), opening(compiler))
        for finding in self.findings:
            text += f"\n    {finding.count} x {finding.kind} in {finding.kernel} {finding.where}".rstrip()
        return text


@dataclass(frozen=True)
class Task:
    """Jobs to run under a tool, in one child."""

    jobs: tuple[Job, ...]
    tool: Tool


def chosen(workloads: Mapping[str, Workload], pattern: str) -> bool:
    """Whether a pattern chooses any variant; needs neither a device nor a tool."""
    return any(
        child.chosen(workload, problem, variant, pattern)
        for workload in workloads.values()
        for problem in workload.problems
        for variant in workload.variants[problem]
    )


def on_devices(
    workloads: Mapping[str, Workload],
    devices: Sequence[DeviceInfo],
    seed: int,
    pattern: str = "",
    profile: DeviceProfile | None = None,
    *,
    sanitize: bool = False,
) -> list[Task]:
    """Return every variant at every one of its problem's ``check_sizes`` on each device, with that device's tunables.

    Parameters
    ----------
    workloads : dict
        From `perfport.workload.discover`.
    devices : sequence of DeviceInfo
    seed : int
    pattern : str
        Only variants whose ``workload/problem/variant`` contains this.
    profile : DeviceProfile, optional
        Whose tuning parameters replace the native ones.
    sanitize : bool
        Under each of compute-sanitizer's tools. Raises `UsageError` for a device that it cannot watch.
    """
    if sanitize and (others := [device.id for device in devices if "cuda" not in device.capabilities]):
        expected = "expected CUDA devices, or no --device for Oclgrind"
        raise UsageError(f"--sanitize --device: {', '.join(others)} cannot be watched; {expected}")
    tools: list[Tool] = [ComputeSanitizer(name) for name in TOOLS] if sanitize else [Plain()]
    jobs = _jobs(workloads, devices, seed, pattern, profile)
    if sanitize:
        jobs = [job.model_copy(update={"cases": list(map(_watched, job.cases))}) for job in jobs]
    return [task for tool in tools for task in _tasks(jobs, tool)]


def on_simulator(
    workloads: Mapping[str, Workload], seed: int, pattern: str = "", profile: DeviceProfile | None = None
) -> list[Task]:
    """Return the same for Oclgrind, with the tunables of CPUs and of GPUs, and the limits of a device profile.

    Raises `UnavailableError` without Oclgrind, or without what its plugin needs.
    """
    limits = simulator.limits(profile) if profile else {}
    info = simulator.find(limits)
    devices = [info.model_copy(update={"kind": kind}) for kind in ("gpu", "cpu")]
    return _tasks(_jobs(workloads, devices, seed, pattern, profile), Oclgrind(limits))


def _watched(case: CheckCase) -> CheckCase:
    return case.model_copy(update={"macros": {**case.macros, **SANITIZED}})


def _tasks(jobs: Sequence[Job], tool: Tool) -> list[Task]:
    """Let all sizes of a problem share a child: its start takes longer than most sizes."""
    place = attrgetter("device.id", "device.kind", "workload", "problem")
    return [Task(tuple(sizes), tool) for _, sizes in itertools.groupby(sorted(jobs, key=place), key=place)]


def _jobs(
    workloads: Mapping[str, Workload],
    devices: Sequence[DeviceInfo],
    seed: int,
    pattern: str,
    profile: DeviceProfile | None,
) -> list[Job]:
    """Devices of one id (the simulator as a CPU and as a GPU) share the cases whose tunables are equal."""
    jobs: list[Job] = []
    seen: set[str] = set()

    def new(key: str) -> bool:
        known = key in seen
        seen.add(key)
        return not known

    for workload in workloads.values():
        macros = parameters_for(profile, workload.name) if profile else {}
        for name, problem in workload.problems.items():
            for parameters, device in itertools.product(problem.check_sizes, devices):
                at = f"{device.id} {workload.name} {name} {parameters}"
                cases = [
                    case
                    for case in child.cases(workload, name, device, macros, pattern)
                    if {"cpu", "gpu"} & set(workload.variants[name][case.variant].needs) or new(f"{at} {case}")
                ]
                job = Job(
                    device=device, workload=workload.name, problem=name, parameters=parameters, seed=seed, cases=cases,
                    timed=False,
                )  # fmt: skip
                jobs += [job] if cases else []
    return jobs


def run(tasks: Sequence[Task], workloads: Sequence[str] = ()) -> Iterator[Verdict]:
    """Run tasks; verdicts come in their order, as they are ready.

    Parameters
    ----------
    tasks : sequence of Task
    workloads : sequence of str
        Folders with further workloads.
    """

    def judge(task: Task) -> list[Verdict]:
        jobs = [job.model_copy(update={"workloads": list(workloads)}) for job in task.jobs]
        verdicts: list[Verdict] = []
        while left := child.beyond(jobs, len(verdicts)):
            verdicts += _until_silent(left, task.tool)
        return verdicts

    with ThreadPoolExecutor(child.parallel()) as pool:
        for verdicts in pool.map(judge, tasks):
            yield from verdicts


def _until_silent(jobs: Sequence[Job], tool: Tool) -> Iterator[Verdict]:
    """Run jobs; what comes after so many findings that the tool may have fallen silent is left out."""
    found = 0
    of = (job for job in jobs for _ in job.cases)
    for job, outcome in zip(of, child.run(jobs, tool.wrapping()), strict=True):
        findings = tool.findings(outcome.log)
        yield Verdict(job, tool.name, outcome, findings)
        found += sum(finding.count for finding in findings)
        if found >= tool.most:
            return


def rows(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return one row for each verdict."""
    return [
        {
            "device": verdict.job.device.id,
            "kind": verdict.job.device.kind,
            "workload": verdict.job.workload,
            "problem": verdict.job.problem,
            "parameters": verdict.job.parameters,
            "variant": verdict.outcome.case.variant,
            "tunables": verdict.outcome.case.tunables,
            "tool": verdict.tool,
            "status": verdict.outcome.status.value,
            "reason": verdict.outcome.reason,
            "worst_error": verdict.outcome.verification.worst if verdict.outcome.verification else None,
            "findings": [asdict(finding) for finding in verdict.findings],
        }
        for verdict in verdicts
    ]


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return one line: cases by status, and findings."""
    counts = Counter(verdict.outcome.status.value for verdict in verdicts)
    findings = sum(finding.count for verdict in verdicts for finding in verdict.findings)
    parts = [f"{count} {status}" for status, count in sorted(counts.items())]
    return f"{len(verdicts)} cases: {', '.join(parts)}; {findings} findings"
