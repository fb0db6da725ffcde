"""Variants of `gdn_gamma_gradient` that go through all N x N x P products: the source's ladder and its control arm."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.workload import Enqueue, Setup, Traffic, Tunable, Variant, ceil_div

from ..problems import GammaGradient
from . import inputs
from .reduction import Sums

SOURCE = "Ramble in CUDA optimization"
#: Memory of the source's NVIDIA GeForce GTX 1080, bytes.
GTX1080_BYTES = 8 << 30


class _Raw(Variant):
    """All products t[i,p] w[j,p]^2 in memory, then one sum each."""

    problem = GammaGradient
    kernel: ClassVar[str]
    arrays: ClassVar[int] = 1  # of N x N x P words
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (32, 64, 128, 256, 512), "work-items per work-group"),
        "batched": Tunable(0, (0, 1), "sums in one launch, in place of a loop of N launches"),
    }

    def __init__(self, setup: Setup) -> None:
        self.device, self.setup = setup.device, setup
        problem: GammaGradient = setup.problem
        self.data = problem
        self.group: int = setup.tunables["group"]
        self.products = problem.channels**2 * problem.positions
        self.raw, *self.more = inputs.products(setup, self.arrays, 4 * self.products)
        self.macros = {self.kernel.upper(): 1, "NHWC": int(problem.nhwc), "INVERSE": int(problem.inverse)}
        operands = [inputs.array(setup, name) for name in ("delta", "w", "d")]
        sizes = [np.uint32(n) for n in (problem.channels, problem.positions, problem.pixels)]
        self.arguments = (*operands, *sizes, self.raw)
        self.tiles = ceil_div(problem.positions, self.group)
        out = setup.output("dgamma", np.float32, (problem.channels, problem.channels))
        sums = Sums(setup, self.raw, out, self.group, bool(setup.tunables["batched"]))
        self.compile()
        self.steps = Enqueue(self.multiply, self.products_traffic()), sums

    def _kernel(self, name: str) -> Any:
        return self.setup.kernel("gamma_gradient.cl", name, **self.macros)

    def compile(self) -> None:
        """Compile the kernels that make the products."""
        self.product = self._kernel(self.kernel)

    def multiply(self) -> None:
        """Enqueue the products."""
        self.device.launch(self.product, self.data.channels * self.tiles, self.group, *self.arguments)

    def products_traffic(self) -> Traffic:
        """Of the products alone."""
        raise NotImplementedError

    @classmethod
    def bytes_needed(cls, channels: int, positions: int) -> int:
        """Device memory for a layer: delta, w, D, the products, ones, the gradient."""
        return 4 * (3 * channels * positions + cls.arrays * channels**2 * positions + positions + channels**2)

    def notes(self) -> dict[str, Any]:
        """Memory, and the most images of this size that a GTX 1080's 8 GB hold (computed)."""
        n, pixels = self.data.channels, self.data.pixels
        fixed = self.bytes_needed(n, 0)
        images = (GTX1080_BYTES - fixed) // (self.bytes_needed(n, pixels) - fixed)
        return {"bytes_needed": self.bytes_needed(n, self.data.positions), "largest_batch_gtx1080": max(images, 0)}


class Replicated(_Raw):
    """Every row and column copied: all products are one flat multiplication."""

    name, title, rung = "replicated", "rows and columns copied N times, one flat multiplication", 1
    source = f"{SOURCE}, less than naive"
    kernel = "replicated"
    arrays = 2

    def compile(self) -> None:
        self.replicate, self.product = self._kernel("replicate"), self._kernel("multiply")

    def multiply(self) -> None:
        groups = ceil_div(self.products, self.group)
        self.device.launch(self.replicate, groups, self.group, *self.arguments, *self.more)
        self.device.launch(self.product, groups, self.group, self.raw, *self.more, np.uint64(self.products))

    def products_traffic(self) -> Traffic:
        count = float(self.products)
        return Traffic(
            flops=(self.data.term_flops + 2) * count, dram_read=3 * self.data.map_bytes + 8 * count,
            dram_write=12 * count, global_read=24 * count, global_write=12 * count,
        )  # fmt: skip

    def notes(self) -> dict[str, Any]:
        n, positions = self.data.channels, self.data.positions
        return {**super().notes(), "wasted_bytes_per_operand": 4 * (n - 1) * n * positions, "replicated_operands": 2}


class Naive(_Raw):
    """No replication: the index modulo P finds the element of row i."""

    name, title, rung = "naive", "N launches over N x P elements, row index modulo P", 2
    source = f"{SOURCE}, naive kernel"
    kernel = "naive"

    def multiply(self) -> None:
        groups = ceil_div(self.data.channels * self.data.positions, self.group)
        for row in range(self.data.channels):
            self.device.launch(self.product, groups, self.group, *self.arguments, np.uint32(row))

    def products_traffic(self) -> Traffic:
        count = float(self.products)
        return Traffic(
            flops=(self.data.term_flops + 2) * count, dram_read=3 * self.data.map_bytes, dram_write=4 * count,
            global_read=16 * count, global_write=4 * count,
        )  # fmt: skip


class SharedMemory(_Raw):
    """delta, w and D of a tile of the row in local memory."""

    name, title, rung = "shared_memory", "a work-group per row and tile, its operands in local memory", 3
    source = f"{SOURCE}, shared memory"
    kernel = "shared_memory"

    def products_traffic(self) -> Traffic:
        count, rows = float(self.products), self.data.map_bytes
        return Traffic(
            flops=(self.data.term_flops + 2) * count, dram_read=3 * rows, dram_write=4 * count,
            global_read=4 * count + 3 * rows, global_write=4 * count, local_read=12 * count, local_write=3 * rows,
        )  # fmt: skip


class Registers(_Raw):
    """Each of delta, w and D is read once, so a register is enough."""

    name, title, rung = "registers", "a work-group per row and tile, its operands in registers", 4
    source = f"{SOURCE}, registers"
    kernel = "registers"

    def products_traffic(self) -> Traffic:
        count, rows = float(self.products), self.data.map_bytes
        return Traffic(
            flops=2 * count + self.data.term_flops * rows / 4, dram_read=3 * rows, dram_write=4 * count,
            global_read=4 * count + 3 * rows, global_write=4 * count,
        )  # fmt: skip


class ColumnPerGroup(_Raw):
    """Control: a work-group per column, where only w can be shared."""

    name, title, role, rung = "column_per_group", "a work-group per column and tile, w in local memory", "control", 5
    source = f"{SOURCE}, why rows"
    kernel = "column_per_group"

    def products_traffic(self) -> Traffic:
        count, rows = float(self.products), self.data.map_bytes
        return Traffic(
            flops=(self.data.term_flops + 2) * count, dram_read=3 * rows, dram_write=4 * count,
            global_read=12 * count + rows, global_write=4 * count, local_read=4 * count, local_write=rows,
        )  # fmt: skip
