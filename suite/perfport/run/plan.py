"""From an experiment to what will run: groups of cases, each group one problem on one device."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from ..machine.device_profile import load_profile, parameters_for
from ..measure.sampling import Targets
from ..model.device import DeviceInfo
from ..model.errors import UsageError, nearest
from ..model.record import Identity, Record
from ..model.schema import explain
from ..workload import Problem, Tunable, Variant, Workload
from .experiment import NATIVE, Experiment, Study

#: An experiment of more cases is refused: at a second each, this many take longer than a day.
MOST_CASES = 100_000


class Case(BaseModel):
    """One variant at one set of tunables and one profile; ``key`` changes with all that can change its result.

    ``earlier`` is what the workers before measured of it: the next one adds its samples.
    """

    key: str
    identity: Identity
    macros: dict[str, int | float | str] = {}
    earlier: Record | None = None


class Group(BaseModel):
    """Cases that run interleaved in one worker: one problem on one device. ``workers`` fresh ones do so in turn.

    ``inputs`` are the seeds of the timed instances by name. ``verify_seed`` is that of the inputs that verification
    draws; ``None``: any.
    """

    device: DeviceInfo
    workload: str
    problem: str
    preset: str | None
    parameters: dict[str, Any]
    inputs: dict[str, int]
    verify_seed: int | None = None
    targets: Targets
    timeout: float
    workers: int = 1
    cases: list[Case]

    @property
    def seed(self) -> int:
        """Seed of the first instance: the run's."""
        return next(iter(self.inputs.values()))

    @property
    def title(self) -> str:
        """Short name for progress and logs."""
        size = self.preset or ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.workload}/{self.problem} ({size}) on {self.device.id}"


def harness_files() -> list[Path]:
    """Return the files of the harness that take part in a measurement."""
    root = Path(str(files("perfport")))
    parts = [
        *root.glob("backend/*"),
        *root.glob("measure/kernels/*"),
        root / "measure" / "sampling.py",
        root / "measure" / "cache.py",
        root / "workload" / "outputs.py",
    ]
    return sorted(path for path in parts if path.is_file())


@cache
def harness_digest() -> str:
    """SHA-256 over the harness's own code that takes part in a measurement."""
    sha = hashlib.sha256()
    for path in harness_files():
        sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()


def select_devices(selectors: Iterable[str], devices: list[DeviceInfo], where: str) -> list[DeviceInfo]:
    """Return the healthy devices that any selector names, in discovery's order.

    Raises
    ------
    UsageError
        If a selector names nothing (``all``, ``cpu`` and ``gpu`` may), or nothing is left.
    """
    chosen = []
    for selector in selectors:
        matching = [device for device in devices if device.matches(selector)]
        if not matching and selector not in ("all", "cpu", "gpu", "cuda", "opencl"):
            ids = [device.id for device in devices]
            raise UsageError(
                f"{where}: no device matches {selector!r}{nearest(selector, ids)}; "
                f"there are: {', '.join(ids) or 'none'}, and all, cpu, gpu"
            )
        chosen += [device for device in matching if device.healthy]
    return [device for device in devices if any(device.id == one.id for one in chosen)]


def make(
    experiment: Experiment,
    where: str,
    workloads: dict[str, Workload],
    devices: list[DeviceInfo],
    seed: int,
    pattern: str | None = None,
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
    pattern : str, optional
        Only cases whose ``workload/problem/variant`` contains this text.

    Raises
    ------
    UsageError
        For any name that does not exist, with its key path and the nearest one that does, and for too many cases.
    """
    groups: dict[str, Group] = {}
    resolved = check(experiment, where, workloads, devices, pattern)
    for study, found in zip(experiment.experiments, resolved, strict=True):
        workload, variants, targets = found.workload, found.variants, found.targets
        number = study.instances or experiment.instances
        conditions = (targets.cache, workload.source_digest(), harness_digest())
        for (preset, parameters), device in itertools.product(found.sizes, _chosen(study, devices)):
            inputs = instances(found.problem, parameters, seed, number)
            cases = [
                case
                for variant, profile in itertools.product(variants, study.profiles)
                for case in _cases(study, workload, variant, profile, preset, parameters, device, inputs, conditions)
                if pattern is None or pattern in f"{workload.name}/{study.problem}/{variant.name}"
            ]
            group = Group(
                device=device, workload=workload.name, problem=study.problem, preset=preset, parameters=parameters,
                inputs=inputs, targets=targets, timeout=study.timeout or experiment.timeout,
                workers=experiment.workers, cases=cases,
            )  # fmt: skip
            key = json.dumps(
                [device.id, group.workload, group.problem, preset, parameters, inputs, targets.model_dump()],
                default=str,
            )
            if key in groups:
                have = {case.key for case in groups[key].cases}
                groups[key].cases.extend(case for case in cases if case.key not in have)
            elif cases:
                groups[key] = group
    # One device after the other, so that a worker serves many groups.
    order = {device.id: number for number, device in enumerate(devices)}
    return sorted(groups.values(), key=lambda group: order[group.device.id])


def instances(problem: type[Problem], parameters: Mapping[str, Any], seed: int, number: int) -> dict[str, int]:
    """Return the seeds of the inputs that are timed, by the names of the instances.

    One instance, or ``number`` of them where the data decide the time. Problems draw from ``seed + 1`` and so on, too:
    the seeds of instances lie farther apart.
    """
    wanted = number if problem.data_decide_time(problem.Parameters.model_validate(parameters)) else 1
    return {name: seed + 1000 * i for i, name in enumerate(string.ascii_lowercase[:wanted])}


class Resolved(NamedTuple):
    """What the names of an entry of ``experiments`` stand for.

    ``at`` is its key path, for errors; ``sizes`` are preset and parameters of each problem.
    """

    at: str
    workload: Workload
    problem: type[Problem]
    variants: list[type[Variant]]
    targets: Targets
    sizes: list[tuple[str | None, dict[str, Any]]]


def check(
    experiment: Experiment,
    where: str,
    workloads: dict[str, Workload],
    devices: Sequence[DeviceInfo] = (),
    pattern: str | None = None,
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
    found = [
        _resolve(study, experiment, f"{where}: experiments[{n}]", workloads)
        for n, study in enumerate(experiment.experiments)
    ]
    meant = [f"{one.workload.name}/{one.problem.name}/{variant.name}" for one in found for variant in one.variants]
    if pattern is not None and not any(pattern in name for name in meant):
        hint = nearest(pattern, meant)
        raise UsageError(f"{where}: no case is left by -b {pattern!r}: no workload/problem/variant contains it{hint}")
    counted = [_axes(study, one, devices, pattern) for study, one in zip(experiment.experiments, found, strict=True)]
    total = sum(math.prod(axes.values()) for axes in counted)
    if total > MOST_CASES:
        largest, axes = max(zip(found, counted, strict=True), key=lambda pair: math.prod(pair[1].values()))
        factors = " x ".join(f"{count:,} {name}" for name, count in axes.items() if count > 1)
        raise UsageError(
            f"{largest.at}: {factors}; {total:,} cases in all, expected at most {MOST_CASES:,} in one experiment"
        )
    return [
        one._replace(sizes=_sizes(study, one.problem, one.at))
        for study, one in zip(experiment.experiments, found, strict=True)
    ]


def _resolve(study: Study, experiment: Experiment, at: str, workloads: dict[str, Workload]) -> Resolved:
    workload = _lookup(workloads, study.workload, f"{at}.workload", "workload")
    problem = _lookup(workload.problems, study.problem, f"{at}.problem", "problem")
    known = workload.variants[study.problem]
    variants = [_lookup(known, name, f"{at}.variants", "variant") for name in study.variants or known]
    if not study.presets and not study.parameters:
        raise UsageError(f"{at}: give 'presets' (one of: {', '.join(problem.presets)}) or 'parameters'")
    for preset in study.presets or ():
        _lookup(problem.presets, preset, f"{at}.presets", "preset")
    _check_tunables(study, variants, at)
    for number, profile in enumerate(study.profiles):
        if profile != NATIVE:
            load_profile(profile, f"{at}.profiles[{number}]: ")
    try:
        targets = Targets.model_validate({**experiment.measurement.model_dump(), **study.measurement})
    except ValidationError as error:
        raise UsageError(f"{at}.measurement.{explain(error, Targets)}") from None
    return Resolved(at, workload, problem, variants, targets, [])


def _axes(study: Study, found: Resolved, devices: Sequence[DeviceInfo], pattern: str | None) -> dict[str, int]:
    """Return how many values each axis of an entry has, by the axis's name."""
    swept = [
        math.prod(len(values) for name, values in study.tunables.items() if name in variant.tunables)
        for variant in found.variants
        if pattern is None or pattern in f"{found.workload.name}/{study.problem}/{variant.name}"
    ]
    return {
        "presets": len(study.presets or [None]),
        **{f"parameters.{name}": len(v) for name, v in study.parameters.items() if isinstance(v, list) and v},
        "profiles": len(study.profiles),
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
    known: dict[str, Tunable] = {}
    for variant in variants:
        known.update(variant.tunables)
    for name, values in study.tunables.items():
        tunable = _lookup(known, name, f"{at}.tunables", "tunable")
        for value in values:
            if value not in tunable.values:
                raise UsageError(f"{at}.tunables.{name}: {value!r} is not allowed; allowed: {list(tunable.values)}")


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
    found = []
    for values in itertools.product(*lists.values()):
        try:
            parameters = problem.Parameters.model_validate({**base, **dict(zip(lists, values, strict=True))})
        except ValidationError as error:
            raise UsageError(f"{at}{explain(error, problem.Parameters)}") from None
        found.append(parameters.model_dump(exclude_unset=True))
    return found


def _cases(
    study: Study,
    workload: Workload,
    variant: type[Variant],
    profile: str,
    preset: str | None,
    parameters: dict[str, Any],
    device: DeviceInfo,
    inputs: dict[str, int],
    conditions: tuple[str, ...],
) -> Iterable[Case]:
    macros = {} if profile == NATIVE else parameters_for(load_profile(profile), workload.name)
    tunables = {name: macros.get(name, tunable.default_for(device)) for name, tunable in variant.tunables.items()}
    axes = {name: values for name, values in study.tunables.items() if name in variant.tunables}
    for values in itertools.product(*axes.values()):
        identity = Identity(
            workload=workload.name, problem=study.problem, preset=preset, parameters=parameters,
            variant=variant.name, role=variant.role, rung=variant.rung,
            tunables={**tunables, **dict(zip(axes, values, strict=True))}, devices=[device.id],
            backend=device.backend, profile=None if profile == NATIVE else profile, precision=variant.precision,
            inputs=inputs,
        )  # fmt: skip
        parts = [
            identity.model_dump_json(),
            macros,
            *conditions,
            device.driver,
            device.chip,
        ]
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        yield Case(key=key, identity=identity, macros={k: v for k, v in macros.items() if k not in variant.tunables})
