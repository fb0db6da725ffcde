"""Work of a problem and traffic of a variant: what bounds are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from pydantic import BaseModel, NonNegativeFloat

from .arithmetic import geometric_mean
from .schema import Model

Amounts = TypeVar("Amounts", bound=BaseModel)


def mean_of(amounts: Sequence[Amounts]) -> Amounts:
    """Return the geometric mean of several works, or of several traffics, field by field.

    The bound that follows from it is below the geometric mean of the single bounds, or equal to it where one resource
    binds all: no mean of times can be less. A field that is zero or unknown in one of them is so in the mean.
    """
    first = amounts[0]
    if len(amounts) == 1:
        return first
    columns = {name: [getattr(amount, name) for amount in amounts] for name in type(first).model_fields}
    means = {
        name: None if None in column else geometric_mean(column)
        for name, column in columns.items()
        if not isinstance(column[0], str)
    }
    return first.model_copy(update=means)


class Work(Model):
    """Useful operations and compulsory bytes of one execution of a problem.

    Compulsory means each input read once and each output written once; neither depends on the variant.

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
    """

    flops: NonNegativeFloat = 0.0
    integer_ops: NonNegativeFloat = 0.0
    read_bytes: NonNegativeFloat = 0.0
    write_bytes: NonNegativeFloat = 0.0
    host_bytes: NonNegativeFloat = 0.0

    def on(self, kind: str) -> Work:
        """Return the work as it is on a device of this kind, ``cpu`` or another."""
        return self.model_copy(update={"host_bytes": 0.0}) if kind == "cpu" else self

    def moved(self) -> Work:
        """Return the bytes alone, for what may do with fewer operations."""
        return self.model_copy(update={"flops": 0.0, "integer_ops": 0.0})

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
