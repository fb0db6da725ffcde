"""The portable engine: products tiled over work-groups, with operands in local memory (``fused.cl``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Enqueue, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from . import inputs
from .engine import Engine
from .fused import variants

WARP = 32  # work-items that the kernel lays out as one block, of dgamma LANES of them side by side in a row
LANES = 8
GAMMA_ITEMS = ((12, 12), (8, 16), (8, 8), (4, 4))  # rows and columns of dgamma per work-item, the best first
FINISH_GROUP = 64
LEAST_GROUP = 256  # what GPUs' runtimes take at least, of kernels that need many registers, too
PACK_GROUP = 64


@dataclass(frozen=True)
class OverPositions:
    """A step whose columns are positions: a kernel, the macro that selects it, further macros and arguments.

    Gamma or its transpose is multiplied by staged values, each made of ``arrays`` words by ``staged_flops`` operations.
    """

    kernel: str
    which: str
    macros: dict[str, int]
    arguments: tuple[Any, ...]
    of_transpose: bool
    arrays: int
    staged_flops: int


class Tiled(Engine):
    """A tile of channels by positions (dgamma: by channels) per work-group, a smaller one per work-item."""

    name, title, rung = "fused_{problem}", "{what}", 10
    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "item_rows": Tunable({"cpu": 4, "gpu": 12}, (4, 8, 12, 16), "channels per work-item, at most"),
        "item_columns": Tunable(4, (4, 8, 12, 16), "positions per work-item"),
        "down": Tunable(
            {"cpu": 8, "gpu": 20}, (4, 8, 12, 16, 20), "work-items side by side along the channels, at most"
        ),
        "across": Tunable(8, (4, 8, 16, 32), "work-items side by side along the positions"),
        "depth": Tunable(8, (4, 8, 16, 32), "channels of gamma per step"),
        "staged": Tunable({"cpu": 64, "gpu": 192}, (32, 64, 96, 192, 320), "channels staged at once, at most"),
        "fetches": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 3, 4, 6, 12), "vectors that are fetched ahead of being staged"),
        "unroll": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8, 16), "turns of the inner loop that are unrolled"),
        "resident": Tunable(
            640, (256, 384, 512, 640, 768), "work-items to a compute unit that registers are saved for"
        ),
    }
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        "gamma_rows": Tunable({"cpu": 32, "gpu": 96}, (32, 64, 96, 128), "rows of a tile of dgamma, at most"),
        "gamma_columns": Tunable(
            {"cpu": 32, "gpu": 320}, (32, 64, 96, 192, 320), "columns of a tile of dgamma, at most"
        ),
        "gamma_item": Tunable({"cpu": 4, "gpu": 12}, (4, 8, 12), "rows of dgamma per work-item, at most"),
        "gamma_depth": Tunable(8, (4, 8, 16, 32), "positions per step of dgamma's product"),
        "gamma_unroll": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8, 16), "as unroll, in dgamma's product"),
        "run": Tunable({"cpu": 4096, "gpu": 2048}, (512, 1024, 2048, 4096, 8192), "positions summed in one register"),
    }

    def _shape(self) -> dict[str, int]:
        """Macros of the shape of a tile of channels by positions."""
        t = self.tunables
        unit = WARP // math.gcd(WARP, t["across"])  # rows of work-items in a hardware thread
        tiles = [
            (even_tile(self.channels, t["down"] * rows, unit * rows), rows) for rows in range(t["item_rows"], 3, -4)
        ]  # fmt: skip
        tile, rows = min(tiles, key=lambda candidate: round_up(self.channels, candidate[0]))
        columns, depth = t["across"] * t["item_columns"], t["depth"]
        room = self.device.info.local_memory_bytes // 4 - 2 * depth * tile
        turns = ceil_div(self.channels, max(depth, min(t["staged"], room // columns)))
        staged = ceil_div(self.channels, turns * depth) * depth
        return {
            "ROWS": tile, "ITEM_ROWS": rows, "COLUMNS": columns, "ITEM_COLUMNS": t["item_columns"], "DEPTH": depth,
            "STAGED": staged, "FETCHES": t["fetches"], "UNROLL": t["unroll"],
            "RESIDENT": max(1, t["resident"] // (t["across"] * tile // rows)),
        }  # fmt: skip

    def _gamma_shape(self) -> dict[str, int]:
        """Macros of the shape of a tile of dgamma."""
        t = self.tunables

        def tile(item: tuple[int, int]) -> tuple[int, int]:
            """Of hardware threads with LANES work-items side by side along the columns."""
            return (
                even_tile(self.channels, t["gamma_rows"], WARP // LANES * item[0]),
                even_tile(self.channels, t["gamma_columns"], LANES * item[1]),
            )

        items = [item for item in GAMMA_ITEMS if item[0] <= t["gamma_item"]]
        most = self._most_items()
        fitting = [item for item in items if math.prod(tile(item)) <= most * math.prod(item)] or items[-1:]
        item = min(fitting, key=lambda item: math.prod(round_up(self.channels, side) for side in tile(item)))
        rows, columns = tile(item)
        return {
            "ROWS": rows, "COLUMNS": columns, "ITEM_ROWS": item[0], "ITEM_COLUMNS": item[1], "LANES": LANES,
            "DEPTH": t["gamma_depth"], "UNROLL": t["gamma_unroll"],
        }  # fmt: skip

    def _most_items(self) -> int:
        """Work-items that a group of any kernel may have, of which OpenCL runtimes of GPUs may state more."""
        info = self.device.info
        stated = info.kind == "cpu" or "opencl" not in info.capabilities or "full_groups" in info.capabilities
        return info.max_work_group if stated else min(info.max_work_group, LEAST_GROUP)

    def _local_bytes(self, shape: dict[str, int]) -> int:
        """Bytes of local memory of dgamma's product, checked against the device's limit."""
        return self._fitting(8 * shape["DEPTH"] * (shape["ROWS"] + shape["COLUMNS"]))

    def _fitting(self, nbytes: int) -> int:
        info = self.device.info
        if nbytes > info.local_memory_bytes:
            raise UnsupportedError(
                f"the tiles need {nbytes} bytes of local memory, {info.id} has {info.local_memory_bytes}"
            )
        return nbytes

    def _groups_per_unit(self, shape: dict[str, int]) -> int:
        """Work-groups of dgamma's product that a compute unit gets, if there are positions enough."""
        return 4

    def _maps_read(self, shape: dict[str, int], down: int, across: int) -> int:
        """Arrays of a map's size that the tiles of dgamma read: three for rows, one for columns."""
        return 3 * across + down

    def _items(self, shape: dict[str, int]) -> int:
        return shape["ROWS"] // shape["ITEM_ROWS"] * (shape["COLUMNS"] // shape["ITEM_COLUMNS"])

    def _depth(self, shape: dict[str, int]) -> int:
        """The inner dimension of a step."""
        return shape["DEPTH"]

    def _beta_readers(self, shape: dict[str, int]) -> int:
        """Work-items of a group that read the same word of beta."""
        return shape["COLUMNS"] // shape["ITEM_COLUMNS"]

    def _multiply(self, shape: dict[str, int], tiles: float, inner: float) -> Traffic:
        """Of the product over positions alone, rows from global memory and both operands through local memory."""
        sums = tiles * inner * shape["ROWS"] * shape["COLUMNS"]
        return Traffic(
            flops=2 * sums, global_read=4 * tiles * inner * shape["ROWS"],
            local_write=4 * tiles * inner * (shape["ROWS"] + shape["COLUMNS"]),
            local_read=4 * sums * (1 / shape["ITEM_ROWS"] + 1 / shape["ITEM_COLUMNS"]),
        )  # fmt: skip

    def _multiply_gamma(self, shape: dict[str, int], tiles: float, inner: float) -> Traffic:
        """Of dgamma's product alone, both operands staged."""
        sides, per_item = shape["ROWS"] + shape["COLUMNS"], shape["ITEM_ROWS"] + shape["ITEM_COLUMNS"]
        return Traffic(
            flops=2 * tiles * inner * shape["ROWS"] * shape["COLUMNS"], local_write=4 * tiles * inner * sides,
            local_read=4 * tiles * inner * self._items(shape) * per_item,
        )  # fmt: skip

    def _kernel(self, name: str, which: str, **macros: int) -> Any:
        return self.setup.kernel("fused.cl", name, **{which: 1}, VECTOR=self._vector(), **self.macros, **macros)

    def _vector(self) -> int:
        """Words of an access: 4 where all that accesses go along holds a multiple of 4."""
        return 1 if self._contiguous() % 4 else 4

    def _contiguous(self) -> int:
        """The words that accesses go along, or what divides them all."""
        return self.channels if self.data.nhwc else math.gcd(self.channels, self.pixels)

    def _pack(self, shape: dict[str, int], of_transpose: bool) -> tuple[Buffer, Enqueue]:
        """Gamma as it is staged, tile after tile."""
        kernel = self._kernel("pack", "PACK", OF_TRANSPOSE=int(of_transpose))
        rows, inner = round_up(self.channels, shape["ROWS"]), self._inner(shape)
        packed = self.setup.scratch(4 * rows * inner)
        sizes = [np.uint32(n) for n in (self.channels, shape["ROWS"], inner, rows * inner)]
        gamma, groups = inputs.array(self.setup, "gamma"), ceil_div(rows * inner, PACK_GROUP)

        def launch() -> None:
            self.device.launch(kernel, groups, PACK_GROUP, gamma, *sizes, packed)

        return packed, Enqueue(launch, self._packing(4.0 * self.channels**2, packed.nbytes))

    def _packing(self, read: float, written: float) -> Traffic:
        return Traffic(global_read=read, global_write=written, dram_read=read, dram_write=written)

    def _inner(self, shape: dict[str, int]) -> int:
        """The channels of the inner dimension, padded to whole steps."""
        return round_up(self.channels, self._depth(shape))

    def _staged_bytes(self, shape: dict[str, int]) -> int:
        """Bytes of local memory of the product over positions."""
        return self._fitting(4 * (shape["STAGED"] * shape["COLUMNS"] + 2 * shape["DEPTH"] * shape["ROWS"]))

    def _over_positions(self, step: OverPositions, ending: Callable[[dict[str, int]], Traffic]) -> Enqueue:
        """A step whose columns are positions; ``ending`` is what is done to the sums, by the shape of a tile."""
        shape = self._shape()
        shape["FETCHES"] = ceil_div(shape["FETCHES"], step.arrays)
        group, nbytes = self._items(shape), self._staged_bytes(shape)
        packed, packing = self._pack(shape, step.of_transpose)
        kernel = self._kernel(step.kernel, step.which, **step.macros, **shape)
        rows, columns = ceil_div(self.channels, shape["ROWS"]), ceil_div(self.positions, shape["COLUMNS"])
        inner = self._inner(shape)
        staging = Traffic(
            flops=step.staged_flops * float(rows) * columns * inner * shape["COLUMNS"],
            global_read=rows * step.arrays * self.data.map_bytes, dram_read=packed.nbytes,
        )  # fmt: skip
        w, sizes = inputs.array(self.setup, "w"), (self.channels, self.positions, self.pixels)
        arguments = (packed, w, *(np.uint32(n) for n in sizes), *step.arguments)

        def launch() -> None:
            packing.launch()
            self.device.launch(kernel, rows * columns, group, *arguments, local_bytes=nbytes)

        multiply = self._multiply(shape, rows * columns, inner)
        return Enqueue(launch, Traffic.total(packing.traffic(), multiply, staging, ending(shape)))

    def forward(self, u: Buffer, save: Buffer | None) -> Enqueue:
        outputs = [u] if save is None else [save, u]
        elements, maps = self.data.map_bytes / 4, self.data.map_bytes

        def ending(shape: dict[str, int]) -> Traffic:
            starts = ceil_div(self.positions, shape["COLUMNS"]) * self._beta_readers(shape)
            return Traffic(
                flops=(2 if self.data.inverse else 1) * elements, special_ops=elements,
                global_read=maps + 4.0 * starts * self.channels, global_write=len(outputs) * maps,
                dram_read=maps, dram_write=len(outputs) * maps,
            )  # fmt: skip

        return self._over_positions(self._forward(outputs), ending)

    def input_gradient(self, d: Buffer, dw: Buffer) -> Enqueue:
        elements, maps = self.data.map_bytes / 4, self.data.map_bytes
        ending = Traffic(
            flops=(5 if self.data.inverse else 4) * elements, global_read=3 * maps, global_write=maps,
            dram_read=3 * maps, dram_write=maps,
        )  # fmt: skip
        return self._over_positions(self._input_gradient(d, dw), lambda _: ending)

    def _forward(self, outputs: list[Buffer]) -> OverPositions:
        """The forward product, with its outputs: D, where it is saved, and u."""
        return OverPositions(
            "forward", "FORWARD", {"SAVE": len(outputs) - 1}, (inputs.array(self.setup, "beta"), *outputs),
            of_transpose=False, arrays=1, staged_flops=1,
        )  # fmt: skip

    def _input_gradient(self, d: Buffer, dw: Buffer) -> OverPositions:
        """The product of the input's gradient."""
        return OverPositions(
            "input_gradient", "INPUT", {}, (inputs.array(self.setup, "delta"), d, dw),
            of_transpose=True, arrays=3, staged_flops=self.data.term_flops,
        )  # fmt: skip

    def parameter_gradients(self, d: Buffer, dgamma: Buffer, dbeta: Buffer | None) -> Enqueue:
        shape, beta = self._gamma_shape(), int(dbeta is not None)
        group, nbytes = self._items(shape), self._local_bytes(shape)
        kernel = self._kernel("gamma_gradient", "GAMMA", BETA=beta, **shape)
        finish = self.setup.kernel("fused.cl", "finish", FINISH=1, BETA=beta, VECTOR=1, **self.macros)
        down, across = ceil_div(self.channels, shape["ROWS"]), ceil_div(self.channels, shape["COLUMNS"])
        depth = self._depth(shape)
        all_steps = self.batch * ceil_div(self.pixels, depth)
        at_once = self._groups_per_unit(shape) * self.device.info.compute_units
        steps = split_steps(at_once, self.tunables["run"] // depth, all_steps, down * across)
        splits, size = ceil_div(all_steps, steps), self.channels * (self.channels + beta)
        partial = self.setup.scratch(4 * splits * size)
        delta, w = (inputs.array(self.setup, name) for name in ("delta", "w"))
        sizes = [np.uint32(n) for n in (self.channels, self.pixels, self.batch, steps)]
        outputs = [dgamma] if dbeta is None else [dgamma, dbeta]
        totals = [np.uint32(n) for n in (splits, size, self.channels)]

        def launch() -> None:
            groups = down * across * splits
            self.device.launch(kernel, groups, group, delta, w, d, *sizes, partial, local_bytes=nbytes)
            self.device.launch(finish, ceil_div(size, FINISH_GROUP), FINISH_GROUP, partial, *totals, *outputs)

        inner, maps, parts = float(all_steps * depth), self.data.map_bytes, 4.0 * splits * size
        terms, squares = across * down * inner * shape["ROWS"], across * down * inner * shape["COLUMNS"]
        row_sums = beta * terms / across  # of the tiles in the first column
        more = Traffic(
            flops=self.data.term_flops * terms + squares + row_sums + splits * size, local_read=4 * row_sums,
            global_read=self._maps_read(shape, down, across) * maps + parts, global_write=parts + 4.0 * size,
            dram_read=3 * maps + parts, dram_write=parts + 4.0 * size,
        )  # fmt: skip
        return Enqueue(launch, Traffic.total(self._multiply_gamma(shape, down * across, inner), more))


def even_tile(n: int, largest: int, unit: int) -> int:
    """Return the tile, a multiple of ``unit``, that pads ``n`` least, of the fewest tiles or one more."""
    fewest = ceil_div(n, largest)
    tiles = [ceil_div(n, count * unit) * unit for count in (fewest, fewest + 1)]
    return min(tiles, key=lambda tile: round_up(n, tile))


def split_steps(groups: int, longest: int, steps: int, tiles: int) -> int:
    """Steps per split: at most ``longest``, and few enough to make so many work-groups, if at all."""
    return int(min(max(1, longest), max(4, ceil_div(steps * tiles, groups))))


globals().update(variants(Tiled))  # where discovery looks for them
