"""Work of a problem and traffic of a variant: what bounds are computed from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, NonNegativeFloat, PositiveFloat

from .arithmetic import geometric_mean
from .schema import Model

Amounts = TypeVar("Amounts", bound=BaseModel)


def mean_of(amounts: Sequence[Amounts]) -> Amounts:
    """Return the geometric mean of several works, or of several traffics, field by field.

    The bound that follows from it is below the geometric mean of the single bounds, or equal to it where one resource
    binds all: no mean of times can be less. A field that is zero or unknown in one of them is so in the mean. Of units
    the least multiplicity counts: with means the bound could be above those of works that favour different ones.
    """
    first = amounts[0]
    if len(amounts) == 1:
        return first
    columns = {name: [getattr(amount, name) for amount in amounts] for name in type(first).model_fields}
    return first.model_copy(update={name: _mean(column) for name, column in columns.items()})


def _mean(column: list[Any]) -> Any:
    first = column[0]
    if isinstance(first, dict):
        names = {name: None for each in column for name in each}
        return {name: min(each[name] for each in column if name in each) for name in names}
    if isinstance(first, str):
        return first
    return None if None in column else geometric_mean(column)


class Work(Model):
    """What every correct method of a precision class has to do in one execution of a problem: no variant changes it.

    Compulsory bytes are those of each input read once and each output written once.

    Attributes
    ----------
    flops : float
        Useful FP32 operations (an FMA counts 2).
    integer_ops : float
        Useful integer operations (a multiply-add counts 2).
    read_bytes, write_bytes : float
        Compulsory DRAM traffic in bytes.
    host_bytes : float
        Bytes that lie in host memory at the start and must go to the device; a CPU has them already.
    load_bytes : float
        Bytes that work-items must load from on-chip memory: of operands that are used once at each address, so that
        registers cannot hold them for a second use.
    launches : float
        1, or 0 where a launch costs nothing by itself.
    barriers : float
        Length of the longest chain of barriers across the whole device: how often in turn every work-group needs what
        all others did before.
    float_units, integer_units : dict of str to float
        Units that can do these operations within the class's tolerance, by the names of their ceilings, and how many
        operations of the unit one useful operation takes: 3 where a product takes three, less than 1 where a method
        needs fewer operations than are counted.
    """

    flops: NonNegativeFloat = 0.0
    integer_ops: NonNegativeFloat = 0.0
    read_bytes: NonNegativeFloat = 0.0
    write_bytes: NonNegativeFloat = 0.0
    host_bytes: NonNegativeFloat = 0.0
    load_bytes: NonNegativeFloat = 0.0
    launches: NonNegativeFloat = 1.0
    barriers: NonNegativeFloat = 0.0
    float_units: dict[str, PositiveFloat] = {"fp32_fma": 1.0}
    integer_units: dict[str, PositiveFloat] = {"int32_mad": 1.0, "int32_logic": 1.0, "int24_mad": 1.0, "int16_mad": 1.0}

    def on(self, kind: str) -> Work:
        """Return the work as it is on a device of this kind, ``cpu`` or another.

        A CPU has the host's bytes; a core of it needs neither launches nor barriers. Its unit for
        products of bytes are dot products of four, which are done where FMAs are and four times as many (VPDPBUSD
        beside VFMADD, Intel 64 and IA-32 Architectures Optimization Reference Manual); no ceiling measures them.
        """
        if kind != "cpu":
            return self
        units = dict(self.integer_units)
        if bytes_ := units.get("int8_mma"):
            units["fp32_fma"] = min(bytes_ / 4, units.get("fp32_fma", math.inf))
        return self.model_copy(update={"host_bytes": 0.0, "launches": 0.0, "barriers": 0.0, "integer_units": units})

    @property
    def bytes(self) -> float:
        """Compulsory bytes, read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def intensity(self) -> float:
        """Operational intensity in FLOP per compulsory byte (integer operations where there are no FLOPs)."""
        return (self.flops or self.integer_ops) / self.bytes if self.bytes else float("inf")


class Traffic(Model):
    """Operations and bytes that one execution of a variant really causes, per memory level.

    Attributes
    ----------
    flops : float
        FP32 additions, multiplications and divisions, the needless ones included (an FMA counts 2). Comparisons,
        selections, minima, maxima, conversions and changes of sign are not counted.
    special_ops : float
        Calls of exp, log, sqrt, rsqrt, sin, cos, pow and the like, one each.
    integer_ops : float
        Integer arithmetic on data, one per instruction (a multiply-add counts 2): what ends in a stored value or in a
        decision about loaded data. Addresses and loop counters are not counted.
    dram_read, dram_write : float
        Bytes to and from DRAM.
    l2_bytes : float, optional
        Bytes between the second-level cache and the compute units; ``None`` where nobody knows.
    global_read, global_write : float
        Bytes of loads and stores of global memory as work-items issue them.
    constant_read, image_read, image_write : float
        The same for the constant address space and for images.
    local_read, local_write : float
        The same for local memory.
    global_atomics, local_atomics : float
        Atomic operations (not bytes; they are in no other figure).
    provenance : str
        ``modelled`` by the variant, or ``counted`` by a tool.
    """

    flops: NonNegativeFloat = 0.0
    special_ops: NonNegativeFloat = 0.0
    integer_ops: NonNegativeFloat = 0.0
    dram_read: NonNegativeFloat = 0.0
    dram_write: NonNegativeFloat = 0.0
    l2_bytes: NonNegativeFloat | None = None
    global_read: NonNegativeFloat = 0.0
    global_write: NonNegativeFloat = 0.0
    constant_read: NonNegativeFloat = 0.0
    image_read: NonNegativeFloat = 0.0
    image_write: NonNegativeFloat = 0.0
    local_read: NonNegativeFloat = 0.0
    local_write: NonNegativeFloat = 0.0
    global_atomics: NonNegativeFloat = 0.0
    local_atomics: NonNegativeFloat = 0.0
    provenance: Literal["modelled", "counted"] = "modelled"

    @classmethod
    def total(cls, *parts: Traffic) -> Traffic:
        """Return the sum of what several launches cause, as a model; L2 bytes stay unknown."""
        names = [name for name in cls.model_fields if name not in ("l2_bytes", "provenance")]
        return cls(**{name: sum(getattr(part, name) for part in parts) for name in names})

    @property
    def dram_bytes(self) -> float:
        """Bytes to and from DRAM."""
        return self.dram_read + self.dram_write

    @property
    def issued_bytes(self) -> float:
        """Bytes that work-items ask of the first-level cache: everything issued but local memory and atomics."""
        return self.global_read + self.global_write + self.constant_read + self.image_read + self.image_write

    @property
    def local_bytes(self) -> float:
        """Bytes read and written in local memory."""
        return self.local_read + self.local_write
