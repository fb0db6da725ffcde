"""Defaults of tunables: those of a device, and what a run says they were, so that later ones change no judgement of it.

Where a profile that names the device was tuned for a variant (`perfport tune`), its parameters are the variant's
defaults there, at any size: those that were found at the nearest. The code's own serve anywhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from ..machine.device_profile import tuned
from ..machine.tuned import Size, Tuned, nearest_size
from ..model.device import DeviceInfo
from ..model.record import Identity
from ..store.results import Run
from ..workload import Problem, Variant
from .cases import Group
from .sources import shipped


def defaults(run: Run, identity: Identity) -> dict[str, Any] | None:
    """Return the default of each tunable of a case's variant on its device; ``None`` where nobody knows them.

    A run says what they were: older ones of each variant, whatever the size. For one that does not, older than that,
    they are today's of the code, of those tunables that the case has.
    """
    (device, *_), name = identity.devices, f"{identity.workload}/{identity.problem}/{identity.variant}"
    held: dict[str, dict[str, Any]] = (run.environment.get("defaults") or {}).get(device) or {}
    said = held.get(_at(identity), held.get(name))
    if said is not None:
        return said
    workload = shipped(identity.workload)
    variant = workload.variants.get(identity.problem, {}).get(identity.variant) if workload else None
    info = (run.environment.get("devices") or {}).get(device)
    if variant is None or info is None:
        return None
    known = _defaults(variant, DeviceInfo.model_validate(info))
    return {name: value for name, value in known.items() if name in identity.tunables}


def _defaults(variant: type[Variant], info: DeviceInfo) -> dict[str, Any]:
    return {name: tunable.default_for(info) for name, tunable in variant.tunables.items()}


def size_of(problem: type[Problem], parameters: Mapping[str, Any]) -> Size:
    """Return parameters of a problem as a size, which can be compared with those of its presets."""
    return Size(_whole(problem, parameters), _presets(problem))


def size_at(identity: Identity) -> Size | None:
    """Return the size of a case; ``None`` where its problem does not ship, is gone, or has other parameters now."""
    problem = _problem(identity.workload, identity.problem)
    try:
        return size_of(problem, identity.parameters) if problem else None
    except ValidationError:
        return None


@cache
def _problem(workload: str, name: str) -> type[Problem] | None:
    held = shipped(workload)
    return held.problems.get(name) if held else None


@cache
def _presets(problem: type[Problem]) -> dict[str, dict[str, Any]]:
    return {name: _whole(problem, each) for name, each in problem.presets.items()}


def _whole(problem: type[Problem], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with the defaults of those that are not set."""
    return problem.Parameters.model_validate(dict(parameters)).model_dump()


class Defaults:
    """The defaults of variants on a device.

    Parameters
    ----------
    info : DeviceInfo
    own : bool
        Those of the code alone, whatever was tuned.
    """

    def __init__(self, info: DeviceInfo, own: bool = False) -> None:
        self._info = info
        self._tuned = {} if own else tuned(info)

    def of(self, workload: str, variant: type[Variant], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the default of each tunable at parameters of the variant's problem.

        What was tuned for other tunables than the variant has does not count.
        """
        own = _defaults(variant, self._info)
        known = self._tuned.get(f"{workload}/{variant.problem.name}/{variant.name}", [])
        fitting = [each for _, each in known if _fits(each, variant, own)]
        found = nearest_size(fitting, size_of(variant.problem, parameters))
        return own | found.parameters if found else own


def _fits(found: Tuned, variant: type[Variant], own: Mapping[str, Any]) -> bool:
    return all(
        name in variant.tunables and value in (*variant.tunables[name].values, own[name])
        for name, value in found.parameters.items()
    )


def describe(groups: Iterable[Group]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the defaults of the planned variants by device, variant and size, for a run's environment file."""
    by_device: dict[str, dict[str, dict[str, Any]]] = {}
    for group in groups:
        for case in group.cases:
            by_device.setdefault(group.device.id, {}).setdefault(_at(case.identity), case.defaults)
    return {device: dict(sorted(known.items())) for device, known in by_device.items()}


def with_more(environment: Mapping[str, Any], groups: Iterable[Group]) -> dict[str, Any]:
    """Return what an environment file says, with the defaults of what is planned now at sizes that it lacks.

    One that says nothing of defaults stays as it is: nobody knows any more what they were.
    """
    said = environment.get("defaults")
    if said is None:
        return dict(environment)
    now = describe(groups)
    more = {
        device: {at: values for at, values in known.items() if at.partition(" ")[0] not in said.get(device, {})}
        for device, known in now.items()
    }
    merged = {device: {**more.get(device, {}), **said.get(device, {})} for device in {**more, **said}}
    return {**environment, "defaults": merged}


def _at(identity: Identity) -> str:
    """What an environment file calls a variant at a size."""
    told = json.dumps(identity.parameters, sort_keys=True)
    return f"{identity.workload}/{identity.problem}/{identity.variant} {told}"
