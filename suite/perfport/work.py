"""Work of a problem and traffic of a variant: what bounds are computed from."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeFloat


class Work(BaseModel):
    """Useful operations and compulsory bytes of one execution of a problem.

    Compulsory means each input read once and each output written once; neither depends on the variant.

    Attributes
    ----------
    flops : float
        Useful FP32 operations (an FMA counts 2).
    integer_ops : float
        Useful integer operations.
    read_bytes, write_bytes : float
        Compulsory DRAM traffic in bytes.
    """

    model_config = ConfigDict(extra="forbid")

    flops: NonNegativeFloat = 0.0
    integer_ops: NonNegativeFloat = 0.0
    read_bytes: NonNegativeFloat = 0.0
    write_bytes: NonNegativeFloat = 0.0

    @property
    def bytes(self) -> float:
        """Compulsory bytes, read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def intensity(self) -> float:
        """Operational intensity in FLOP per compulsory byte (integer operations where there are no FLOPs)."""
        return (self.flops or self.integer_ops) / self.bytes if self.bytes else float("inf")


class Traffic(BaseModel):
    """Bytes and operations that one execution of a variant really causes, per memory level.

    Attributes
    ----------
    flops : float
        Operations issued, the needless ones included.
    dram_read, dram_write : float
        Bytes to and from DRAM.
    local_bytes : float
        Bytes read and written in local memory.
    issued_bytes : float
        Bytes of all global loads and stores as issued by work-items: what L1 or the load units see.
    provenance : str
        ``modelled`` or ``counted``.
    """

    model_config = ConfigDict(extra="forbid")

    flops: NonNegativeFloat = 0.0
    dram_read: NonNegativeFloat = 0.0
    dram_write: NonNegativeFloat = 0.0
    local_bytes: NonNegativeFloat = 0.0
    issued_bytes: NonNegativeFloat = 0.0
    provenance: str = "modelled"
