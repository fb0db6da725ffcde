"""What readers call the ceilings, and the terms of bounds that are named after them; the order they are shown in."""

from __future__ import annotations

from collections.abc import Iterable

LABELS = {
    "steps": "dependent steps",
    "dram": "DRAM",
    "dram_read": "DRAM read",
    "dram_copy": "DRAM copy",
    "dram_triad": "DRAM triad",
    "l3_read": "L3",
    "l2_read": "L2",
    "l1_read": "issued (L1)",
    "local_read": "local memory",
    "local_conflict": "local memory, conflicts",
    "constant_read": "constant memory",
    "gather_l2": "gathers from L2",
    "gather_l1": "gathers from L1",
    "gather_local": "gathers from local memory",
    "fp32_fma": "FP32 FMA",
    "tf32_mma": "TF32 matrix",
    "bf16_mma": "BF16 matrix",
    "int32_mad": "INT32 mad",
    "int32_logic": "INT32 logic",
    "int24_mad": "INT24 mad",
    "int16_mad": "INT16 mad",
    "dp4a": "dp4a",
    "int8_mma": "INT8 matrix",
    "exp": "special",
    "rsqrt": "special",
    "atomic_global_many": "global atomics",
    "atomic_global_one": "global atomics, one address",
    "atomic_local_many": "local atomics",
    "atomic_local_one": "local atomics, one address",
    "grid_barrier": "barrier across the device",
    "launch_latency": "launch latency",
    "empty_span": "empty execution",
    "h2d_pageable": "transfer to the device, pageable",
    "h2d_pinned": "transfer to the device",
    "d2h_pageable": "transfer from the device, pageable",
    "d2h_pinned": "transfer from the device",
}
#: Units of floating-point operations that a variant may name; `roofline.INTEGER_UNITS` are the others.
FLOP_UNITS = ("fp32_fma", "tf32_mma", "bf16_mma")
_PLACE = {name: place for place, name in enumerate(LABELS)}


def label(name: str) -> str:
    """Return what a ceiling, or the term of a bound that has its name, is called; an unknown one keeps its name."""
    return LABELS.get(name, name)


def ordered(names: Iterable[str]) -> list[str]:
    """Return names of ceilings in the order of tables: memory from far to near, arithmetic, the rest; unknown last."""
    return sorted(set(names), key=lambda name: (_PLACE.get(name, len(_PLACE)), name))
