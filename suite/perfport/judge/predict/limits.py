"""What a variant takes of a device, and which limit or capability of another device it does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...model.arithmetic import ceil_div
from ...model.record import Identity, Record
from ...run.sources import shipped
from .devices import Device, Origin

#: Tunables that are the number of work-items of a group, where no count tells it (docs/add-a-variant.md).
GROUPS = ("group", "work_group")
#: Units without which a variant that names them cannot run.
MATRIX = ("tf32_mma", "bf16_mma", "int8_mma")
#: Registers of a work-item up to which compilers of any time are taken not to spill, where no limit is told.
FEW_REGISTERS = 64


@dataclass(frozen=True)
class Footprint:
    """What a variant takes, as far as it is known.

    Attributes
    ----------
    group : int or None
        Work-items of its largest work-group.
    registers : int or None
        Of a work-item, at most over its kernels, as CUDA's compiler told for the device it was measured on.
    local : int
        Bytes of local memory of a work-group.
    dynamic_local : bool
        It uses local memory, and how much is not told: CUDA's compiler does not know of what a launch asks for.
    device_bytes : int or None
    """

    group: int | None = None
    registers: int | None = None
    local: int = 0
    dynamic_local: bool = False
    device_bytes: int | None = None


def footprint(record: Record, group: int | None, local: int | None) -> Footprint:
    """Return what a measured variant takes.

    Parameters
    ----------
    group : int, optional
        Of the largest launch, where it was counted.
    local : int, optional
        Bytes of a work-group that another runtime, which knows all of it, told of the same variant and size.
    """
    kernels: Mapping[str, Any] = record.resources
    registers = [each["registers"] for each in kernels.values() if each.get("registers")]
    told = max((int(each.get("local_bytes") or 0) for each in kernels.values()), default=0)
    uses = bool(record.traffic and record.traffic.local_bytes)
    stated = next((record.identity.tunables[name] for name in GROUPS if name in record.identity.tunables), None)
    return Footprint(
        group or (stated if isinstance(stated, int) else None), max(registers, default=None), max(told, local or 0),
        uses and not max(told, local or 0), record.overheads.device_bytes,
    )  # fmt: skip


@cache
def _needs(workload: str, problem: str, variant: str) -> tuple[str, ...]:
    """What a variant that ships or is installed needs; nothing of others, which nobody can ask."""
    known = _workload(workload)
    cls = known.variants.get(problem, {}).get(variant) if known else None
    return cls.needs if cls else ()


_workload = cache(shipped)


def unsupported(identity: Identity, unit: str | None, taken: Footprint, device: Device) -> str | None:
    """Return why a variant cannot run on a device; ``None`` where nothing is known that speaks against it."""
    needs = _needs(identity.workload, identity.problem, identity.variant)
    if missing := [need for need in needs if need not in device.capabilities]:
        return f"needs {', '.join(missing)}"
    if unit in MATRIX and device.origins.get(unit, Origin.ASSUMED) is Origin.ASSUMED:
        return f"needs matrix units ({unit})"
    limits = device.hierarchy
    most = limits.get("max_work_group")
    if taken.group and most and taken.group > most:
        return f"work-groups of {taken.group}, at most {most:.0f}"
    local = limits.get("group_local_memory") or limits.get("local_memory")
    if local and taken.local > local:
        return f"{taken.local} B of local memory, has {local:.0f}"
    if (memory := limits.get("memory")) and (taken.device_bytes or 0) > memory:
        return f"{(taken.device_bytes or 0) / 1e9:.2f} GB of device memory, has {memory / 1e9:.2f}"
    if resident(taken, device) == 0:
        return "no work-group fits a compute unit: registers or local memory"
    return None


def resident(taken: Footprint, device: Device) -> int | None:
    """Return how many work-groups a compute unit holds at once; ``None`` where the device does not tell."""
    limits = device.hierarchy
    width, threads = limits.get("hardware_thread"), limits.get("resident_threads_per_cu")
    if not (taken.group and width and threads):
        return None
    wide = ceil_div(taken.group, int(width))
    groups = [threads // wide, limits.get("resident_groups_per_cu") or math.inf]
    if taken.local and limits.get("local_memory"):
        groups.append(limits["local_memory"] // taken.local)
    if taken.registers and limits.get("registers"):
        each = min(taken.registers, limits.get("max_registers_per_thread") or taken.registers)
        groups.append(limits["registers"] // (each * wide * width))
    return int(min(groups))


def occupancy(taken: Footprint, device: Device) -> float | None:
    """Return the share of the hardware threads that a compute unit can hold; ``None`` where it is not known.

    Registers are those of the compiler of the device that was measured: another one needs more or fewer.
    """
    groups, limits = resident(taken, device), device.hierarchy
    if groups is None or taken.group is None:
        return None
    return min(1.0, groups * ceil_div(taken.group, int(limits["hardware_thread"])) / limits["resident_threads_per_cu"])


def registers_short(taken: Footprint, device: Device) -> str:
    """Return why registers may be spilled to memory on a device; empty where nothing says so."""
    if not taken.registers or device.kind == "cpu" or device.runtime:
        return ""
    most = device.hierarchy.get("max_registers_per_thread")
    if most and taken.registers > most:
        return f"{taken.registers} registers of a work-item, at most {most:.0f}: what is spilled is not known"
    if most is None and taken.registers > FEW_REGISTERS:
        return f"what a compiler of its time spills of {taken.registers} registers is not known"
    return ""
