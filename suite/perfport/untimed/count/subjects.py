"""What ``perfport count`` counts: problems at one size each, and the variants that are meant."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...model import schema
from ...model.device import DeviceInfo
from ...model.errors import UsageError, nearest
from ...run.plan import parameter_sets
from ...workload import Peer, Problem, Workload, discover
from ..child import CheckCase, Job

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
class Subject:
    """One problem at one size, and the variants to count."""

    workload: Workload
    problem: type[Problem]
    preset: str | None
    parameters: dict[str, Any]
    variants: tuple[str, ...]

    @property
    def title(self) -> str:
        """Short name for progress."""
        return f"{self.workload.name}/{self.problem.name} ({size_of(self.preset, self.parameters)})"

    def job(self, device: DeviceInfo, options: Options, peers: bool) -> Job:
        """Return the job that counts the subject's variants, with those peers that run on a device where asked for."""
        known = self.workload.variants[self.problem.name]
        cases = [
            CheckCase(variant=name, tunables={key: t.default_for(device) for key, t in known[name].tunables.items()})
            for name in self.variants or known
            if name in self.variants or (peers and not known[name].host) or not issubclass(known[name], Peer)
        ]
        return Job(
            device=device, workloads=options.workloads, workload=self.workload.name, problem=self.problem.name,
            parameters=self.parameters, seed=options.seed, cases=cases,
        )  # fmt: skip

    def simulated_jobs(self, device: DeviceInfo, options: Options) -> list[Job]:
        """The simulator passes for a GPU, and for a CPU where a variant is for CPUs alone."""
        known = self.workload.variants[self.problem.name]
        jobs = []
        for kind in ("gpu", "cpu"):
            job = self.job(device.model_copy(update={"kind": kind}), options, peers=False)
            cases = [case for case in job.cases if ("cpu" in known[case.variant].needs) == (kind == "cpu")]
            jobs += [job.model_copy(update={"cases": cases})] if cases else []
        return jobs


def size_of(preset: str | None, parameters: dict[str, Any]) -> str:
    """Return a problem's size as text."""
    values = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return ": ".join(filter(None, (preset, values)))


def subjects_of(options: Options) -> list[Subject]:
    """Return what the options choose.

    Raises
    ------
    UsageError
        For names that do not exist, or where nothing is chosen.
    """
    names = options.what.split("/") if options.what else []
    if len(names) > 3:
        raise UsageError(f"{options.what!r}: expected WORKLOAD[/PROBLEM[/VARIANT]]")
    workloads = discover(options.workloads)
    if names and names[0] not in workloads:
        known = ", ".join(workloads)
        raise UsageError(f"no workload {names[0]!r}{nearest(names[0], workloads)}; there are: {known}")
    if options.parameters and not options.presets:
        raise UsageError("--set: needs the --preset whose parameters it replaces")
    subjects: list[Subject] = []
    for workload in [workloads[names[0]]] if names else workloads.values():
        every = len(names) < 2 or names[1] == "*"
        for problem in workload.problems.values() if every else [workload.problem(names[1])]:
            chosen = tuple(fnmatch.filter(workload.variants[problem.name], names[2])) if len(names) > 2 else ()
            if len(names) > 2 and not chosen:
                if every:
                    continue
                workload.variant(problem.name, names[2])  # says which there are
            subjects += [
                Subject(workload, problem, preset, parameters, chosen)
                for preset, parameters in _sizes(problem, options)
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
