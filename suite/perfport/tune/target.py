"""What `perfport tune` was asked for: which variants, at which sizes, by which objective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..machine.tuned import Size
from ..model.device import DeviceInfo
from ..model.errors import UnavailableError, UnsupportedError, UsageError, nearest
from ..model.record import DEVICES
from ..run.defaults import size_of
from ..run.experiment import Experiment, Study, TuneOptions, find, load
from ..workload import Problem, Variant, Workload
from .space import Config, Space

#: Stands for every workload.
ALL = "all"


@dataclass(frozen=True)
class Goal:
    """A variant that is to be tuned on a device.

    Attributes
    ----------
    presets : dict of str to float
        Weight of each size.
    """

    workload: Workload
    variant: type[Variant]
    device: DeviceInfo
    presets: Mapping[str, float]

    @property
    def name(self) -> str:
        """``workload/problem/variant``."""
        return f"{self.workload.name}/{self.problem.name}/{self.variant.name}"

    @property
    def problem(self) -> type[Problem]:
        """The problem that the variant solves."""
        return self.variant.problem

    def parameters(self, preset: str) -> dict[str, Any]:
        """Return the problem's parameters at a preset, as plans have them."""
        parameters = self.problem.Parameters.model_validate(self.problem.presets[preset])
        return parameters.model_dump(exclude_unset=True)

    @property
    def size(self) -> Size:
        """The preset of the greatest weight, as a size."""
        return size_of(self.problem, self.parameters(max(self.presets, key=lambda name: self.presets[name])))

    @property
    def defaults(self) -> Config:
        """What the code says."""
        return {name: tunable.default_for(self.device) for name, tunable in self.variant.tunables.items()}

    @property
    def space(self) -> Space:
        """Every combination of allowed values; how many devices take part is no choice."""
        allowed = {name: tunable.values for name, tunable in self.variant.tunables.items()}
        values = {name: [value] if name == DEVICES else [*allowed[name]] for name, value in self.defaults.items()}
        return Space(
            {
                name: each if self.defaults[name] in each else [self.defaults[name], *each]
                for name, each in values.items()
            }
        )


@dataclass(frozen=True)
class Target:
    """What the command's argument stands for; ``name`` is that of the results folder.

    ``devices``: selectors of an experiment file; empty for every device.
    """

    name: str
    studies: tuple[Study, ...]
    options: TuneOptions
    devices: tuple[str, ...] = ()

    def goals(self, workloads: Mapping[str, Workload], devices: Sequence[DeviceInfo]) -> list[Goal]:
        """Return every variant with tunables that can run, device by device.

        Peers are left out unless they are named. Entries of one problem have their sizes together.

        Raises
        ------
        UsageError
            For a name that does not exist, or where nothing is left.
        """
        self.check(workloads)
        goals: dict[tuple[str, str], Goal] = {}
        for device in devices:
            for study in self.studies:
                if study.devices is not None and not any(map(device.matches, study.devices)):
                    continue
                for goal in self._of_study(study, workloads, device):
                    key = device.id, goal.name
                    known = goals[key].presets if key in goals else {}
                    goals[key] = replace(goal, presets={**known, **goal.presets})
        if not goals:
            raise UsageError(f"{self.name}: no variant with tunables is left that can run on {_ids(devices)}")
        return list(goals.values())

    def check(self, workloads: Mapping[str, Workload]) -> None:
        """Refuse a variant of the block ``tune`` that no entry's problem has, and a preset that one of them lacks.

        Raises
        ------
        UsageError
        """
        known: dict[str, Any] = {}
        for study in self.studies:
            workload = _get(workloads, study.workload, "workload")
            problem = workload.problem(study.problem)
            known |= workload.variants[problem.name]
            for preset in self.options.presets or ():
                _get(problem.presets, preset, f"{study.workload}/{study.problem}: preset")
        for name in self.options.variants or ():
            if name not in known:
                there = f"{nearest(name, known)}; the entries have: {', '.join(known)}"
                raise UsageError(f"{self.name}: tune.variants: unknown variant {name!r}{there}")

    def _of_study(self, study: Study, workloads: Mapping[str, Workload], device: DeviceInfo) -> list[Goal]:
        workload = _get(workloads, study.workload, "workload")
        problem = workload.problem(study.problem)
        presets = self._presets(study, problem, device)
        wanted = self.options.variants or study.variants
        goals = []
        for name in wanted or workload.variants[problem.name]:
            if name not in workload.variants[problem.name] and self.options.variants:
                continue  # of another entry
            variant = workload.variant(problem.name, name)
            if variant.tunables and (wanted or variant.role != "peer") and _runs(variant, device):
                goals.append(Goal(workload, variant, device, presets))
        return goals

    def _presets(self, study: Study, problem: type[Problem], device: DeviceInfo) -> dict[str, float]:
        if self.options.presets:
            return dict(self.options.presets)
        headline = problem.headline.get("cpu" if device.kind == "cpu" else "gpu")
        own = study.presets or [headline or next(iter(problem.presets))]
        return dict.fromkeys(own, 1.0)


def _runs(variant: type[Variant], device: DeviceInfo) -> bool:
    try:
        variant.require(device)
    except (UnsupportedError, UnavailableError):
        return False
    return True


def _ids(devices: Sequence[DeviceInfo]) -> str:
    return ", ".join(device.id for device in devices)


def _get(named: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in named:
        raise UsageError(f"unknown {kind} {name!r}{nearest(name, named)}; there are: {', '.join(named)}")
    return named[name]


def _studies(workload: Workload, problem: str | None = None, variant: str | None = None) -> Iterator[Study]:
    """Yield an entry for each problem that has variants, or for one problem or variant alone."""
    for name, variants in workload.variants.items():
        if problem in (None, name) and variants:
            yield Study(workload=workload.name, problem=name, variants=[variant] if variant else None)


def target(text: str, workloads: Mapping[str, Workload]) -> Target:
    """Return what a text names: a workload, one of its problems or variants (by slashes), `ALL`, or an experiment file.

    Raises
    ------
    UsageError
        If it names none of them.
    """
    if text == ALL:
        return Target(ALL, tuple(each for workload in workloads.values() for each in _studies(workload)), TuneOptions())
    parts = text.split("/")
    if parts[0] in workloads and len(parts) <= 3 and not Path(text).is_file():
        workload = workloads[parts[0]]
        problem = workload.problem(parts[1]).name if len(parts) > 1 else None
        variant = workload.variant(parts[1], parts[2]).name if len(parts) > 2 else None
        return Target("-".join(parts), tuple(_studies(workload, problem, variant)), TuneOptions())
    try:
        definition: Experiment = load(find(text))
    except UsageError as error:
        if Path(text).exists():
            raise
        names = ", ".join(workloads)
        raise UsageError(f"{error}; nor is it a workload, a problem or a variant (workloads: {names})") from None
    return Target(definition.name, tuple(definition.experiments), definition.tune, tuple(definition.devices))
