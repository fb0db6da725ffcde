"""From an experiment to what will run: groups of cases, each group one problem on one device."""

from __future__ import annotations

import itertools
import json
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from ..machine.device_profile import DeviceProfile, Value, family, load_profile, parameters_for
from ..machine.tuned import nearest_size
from ..measure.sampling import Targets
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, PerfportError, UsageError, nearest
from ..model.record import Identity
from ..model.schema import explain
from ..workload import Problem, Variant, Workload
from .cases import Case, Group
from .defaults import Defaults, size_of
from .experiment import NATIVE, Experiment, Study
from .keys import case_key

#: An experiment of more cases is refused: at a second each, this many take longer than a day.
MOST_CASES = 100_000
T = TypeVar("T")


def select_devices(selectors: Iterable[str], devices: list[DeviceInfo], where: str) -> list[DeviceInfo]:
    """Return the healthy devices that any selector names, in discovery's order.

    Raises
    ------
    UsageError
        If a selector names nothing (``all``, ``cpu`` and ``gpu`` may).
    InfrastructureError
        If it names nothing that is listed, and may be of a runtime that was lost before it listed its devices.
    """
    chosen = []
    for selector in selectors:
        matching = [device for device in devices if device.matches(selector)]
        if not matching and selector not in ("all", "cpu", "gpu", "cuda", "opencl"):
            raise _no_match(selector, devices, where)
        chosen += [device for device in matching if device.healthy]
    named = {device.id for device in chosen}
    return [device for device in devices if device.id in named]


def _no_match(selector: str, devices: list[DeviceInfo], where: str) -> PerfportError:
    """What to say of a selector that names no device."""
    platforms = {device.id.rpartition(":")[0] for device in devices if device.compute_units}
    lost = [device for device in devices if device.may_have(selector)]
    if lost and selector.lower().rpartition(":")[0] not in platforms:
        reasons = "".join(f"\n  {device.id}: {device.reason}" for device in lost)
        return InfrastructureError(f"{where}: {selector!r} may be of what did not list its devices:{reasons}")
    ids = [device.id for device in devices]
    return UsageError(
        f"{where}: no device matches {selector!r}{nearest(selector, ids)}; "
        f"there are: {', '.join(ids) or 'none'}, and all, cpu, gpu"
    )


def make(
    experiment: Experiment,
    where: str,
    workloads: dict[str, Workload],
    devices: list[DeviceInfo],
    seed: int,
    *,
    patterns: Sequence[str] = (),
    native: bool = False,
) -> list[Group]:
    """Expand an experiment's matrix over devices.

    Parameters
    ----------
    experiment : Experiment
    where : str
        The file's name, for errors.
    workloads : dict
        From `perfport.workload.discover`.
    devices : list of DeviceInfo
        Those to run on.
    seed : int
        Of the inputs that are timed.
    patterns : sequence of str
        Only cases whose ``workload/problem/variant`` contains one of these texts. Without any, all.
    native : bool
        Defaults of tunables are the code's own, whatever was tuned on a device.

    Raises
    ------
    UsageError
        For any name that does not exist, with its key path and the nearest one that does, and for too many cases.
    """
    groups: dict[str, Group] = {}
    resolved = check(experiment, where, workloads, devices, patterns)
    started = {(device.id, own): Defaults(device, own) for device in devices for own in (native, True)}
    for study, entry in zip(experiment.experiments, resolved, strict=True):
        number = study.instances or experiment.instances
        source = entry.workload.source_digest()
        for (preset, parameters), device in itertools.product(entry.sizes, _chosen(study, devices)):
            inputs = instances(entry.problem, parameters, seed, number)
            # Who names profiles means by `native` what the code says.
            defaults = started[device.id, native or study.profiles is not None]
            size = _Size(study, entry, preset, parameters, device, inputs, source, defaults)
            group = Group(
                device=device, workload=entry.workload.name, problem=study.problem, preset=preset,
                parameters=parameters, inputs=inputs, targets=entry.targets,
                timeout=study.timeout or experiment.timeout, workers=experiment.workers,
                cases=list(size.cases(patterns)),
            )  # fmt: skip
            _add(groups, group)
    # One device after the other, so that a worker serves many groups.
    order = {device.id: number for number, device in enumerate(devices)}
    return sorted(groups.values(), key=lambda group: order[group.device.id])


def _add(groups: dict[str, Group], group: Group) -> None:
    """Add a group, or its cases to the group of the same problem, inputs and targets."""
    same = [
        group.device.id, group.workload, group.problem, group.preset, group.parameters, group.inputs,
        group.targets.model_dump(),
    ]  # fmt: skip
    key = json.dumps(same, default=str)
    if key in groups:
        have = {case.key for case in groups[key].cases}
        groups[key].cases.extend(case for case in group.cases if case.key not in have)
    elif group.cases:
        groups[key] = group


def instances(problem: type[Problem], parameters: Mapping[str, Any], seed: int, number: int) -> dict[str, int]:
    """Return the seeds of the inputs that are timed, by the names of the instances.

    One instance, or ``number`` of them where the data decide the time. Problems draw from ``seed + 1`` and so on, too:
    the seeds of instances lie farther apart.
    """
    wanted = number if problem.data_decide_time(problem.Parameters.model_validate(parameters)) else 1
    return {name: seed + 1000 * i for i, name in enumerate(string.ascii_lowercase[:wanted])}


@dataclass(frozen=True)
class Resolved:
    """What the names of an entry of ``experiments`` stand for.

    ``at`` is its key path, for errors; ``macros`` are what each profile sets for the workload, ``profiles`` those that
    were named; ``sizes`` are preset and parameters of each problem.
    """

    at: str
    workload: Workload
    problem: type[Problem]
    variants: list[type[Variant]]
    targets: Targets
    macros: dict[str, dict[str, int | float | str]]
    profiles: dict[str, DeviceProfile]
    sizes: list[tuple[str | None, dict[str, Any]]]

    def named(self, patterns: Sequence[str] = ()) -> list[type[Variant]]:
        """Return the variants whose ``workload/problem/variant`` contains one of these texts; without any, all."""
        return [v for v in self.variants if not patterns or any(each in self.name_of(v) for each in patterns)]

    def name_of(self, variant: type[Variant]) -> str:
        """Return ``workload/problem/variant``."""
        return f"{self.workload.name}/{self.problem.name}/{variant.name}"


def check(
    experiment: Experiment,
    where: str,
    workloads: dict[str, Workload],
    devices: Sequence[DeviceInfo] = (),
    patterns: Sequence[str] = (),
) -> list[Resolved]:
    """Look up the names of an experiment and check its values; its cases are counted before they are expanded.

    Parameters
    ----------
    devices : sequence of DeviceInfo
        Without any, the cases are counted as for one.

    Raises
    ------
    UsageError
        For any name or value that does not exist, and for more than `MOST_CASES`.
    """
    entries = _all(
        partial(_resolve, study, experiment, f"{where}: experiments[{n}]", workloads)
        for n, study in enumerate(experiment.experiments)
    )
    names = [entry.name_of(variant) for entry in entries for variant in entry.variants]
    for pattern in patterns:
        if not any(pattern in name for name in names):
            hint = nearest(pattern, names)
            raise UsageError(
                f"{where}: no case is left by -b {pattern!r}: no workload/problem/variant contains it{hint}"
            )
    counted = [
        _axes(study, entry, devices, patterns) for study, entry in zip(experiment.experiments, entries, strict=True)
    ]
    total = sum(math.prod(axes.values()) for axes in counted)
    if total > MOST_CASES:
        largest, axes = max(zip(entries, counted, strict=True), key=lambda pair: math.prod(pair[1].values()))
        factors = " x ".join(f"{count:,} {name}" for name, count in axes.items() if count > 1)
        raise UsageError(
            f"{largest.at}: {factors}; {total:,} cases in all, expected at most {MOST_CASES:,} in one experiment"
        )
    sizes = _all(
        partial(_sizes, study, entry.problem, entry.at)
        for study, entry in zip(experiment.experiments, entries, strict=True)
    )
    return [replace(entry, sizes=own) for entry, own in zip(entries, sizes, strict=True)]


def _all(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Return what calls return; where some raise `UsageError`, one error has the lines of all of these."""
    made, mistakes = [], []
    for call in calls:
        try:
            made.append(call())
        except UsageError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return made


def _resolve(study: Study, experiment: Experiment, at: str, workloads: dict[str, Workload]) -> Resolved:
    workload = _lookup(workloads, study.workload, f"{at}.workload", "workload")
    problem = _lookup(workload.problems, study.problem, f"{at}.problem", "problem")
    known = workload.variants[study.problem]
    named = [partial(_lookup, known, name, f"{at}.variants", "variant") for name in study.variants or known]
    sized = [partial(_lookup, problem.presets, name, f"{at}.presets", "preset") for name in study.presets or ()]
    variants, _ = _all((partial(_all, named), partial(_all, sized)))
    if not study.presets and not study.parameters:
        raise UsageError(f"{at}: give 'presets' (one of: {', '.join(problem.presets)}) or 'parameters'")
    _check_tunables(study, variants, at)
    profiles = {
        name: load_profile(name, f"{at}.profiles[{number}]: ")
        for number, name in enumerate(study.profiles or ())
        if name != NATIVE
    }
    macros = {NATIVE: {}, **{name: parameters_for(profile, workload.name) for name, profile in profiles.items()}}
    try:
        targets = Targets.model_validate({**experiment.measurement.model_dump(), **study.measurement})
    except ValidationError as error:
        raise UsageError(f"{at}.measurement.{explain(error, Targets)}") from None
    return Resolved(at, workload, problem, variants, targets, macros, profiles, [])


def _axes(study: Study, entry: Resolved, devices: Sequence[DeviceInfo], patterns: Sequence[str]) -> dict[str, int]:
    """Return how many values each axis of an entry has, by the axis's name."""
    swept = [
        math.prod(len(values) for name, values in study.tunables.items() if name in variant.tunables)
        for variant in entry.named(patterns)
    ]
    return {
        "presets": len(study.presets or [None]),
        **{f"parameters.{name}": len(v) for name, v in study.parameters.items() if isinstance(v, list) and v},
        "profiles": len(study.profiles or [NATIVE]),
        "variants with their tunables": max(sum(swept), 1),
        "devices": max(len(_chosen(study, devices)), 1),
    }


def _chosen(study: Study, devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """The experiment's devices are chosen; an entry for GPUs has nothing to say to a machine without one."""
    return [device for device in devices if study.devices is None or any(map(device.matches, study.devices))]


def _lookup(named: dict[str, Any], name: str, at: str, kind: str) -> Any:
    if name not in named:
        raise UsageError(f"{at}: unknown {kind} {name!r}{nearest(name, named)}; allowed: {', '.join(named)}")
    return named[name]


def _check_tunables(study: Study, variants: list[type[Variant]], at: str) -> None:
    for name, values in study.tunables.items():
        _lookup({key: None for variant in variants for key in variant.tunables}, name, f"{at}.tunables", "tunable")
        for variant, value in itertools.product(variants, values):
            allowed = variant.tunables[name].values if name in variant.tunables else values
            if value not in allowed:
                raise UsageError(
                    f"{at}.tunables.{name}: {value!r} is not allowed for {variant.name}; allowed: {list(allowed)}"
                )


def _sizes(study: Study, problem: type[Problem], at: str) -> list[tuple[str | None, dict[str, Any]]]:
    bases: list[tuple[str | None, dict[str, Any]]] = [(name, problem.presets[name]) for name in study.presets or ()]
    return [
        (preset, values)
        for preset, base in bases or [(None, {})]
        for values in parameter_sets(problem, base, study.parameters, f"{at}.parameters.")
    ]


def parameter_sets(
    problem: type[Problem], base: Mapping[str, Any], axes: Mapping[str, Any], at: str
) -> list[dict[str, Any]]:
    """Return a problem's parameters: those of ``base``, with every combination of what ``axes`` has in their place.

    Parameters
    ----------
    axes : mapping
        A value or a list of them, by parameter.
    at : str
        What stands in front of a parameter's name in messages.

    Raises
    ------
    UsageError
        If the problem has no such parameter, or not with this value.
    """
    lists = {key: value if isinstance(value, list) and value else [value] for key, value in axes.items()}
    sets = []
    for values in itertools.product(*lists.values()):
        try:
            parameters = problem.Parameters.model_validate({**base, **dict(zip(lists, values, strict=True))})
        except ValidationError as error:
            raise UsageError(f"{at}{explain(error, problem.Parameters)}") from None
        sets.append(parameters.model_dump(exclude_unset=True))
    return sets


@dataclass(frozen=True)
class _Size:
    """An entry at one set of parameters on one device: what the cases of a group have in common."""

    study: Study
    entry: Resolved
    preset: str | None
    parameters: dict[str, Any]
    device: DeviceInfo
    inputs: dict[str, int]
    source_digest: str
    defaults: Defaults

    def cases(self, patterns: Sequence[str]) -> Iterator[Case]:
        """Yield the cases of the variants that the patterns leave: by variant, profile and tunables."""
        for variant, profile in itertools.product(self.entry.named(patterns), self.study.profiles or [NATIVE]):
            yield from self._cases_of(variant, profile)

    def _cases_of(self, variant: type[Variant], profile: str) -> Iterator[Case]:
        macros = self.entry.macros[profile]
        defaults = self.defaults.of(self.entry.workload.name, variant, self.parameters)
        set_ = macros | self._found(variant, profile)
        tunables = {name: set_.get(name, value) for name, value in defaults.items()}
        axes = {name: values for name, values in self.study.tunables.items() if name in variant.tunables}
        own = {name: value for name, value in macros.items() if name not in variant.tunables}
        for values in itertools.product(*axes.values()):
            identity = self.identity(variant, {**tunables, **dict(zip(axes, values, strict=True))}, profile)
            key = case_key(identity, macros, self.device, self.entry.targets.cache, self.source_digest)
            yield Case(key=key, identity=identity, macros=own, defaults=defaults)

    def _found(self, variant: type[Variant], profile: str) -> dict[str, Value]:
        """What a profile has of tuning a variant."""
        if profile == NATIVE:
            return {}
        entries = self.entry.profiles[profile].found(self.entry.name_of(variant), family(self.device))
        found = nearest_size(entries, size_of(variant.problem, self.parameters))
        return found.parameters if found else {}

    def identity(self, variant: type[Variant], tunables: dict[str, Any], profile: str = NATIVE) -> Identity:
        """Return what a case of a variant at some tunables is."""
        return Identity(
            workload=self.entry.workload.name, problem=self.study.problem, preset=self.preset,
            parameters=self.parameters, variant=variant.name, role=variant.role, rung=variant.rung, tunables=tunables,
            devices=[self.device.id], backend=self.device.backend, profile=None if profile == NATIVE else profile,
            precision=variant.precision, inputs=self.inputs,
        )  # fmt: skip
