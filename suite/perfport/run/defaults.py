"""Defaults of tunables: those of a device, and what a run says they were, so that later ones change no judgement of it.

Where a profile that names the device was tuned for a variant (`perfport tune`), its parameters are the variant's
defaults there; the code's own serve anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..machine.device_profile import tuned
from ..model.device import DeviceInfo
from ..model.record import Identity
from ..store.results import Run
from ..workload import Variant
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

    def of(self, workload: str, variant: type[Variant]) -> dict[str, Any]:
        """Return the default of each tunable. What was tuned for other tunables than the variant has does not count."""
        own = _defaults(variant, self._info)
        _, found = self._tuned.get(f"{workload}/{variant.problem.name}/{variant.name}", ("", None))
        fits = found and all(
            name in variant.tunables and value in (*variant.tunables[name].values, own[name])
            for name, value in found.parameters.items()
        )
        return own | found.parameters if found and fits else own


def describe(groups: Iterable[Group]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the defaults of the planned variants by device and variant, for a run's environment file."""
    by_device: dict[str, dict[str, dict[str, Any]]] = {}
    for group in groups:
        for case in group.cases:
            key = f"{group.workload}/{group.problem}/{case.identity.variant}"
            by_device.setdefault(group.device.id, {}).setdefault(key, case.defaults)
    return {device: dict(sorted(known.items())) for device, known in by_device.items()}
