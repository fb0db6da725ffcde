"""Variants of `gdn_reduction`: the two ways in which the source sums its N x N vectors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Buffer, Enqueue, Setup, Traffic, Tunable, Variant, ceil_div

from ..problems import Reduction
from . import inputs

GROUP = Tunable({"cpu": 64, "gpu": 256}, (32, 64, 128, 256, 512), "work-items per work-group")


class Sums:
    """Sums of vectors of length P that lie one behind the other, each a product with ones.

    Parameters
    ----------
    setup : Setup
    raw : Buffer
        Vectors of ``positions`` floats.
    out : Buffer
        A float for each sum.
    group : int
        Work-items per work-group, a power of two.
    """

    def __init__(self, setup: Setup, raw: Buffer, out: Buffer, group: int) -> None:
        self.device, self.group = setup.device, group
        self.kernel = setup.kernel("reduction.cl", "sums", GROUP=group)
        self.raw, self.ones, self.out = raw, inputs.ones(setup), out
        self.positions = np.uint32(setup.problem.positions)

    def launch(self, count: int, start: int, to: int) -> None:
        """Enqueue the sums of ``count`` vectors from vector ``start`` on, which begin with sum ``to``."""
        self.device.launch(
            self.kernel,
            count,
            self.group,
            self.raw,
            self.ones,
            self.positions,
            np.uint32(start),
            np.uint32(to),
            self.out,
        )

    def traffic(self, vectors: float) -> Traffic:
        """Of as many sums: a tree over the work-items of each group. The ones stay cached, the vectors may."""
        elements, steps = vectors * float(self.positions), self.group - 1
        return Traffic(
            flops=2 * elements + steps * vectors, dram_write=4 * vectors,
            global_read=8 * elements, global_write=4 * vectors,
            local_read=4 * vectors * (2 * steps + 1), local_write=4 * vectors * (self.group + steps),
        )  # fmt: skip


def sums_of_all(setup: Setup, raw: Buffer, out: Buffer, group: int, batched: bool) -> Enqueue:
    """Return the step that sums N x N vectors, from DRAM: in one launch, or in N launches of N vectors each."""
    channels, sums = setup.problem.channels, Sums(setup, raw, out, group)
    count = channels**2 if batched else channels

    def launch() -> None:
        for first in range(0, channels**2, count):
            sums.launch(count, first, first)

    vectors = float(channels) ** 2
    return Enqueue(
        launch, Traffic.total(sums.traffic(vectors), Traffic(dram_read=4 * vectors * setup.problem.positions))
    )


class _Reduction(Variant):
    problem = Reduction
    batched: ClassVar[bool]
    tunables: ClassVar[dict[str, Tunable]] = {"group": GROUP}

    def __init__(self, setup: Setup) -> None:
        problem: Reduction = setup.problem
        raw, out = inputs.raw(setup), setup.output("sums", np.float32, problem.vectors)
        self.steps = (sums_of_all(setup, raw, out, setup.tunables["group"], self.batched),)


class ReduceGemvLoop(_Reduction):
    """N matrix-vector products with ones."""

    name, title, rung = "reduce_gemv_loop", "N launches, each the product of N vectors with ones", 1
    source = "Ramble in CUDA optimization, loop of cublasSgemv"
    batched = False


class ReduceGemmBatched(_Reduction):
    """One batched call."""

    name, title, rung = "reduce_gemm_batched", "one launch for all N x N vectors", 2
    source = "Ramble in CUDA optimization, batched GEMM"
    batched = True


class ReduceWide(Variant):
    """Plain sums by wide loads; tunables make one kernel that of GPUs and of CPUs."""

    problem = Reduction
    name, title, role, rung = "reduce_wide", "one launch, sums by wide loads", "beyond", 3
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 32, 64, 128, 256, 512), "work-items per work-group"),
        "width": Tunable({"cpu": 16, "gpu": 4}, (4, 8, 16), "elements per load"),
        "unroll": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8), "loads in flight per work-item"),
        "rows": Tunable({"cpu": 16, "gpu": 1}, (1, 2, 4, 16, 64), "vectors per work-group"),
    }

    def __init__(self, setup: Setup) -> None:
        problem: Reduction = setup.problem
        tunables, device = setup.tunables, setup.device
        kernel = setup.kernel("reduction.cl", "sums_wide", **{name.upper(): value for name, value in tunables.items()})
        vectors, group = problem.vectors, tunables["group"]
        raw, out = inputs.raw(setup), setup.output("sums", np.float32, vectors)
        groups = ceil_div(vectors, tunables["rows"])
        sizes = np.uint32(problem.positions), np.uint32(vectors)
        elements, steps = float(vectors) * problem.positions, group - 1
        sums = group * tunables["unroll"] * tunables["width"]  # that a group begins with, and joins to one
        traffic = Traffic(
            flops=elements + (sums - 1.0) * vectors, dram_read=4 * elements, dram_write=4.0 * vectors,
            global_read=4 * elements, global_write=4.0 * vectors,
            local_read=4.0 * vectors * (2 * steps + 1) * (group > 1),
            local_write=4.0 * vectors * (group + steps) * (group > 1),
        )  # fmt: skip
        self.steps = (Enqueue(lambda: device.launch(kernel, groups, group, raw, *sizes, out), traffic),)
