"""Variants of `gdn_gamma_gradient` that go through all N x N x P products: the source's ladder and its control arm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Enqueue, Setup, Traffic, Tunable, Variant, ceil_div

from ..problems import Backward, GammaGradient
from . import inputs
from .reduction import GROUP, Sums, sums_of_all

SOURCE = "Ramble in CUDA optimization"
#: Memory of the source's NVIDIA GeForce GTX 1080, bytes.
GTX1080_BYTES = 8 << 30


def layout(setup: Setup) -> dict[str, int]:
    """Return the macros that say how maps lie in memory, and which way the layer goes."""
    return {"NHWC": int(setup.problem.nhwc), "INVERSE": int(setup.problem.inverse)}


def operands(setup: Setup) -> tuple[Any, ...]:
    """Return the arguments that the kernels of this module begin with."""
    sizes = setup.problem.channels, setup.problem.positions, setup.problem.pixels
    return (*(inputs.array(setup, name) for name in ("delta", "w", "d")), *(np.uint32(size) for size in sizes))


def largest_batch(bytes_needed: Callable[[int, int], int], channels: int, pixels: int) -> int:
    """Return the most images that a GTX 1080's 8 GB hold, by bytes needed for channels and positions (computed)."""
    fixed = bytes_needed(channels, 0)
    return max((GTX1080_BYTES - fixed) // (bytes_needed(channels, pixels) - fixed), 0)


def memory_notes(bytes_needed: Callable[[int, int], int], data: GammaGradient) -> dict[str, Any]:
    """Return the bytes needed, and the largest batch of such images on a GTX 1080."""
    return {
        "bytes_needed": bytes_needed(data.channels, data.positions),
        "largest_batch_gtx1080": largest_batch(bytes_needed, data.channels, data.pixels),
    }


class _Raw(Variant):
    """All products t[i,p] w[j,p]^2 in memory, then one sum each."""

    problem = GammaGradient
    kernel: ClassVar[str]
    arrays: ClassVar[int] = 1  # of N x N x P words
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": GROUP,
        "batched": Tunable(0, (0, 1), "sums in one launch, in place of a loop of N launches"),
    }

    def __init__(self, setup: Setup) -> None:
        self.device, self.setup = setup.device, setup
        problem: GammaGradient = setup.problem
        self.data = problem
        self.group: int = setup.tunables["group"]
        self.products = problem.channels**2 * problem.positions
        self.raw, *self.more = inputs.products(setup, self.arrays, 4 * self.products)
        self.macros = {self.kernel.upper(): 1, **layout(setup)}
        self.arguments = (*operands(setup), self.raw)
        self.tiles = ceil_div(problem.positions, self.group)
        out = setup.output("dgamma", np.float32, (problem.channels, problem.channels))
        sums = sums_of_all(setup, self.raw, out, self.group, bool(setup.tunables["batched"]))
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
        """Memory, of which products are the most."""
        return memory_notes(self.bytes_needed, self.data)


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


class Rows:
    """The step that makes and sums the products of one row of gamma after another, in an array of N x P words."""

    def __init__(self, setup: Setup, dgamma: Buffer) -> None:
        self.device, self.data, self.group = setup.device, setup.problem, setup.tunables["group"]
        self.array = setup.scratch(int(self.data.map_bytes))
        self.kernel = setup.kernel("gamma_gradient.cl", "row_by_row", ROW_BY_ROW=1, **layout(setup))
        self.operands = operands(setup)
        self.sums = Sums(setup, self.array, dgamma, self.group)

    def launch(self) -> None:
        """Enqueue 2 N launches."""
        channels, groups = self.data.channels, ceil_div(self.data.positions, self.group)
        for row in range(channels):
            self.device.launch(self.kernel, groups, self.group, *self.operands, self.array, np.uint32(row))
            self.sums.launch(channels, 0, row * channels)

    def traffic(self) -> Traffic:
        """The array is written and read N times; it need not leave the cache."""
        maps, count = self.data.map_bytes, float(self.data.channels) ** 2 * self.data.positions
        products = Traffic(
            flops=2 * count + self.data.term_flops * maps / 4, dram_read=3 * maps,
            global_read=4 * count + 3 * maps, global_write=4 * count,
        )  # fmt: skip
        return Traffic.total(products, self.sums.traffic(float(self.data.channels) ** 2))


class RowByRow(Variant):
    """The memory that the source saves: N x P words of products, where the other rungs hold N x N x P."""

    problem = GammaGradient
    name, title, rung = (
        "row_by_row",
        "registers for one row at a time, N x P products that are summed before the next",
        5,
    )
    source = f"{SOURCE}, reduction"
    tunables: ClassVar[dict[str, Tunable]] = {"group": GROUP}

    def __init__(self, setup: Setup) -> None:
        self.data: GammaGradient = setup.problem
        self.steps = (Rows(setup, setup.output("dgamma", np.float32, (self.data.channels, self.data.channels))),)

    @staticmethod
    def bytes_needed(channels: int, positions: int) -> int:
        """Device memory for a layer: delta, w, D, the products of a row, ones, the gradient."""
        return 4 * (4 * channels * positions + positions + channels**2)

    def notes(self) -> dict[str, Any]:
        """As of the other rungs."""
        return memory_notes(self.bytes_needed, self.data)


class SeparateGradients(Variant):
    """The formulas one after the other: t in memory, its sums by a product with ones, dL/dw, dL/dgamma row by row."""

    problem = Backward
    name, rung = "separate_gradients", 1
    title = "t in memory, dbeta its product with ones, dw a sum over channels for each element, dgamma as row_by_row"
    source = f"{SOURCE}, the three gradients"
    tunables: ClassVar[dict[str, Tunable]] = {"group": GROUP}

    def __init__(self, setup: Setup) -> None:
        data: Backward = setup.problem
        device, group, n = setup.device, setup.tunables["group"], data.channels
        groups = ceil_div(n * data.positions, group)
        terms, dw, dgamma, dbeta = (
            setup.scratch(int(data.map_bytes)), setup.output("dw", np.float32, data.w.shape),
            setup.output("dgamma", np.float32, (n, n)), setup.output("dbeta", np.float32, n),
        )  # fmt: skip
        make, multiply = (
            setup.kernel("gamma_gradient.cl", name, SEPARATE=1, **layout(setup)) for name in ("terms", "input_gradient")
        )
        arguments, gamma = operands(setup), inputs.array(setup, "gamma")
        sums, maps, count = Sums(setup, terms, dbeta, group), data.map_bytes, float(n) ** 2 * data.positions
        self.steps = (
            Enqueue(
                lambda: device.launch(make, groups, group, *arguments, terms),
                Traffic(
                    flops=data.term_flops * maps / 4, dram_read=3 * maps, dram_write=maps,
                    global_read=3 * maps, global_write=maps,
                ),
            ),
            Enqueue(
                lambda: sums.launch(n, 0, 0), Traffic.total(sums.traffic(n), Traffic(dram_read=maps))
            ),
            Enqueue(
                lambda: device.launch(multiply, groups, group, *arguments, terms, gamma, dw),
                Traffic(
                    flops=2 * count + (5 if data.inverse else 4) * maps / 4, dram_read=4 * maps + 4.0 * n**2,
                    dram_write=maps,
                    global_read=8 * count + 3 * maps, global_write=maps,
                ),
            ),
            Rows(setup, dgamma),
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
