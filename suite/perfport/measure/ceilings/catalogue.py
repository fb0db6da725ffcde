"""Every ceiling of the suite, in the order in which they are measured."""

from __future__ import annotations

from .arithmetic import Chains
from .atomics import Atomics
from .barrier import GridBarrier
from .caches import CacheRead, ConstantRead
from .gathers import Gather
from .host import Empty, Launch, Transfer
from .kind import Kind
from .local import BANKS, LocalRead
from .matrix import MatrixRate
from .streams import Stream

_SPECIAL = {"NATIVE": (0, 1)}

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Stream("dram_read", "B/s", "read_sum", 1),
        Stream("dram_copy", "B/s", "copy", 2),
        Stream("dram_triad", "B/s", "triad", 3),
        CacheRead("l3_read", "B/s", 3),
        CacheRead("l2_read", "B/s", 2, ("l3_read",)),
        CacheRead("l1_read", "B/s", 1, ("l2_read", "l3_read")),
        LocalRead("local_read", "B/s", 1),
        LocalRead("local_conflict", "B/s", BANKS),
        ConstantRead("constant_read", "B/s"),
        Gather("gather_l2", "op/s", 2),
        Gather("gather_l1", "op/s", 1, ("gather_l2",)),
        Gather("gather_local", "op/s", 0),
        Chains("fp32_fma", "FLOP/s", "FMA", 2, (0.999, 0.001), {"QUADRATIC": (0, 1)}),
        Chains("int32_mad", "op/s", "MAD32", 2, (0, 0x9E3779B9)),
        Chains("int32_logic", "op/s", "LOGIC", 3, (0, 0x9E3779B9)),
        Chains("dp4a", "op/s", "DP4A", 8, (0, 0x01010101), vectors=False),
        MatrixRate("tf32_mma", "FLOP/s", "tf32", needs=("mma",)),
        MatrixRate("bf16_mma", "FLOP/s", "bf16", needs=("mma",)),
        MatrixRate("int8_mma", "op/s", "int8", needs=("mma",)),
        Chains("exp", "op/s", "EXP", 1, (0.0, 0.0), _SPECIAL),
        Chains("rsqrt", "op/s", "RSQRT", 1, (0.0, 0.5), _SPECIAL),
        Atomics("atomic_global_one", "op/s", "global", many=False),
        Atomics("atomic_global_many", "op/s", "global", many=True),
        Atomics("atomic_local_one", "op/s", "local", many=False),
        Atomics("atomic_local_many", "op/s", "local", many=True),
        Launch("launch_latency", "s", direction="lower"),
        Empty("empty_span", "s", direction="lower"),
        GridBarrier("grid_barrier", "s", direction="lower"),
        Transfer("h2d_pageable", "B/s", to_device=True, pinned=False),
        Transfer("h2d_pinned", "B/s", to_device=True, pinned=True),
        Transfer("d2h_pageable", "B/s", to_device=False, pinned=False),
        Transfer("d2h_pinned", "B/s", to_device=False, pinned=True),
    )
}
