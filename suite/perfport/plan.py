"""From an experiment to what will run: groups of cases, each group one problem on one device."""

from __future__ import annotations

import hashlib
import itertools
import json
import string
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from .device import DeviceInfo
from .errors import UsageError, nearest
from .experiment import NATIVE, Experiment, Study, explain
from .measure import Targets
from .profile import load_profile, parameters_for
from .record import Identity, Record
from .workload import Problem, Tunable, Variant, Workload


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
        *root.glob("kernels/*"),
        root / "measure.py",
        root / "cache.py",
        root / "verify.py",
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
        For any name that does not exist, with its key path and the nearest one that does.
    """
    groups: dict[str, Group] = {}
    for number, study in enumerate(experiment.experiments):
        at = f"{where}: experiments[{number}]"
        workload = _lookup(workloads, study.workload, f"{at}.workload", "workload")
        problem = _lookup(workload.problems, study.problem, f"{at}.problem", "problem")
        known = workload.variants[study.problem]
        names = study.variants or list(known)
        variants = [_lookup(known, name, f"{at}.variants", "variant") for name in names]
        _check_tunables(study, variants, at)
        for profile in study.profiles:
            if profile != NATIVE:
                load_profile(profile)
        try:
            targets = Targets.model_validate({**experiment.measurement.model_dump(), **study.measurement})
        except ValidationError as error:
            raise UsageError(f"{at}.measurement.{explain(error, Targets)}") from None
        # The experiment's devices are chosen; an entry for GPUs has nothing to say to a machine without one.
        chosen = [device for device in devices if study.devices is None or any(map(device.matches, study.devices))]
        number_of = study.instances or experiment.instances
        for (preset, parameters), device in itertools.product(_parameter_sets(study, problem, at), chosen):
            inputs = instances(problem, parameters, seed, number_of)
            cases = [
                case
                for variant, profile in itertools.product(variants, study.profiles)
                for case in _cases(study, workload, variant, profile, preset, parameters, device, inputs, targets.cache)
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


def _parameter_sets(study: Study, problem: Any, at: str) -> list[tuple[str | None, dict[str, Any]]]:
    presets: list[str | None] = list(study.presets) if study.presets else [None]
    if not study.presets and not study.parameters:
        raise UsageError(f"{at}: give 'presets' (one of: {', '.join(problem.presets)}) or 'parameters'")
    found = []
    for preset in presets:
        base = _lookup(problem.presets, preset, f"{at}.presets", "preset") if preset else {}
        found += [(preset, values) for values in parameter_sets(problem, base, study.parameters, f"{at}.parameters.")]
    return found


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
    cache: str,
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
            cache,
            workload.source_digest(),
            harness_digest(),
            device.driver,
            device.chip,
        ]
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        yield Case(key=key, identity=identity, macros={k: v for k, v in macros.items() if k not in variant.tunables})
