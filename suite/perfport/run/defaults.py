"""Defaults of tunables: what a run says they were, so that later ones change no judgement of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..model.device import DeviceInfo
from ..model.record import Identity
from ..store.results import Run
from ..workload import Variant, Workload
from .cases import Group
from .sources import shipped


def defaults(run: Run, identity: Identity) -> dict[str, Any] | None:
    """Return the default of each tunable of a case's variant on its device; ``None`` where nobody knows them.

    A run says what they were. For one that does not, older than that, they are today's.
    """
    (device, *_), name = identity.devices, f"{identity.workload}/{identity.problem}/{identity.variant}"
    said: dict[str, Any] | None = ((run.environment.get("defaults") or {}).get(device) or {}).get(name)
    if said is not None:
        return said
    workload = shipped(identity.workload)
    variant = workload.variants.get(identity.problem, {}).get(identity.variant) if workload else None
    info = (run.environment.get("devices") or {}).get(device)
    return _defaults(variant, DeviceInfo.model_validate(info)) if variant and info else None


def _defaults(variant: type[Variant], info: DeviceInfo) -> dict[str, Any]:
    return {name: tunable.default_for(info) for name, tunable in variant.tunables.items()}


def describe(groups: Iterable[Group], workloads: Mapping[str, Workload]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the defaults of the planned variants by device and variant, for a run's environment file."""
    by_device: dict[str, dict[str, dict[str, Any]]] = {}
    for group in groups:
        for name in sorted({case.identity.variant for case in group.cases}):
            variant = workloads[group.workload].variant(group.problem, name)
            key = f"{group.workload}/{group.problem}/{name}"
            by_device.setdefault(group.device.id, {})[key] = _defaults(variant, group.device)
    return by_device
