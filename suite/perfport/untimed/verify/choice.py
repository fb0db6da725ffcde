"""Which variants ``perfport verify`` runs, where, and under which tool."""

from __future__ import annotations

from collections.abc import Sequence

from ...machine.device_profile import load_profile
from ...model.errors import UsageError
from ...run.listing import usable_devices
from ...workload import discover
from . import Task, chosen, on_devices, on_simulator


def tasks_for(
    pattern: str,
    *,
    sanitize: bool = False,
    profile: str | None = None,
    devices: Sequence[str] | None = None,
    workloads: Sequence[str] = (),
    seed: int = 1,
) -> list[Task]:
    """Return what the options of ``perfport verify`` ask for; devices and tools are looked for last.

    Raises
    ------
    UsageError
        If a name names nothing, or no variant contains the pattern.
    InfrastructureError
        Without a device that is meant.
    UnavailableError
        Without the simulator that ``sanitize`` without devices needs.
    """
    tuning = load_profile(profile, "--profile: ") if profile else None
    known = discover(workloads)
    if not chosen(known, pattern):
        raise UsageError(f"verify: no variant's workload/problem/variant contains {pattern!r}")
    if sanitize and not devices:
        return on_simulator(known, seed, pattern, tuning)
    return on_devices(known, usable_devices(devices), seed, pattern, tuning, sanitize=sanitize)
