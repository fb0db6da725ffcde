"""The engine on matrix units (``tensor_core.cu``): the tiled engine with products by ``mma.sync``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, DeviceInfo, Enqueue, Setup, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from . import inputs
from .fused import variants
from .tiled import PACK_GROUP, WARP, OverPositions, Tiled, even_tile

LONG = 512  # channels whose sums the unit's truncation spoils: 8e-6 of u at 1000
FRAGMENT_ROWS, FRAGMENT_WORDS = 16, 8  # of operand A of one instruction, in 32-bit words
#: Where gamma stays in local memory: channels of a warp, the fewest positions of a tile, lanes of a multiprocessor.
HELD_ROWS, LEAST_HELD, HELD_LANES = (48, 32), 32, 512
GAMMA_WARP = 48  # rows and columns of dgamma whose sums a warp has registers for
LEAST_CAPABILITY = (8, 0)


class TensorCores(Tiled):
    """A tile per work-group, a smaller one per warp; operands split while they are staged: three TF32 products."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "warp_rows": Tunable(32, (16, 32, 48, 64, 80, 96), "channels of a warp's tile, at most"),
        "warp_columns": Tunable(32, (16, 32, 48, 64, 96), "positions of a warp's tile"),
        "down": Tunable(10, (1, 2, 3, 4, 6, 8, 10, 12), "warps side by side along the channels, at most"),
        "across": Tunable(1, (1, 2, 4), "warps side by side along the positions"),
        "words": Tunable(192, (32, 64, 96, 128, 192), "words of channels that are staged at once, at most"),
        "fetches": Tunable(6, (1, 2, 3, 4, 6, 8), "16-byte parts of rows that are fetched ahead of being staged"),
        "unroll": Tunable(2, (1, 2, 4), "turns of the inner loop that are unrolled"),
        "resident": Tunable(576, (384, 512, 576, 640, 768), "lanes to a multiprocessor that registers are saved for"),
        "held_columns": Tunable(
            48, (0, 32, 48, 64), "positions of a tile where gamma stays in local memory; 0: it does not"
        ),
        "held_across": Tunable(2, (1, 2), "warps side by side along them"),
        "held_unroll": Tunable(4, (1, 2, 4), "as unroll, where gamma stays in local memory"),
    }
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        "gamma_rows": Tunable(192, (64, 96, 128, 192), "rows of a tile of dgamma, at most"),
        "gamma_columns": Tunable(192, (64, 96, 128, 192), "columns of a tile of dgamma, at most"),
        "gamma_down": Tunable(4, (1, 2, 4, 5), "warps side by side along the rows of a tile of dgamma, at most"),
        "gamma_across": Tunable(4, (1, 2, 4, 5), "warps side by side along its columns, at most"),
        "gamma_words": Tunable(16, (8, 16), "words of positions per step of dgamma's product, at most"),
        "gamma_stages": Tunable(3, (2, 3, 4), "steps that are copied at a time, at most"),
        "gamma_resident": Tunable(512, (256, 512, 768), "as resident, of dgamma's product"),
        "run": Tunable(2048, (512, 1024, 2048, 4096, 8192), "positions of a split of dgamma's product"),
    }
    name, title, rung = "tensor_core", "fused_{problem} on matrix units, three TF32 products", 12
    needs = ("ptx",)
    unit = "tf32_mma"
    terms: ClassVar[int] = 3
    bf16: ClassVar[bool] = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.parts = 2 if self.terms == 3 else 1

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        capability = tuple(int(part) for part in (info.compute_capability or "0.0").split("."))
        if capability < LEAST_CAPABILITY:
            raise UnsupportedError(
                f"needs compute capability 8.0 (TF32 and bf16), {info.id} has {info.compute_capability}"
            )

    def _shape(self) -> dict[str, int]:
        t = self.tunables
        rows = even_tile(self.channels, t["warp_rows"], FRAGMENT_ROWS)
        warps = ceil_div(self.channels, rows)
        steps = ceil_div(self.channels, self._depth({"WORDS": FRAGMENT_WORDS}))
        columns = t["across"] * t["warp_columns"]
        room = (
            (self.device.info.local_memory_bytes // (4 * self.parts * columns) - 4) // FRAGMENT_WORDS * FRAGMENT_WORDS
        )
        turns = ceil_div(steps * FRAGMENT_WORDS, max(FRAGMENT_WORDS, min(t["words"], room)))
        down = even_tile(warps, t["down"], 1)
        return {
            "ROWS": rows * down, "WARP_ROWS": rows,
            "COLUMNS": columns, "WARP_COLUMNS": t["warp_columns"],
            "WORDS": ceil_div(steps, turns) * FRAGMENT_WORDS, "FETCHES": t["fetches"], "UNROLL": t["unroll"],
            "RESIDENT": max(1, t["resident"] // (WARP * down * t["across"])), "APART": int(self.channels > LONG),
        }  # fmt: skip

    def _gamma_shape(self) -> dict[str, int]:
        """The first of ever smaller tiles and steps that local memory holds."""
        t = self.tunables
        tiles = [self._gamma_tile(part) for part in (1, 2, 4)]
        shapes = [
            {**tile, "WORDS": words, "STAGES": stages}
            for tile in tiles
            for words in range(t["gamma_words"], 0, -FRAGMENT_WORDS) for stages in range(t["gamma_stages"], 1, -1)
        ]  # fmt: skip
        room = self.device.info.local_memory_bytes
        return next((shape for shape in shapes if self._gamma_bytes(shape) <= room), shapes[-1])

    def _gamma_tile(self, part: int) -> dict[str, int]:
        """A tile whose sides, and warps along them, are at most such a part of what the tunables say."""
        t = self.tunables
        rows, down = gamma_side(self.channels, t["gamma_rows"] // part, max(1, t["gamma_down"] // part))
        columns, across = gamma_side(self.channels, t["gamma_columns"] // part, max(1, t["gamma_across"] // part))
        return {
            "ROWS": rows, "COLUMNS": columns, "WARP_ROWS": rows // down, "WARP_COLUMNS": columns // across,
            "SHARED": int(rows == columns >= self.channels),
            "RESIDENT": max(1, t["gamma_resident"] // (WARP * down * across)),
        }  # fmt: skip

    def _copied(self, shape: dict[str, int]) -> int:
        """Words that a step copies: 4 more to a line where lines begin anywhere."""
        more = 0 if self._vector() == 4 else 4
        sides = [shape["ROWS"]] * 3 + [shape["COLUMNS"]] * (1 - shape["SHARED"])
        depth = self._depth(shape)
        return sum(depth * (side + more) if self.data.nhwc else side * (depth + more) for side in sides)

    def _gamma_bytes(self, shape: dict[str, int]) -> int:
        operands = self.parts * (shape["ROWS"] + shape["COLUMNS"]) * (shape["WORDS"] + 4)
        return 4 * (operands + shape["STAGES"] * self._copied(shape))

    def _local_bytes(self, shape: dict[str, int]) -> int:
        return self._fitting(self._gamma_bytes(shape))

    def _groups_per_unit(self, shape: dict[str, int]) -> int:
        return shape["RESIDENT"]

    def _maps_read(self, shape: dict[str, int], down: int, across: int) -> int:
        return 3 if shape["SHARED"] else super()._maps_read(shape, down, across)

    def _held_shape(self, tiles: int) -> dict[str, int] | None:
        """Of a product with gamma in local memory beside ``tiles`` tiles of maps; ``None`` where they do not fit."""
        channels, across, room = self.channels, self.tunables["held_across"], self.device.info.local_memory_bytes
        rows = min(HELD_ROWS, key=lambda rows: round_up(channels, rows)) if channels > FRAGMENT_ROWS else FRAGMENT_ROWS
        shape = {
            "ROWS": round_up(channels, rows), "WARP_ROWS": rows, "WORDS": FRAGMENT_WORDS, "HELD": 1,
            "STEPS": self._inner({}) // self._depth({"WORDS": FRAGMENT_WORDS}), "UNROLL": self.tunables["held_unroll"],
        }  # fmt: skip
        for columns in range(self.tunables["held_columns"], LEAST_HELD - 1, -FRAGMENT_ROWS):
            shape |= {"COLUMNS": columns, "WARP_COLUMNS": columns // across}
            groups = room // self._held_bytes(shape, tiles)
            if groups and channels <= LONG:
                return {**shape, "RESIDENT": max(1, min(groups, HELD_LANES // self._items(shape)))}
        return None

    def _held_bytes(self, shape: dict[str, int], tiles: int) -> int:
        gamma = self.parts * shape["STEPS"] * FRAGMENT_WORDS * shape["ROWS"]
        lines, width = self._inner(shape), shape["COLUMNS"]
        if self.data.nhwc:
            lines, width = width, lines
        return 4 * (gamma + tiles * lines * (width + 4))

    def _over_positions(self, step: OverPositions, ending: Callable[[dict[str, int]], Traffic]) -> Enqueue:
        copies = max(2, step.arrays)  # forward's one array is copied a tile ahead
        # Each warp splits the squares that it needs: that pays where the other kernel stores word by word.
        pays = self.parts == 1 or step.arrays > 1 or self._vector() == 1
        shape = self._held_shape(copies) if pays else None
        if shape is None:
            return super()._over_positions(step, ending)
        packed, packing = self._pack(shape, step.of_transpose)
        kernel = self._kernel(step.kernel, step.which, **step.macros, **shape)
        tiles = self.batch * ceil_div(self.pixels, shape["COLUMNS"])
        groups, nbytes = min(tiles, shape["RESIDENT"] * self.device.info.compute_units), self._held_bytes(shape, copies)
        sizes = [np.uint32(n) for n in (self.channels, self.positions, self.pixels)]
        arguments = (packed, inputs.array(self.setup, "w"), *sizes, *step.arguments, np.uint32(tiles))

        def launch() -> None:
            packing.launch()
            self.device.launch(kernel, groups, self._items(shape), *arguments, local_bytes=nbytes)

        inner, maps = self._inner(shape), self.data.map_bytes
        down = shape["ROWS"] // shape["WARP_ROWS"]
        staged = float(tiles) * shape["COLUMNS"] * inner  # words of an array; forward's warps square their own
        forward = step.arrays == 1
        results = 0 if self.data.nhwc or self._vector() == 4 else 1 + step.macros.get("SAVE", 0)  # by way of copies
        multiply = Traffic(
            flops=staged * (2 * self.terms * shape["ROWS"] + step.staged_flops * (down if forward else 1)),
            local_write=(step.arrays + results) * maps + 8 * staged * (not forward) + float(groups) * packed.nbytes,
            local_read=((1 if forward else 2) + results) * maps + 4 * staged * (down + 3 * (not forward))
            + tiles * self._across(shape) * packed.nbytes,
            global_read=float(groups) * packed.nbytes, dram_read=packed.nbytes,
        )  # fmt: skip
        return Enqueue(launch, Traffic.total(packing.traffic(), multiply, ending(shape)))

    def _across(self, shape: dict[str, int]) -> int:
        return shape["COLUMNS"] // shape["WARP_COLUMNS"]

    def _staged_bytes(self, shape: dict[str, int]) -> int:
        return self._fitting(4 * self.parts * shape["COLUMNS"] * (shape["WORDS"] + 4))

    def _warps(self, shape: dict[str, int]) -> int:
        return shape["ROWS"] // shape["WARP_ROWS"] * (shape["COLUMNS"] // shape["WARP_COLUMNS"])

    def _items(self, shape: dict[str, int]) -> int:
        return WARP * self._warps(shape)

    def _depth(self, shape: dict[str, int]) -> int:
        return shape["WORDS"] * (2 if self.bf16 else 1)

    def _beta_readers(self, shape: dict[str, int]) -> int:
        return 4 * (shape["COLUMNS"] // shape["WARP_COLUMNS"])

    def _inner(self, shape: dict[str, int]) -> int:
        fragment = self._depth({"WORDS": FRAGMENT_WORDS})
        return round_up(self.channels, fragment)

    def _pack(self, shape: dict[str, int], of_transpose: bool) -> tuple[Buffer, Enqueue]:
        """Gamma as fragments, in the order in which lanes take them."""
        kernel = self._kernel("pack", "PACK", OF_TRANSPOSE=int(of_transpose), HELD=shape.get("HELD", 0))
        rows = round_up(self.channels, shape["ROWS"])
        steps = self._inner(shape) // self._depth({"WORDS": FRAGMENT_WORDS})
        count = rows // FRAGMENT_ROWS * steps * WARP
        packed = self.setup.scratch(16 * self.parts * count)
        sizes = [np.uint32(n) for n in (self.channels, steps, count)]
        gamma = inputs.array(self.setup, "gamma")

        def launch() -> None:
            self.device.launch(kernel, ceil_div(count, PACK_GROUP), PACK_GROUP, gamma, *sizes, packed)

        return packed, Enqueue(launch, self._packing(4.0 * self.channels**2, packed.nbytes))

    def _multiply(self, shape: dict[str, int], tiles: float, inner: float) -> Traffic:
        """Operations of the matrix units; each warp reads rows from the cache and columns from shared memory."""
        words = inner / self._depth({"WORDS": 1}) * tiles * self.parts
        staged = ceil_div(self._inner(shape), self._depth(shape)) * shape["WORDS"] * tiles * self.parts
        return Traffic(
            flops=2 * self.terms * tiles * inner * shape["ROWS"] * shape["COLUMNS"],
            local_write=4 * staged * shape["COLUMNS"],
            local_read=4 * words * shape["WARP_COLUMNS"] * self._warps(shape),
            global_read=4 * words * shape["WARP_ROWS"] * self._warps(shape),
        )

    def _multiply_gamma(self, shape: dict[str, int], tiles: float, inner: float) -> Traffic:
        """Operations of the matrix units; copies are read once, operands of both parts by each warp that needs them."""
        words = inner / self._depth(shape) * shape["WORDS"] * tiles * self.parts
        per_warp = shape["WARP_ROWS"] + shape["WARP_COLUMNS"]
        copied = inner / self._depth(shape) * tiles * self._copied(shape)
        read = inner * tiles * (3 * shape["ROWS"] + (1 - shape["SHARED"]) * shape["COLUMNS"])
        return Traffic(
            flops=2 * self.terms * tiles * inner * shape["ROWS"] * shape["COLUMNS"],
            local_write=4 * (words * (shape["ROWS"] + shape["COLUMNS"]) + copied),
            local_read=4 * (words * per_warp * self._warps(shape) + read),
        )

    def _contiguous(self) -> int:
        return self.channels if self.data.nhwc else self.pixels

    def _kernel(self, name: str, which: str, **macros: int) -> Any:
        held = which != "PACK" and "HELD" in macros
        file = "tensor_core_gamma.cu" if which == "GAMMA" else "tensor_core_held.cu" if held else "tensor_core.cu"
        macros |= {which: 1, "VECTOR": self._vector(), "FORMAT": int(self.bf16), "TERMS": self.terms}
        return self.setup.kernel(file, name, **self.macros, **macros)


class TensorCoresBf16(TensorCores):
    """bf16 operands in two parts: half the shared memory of TF32's, and twice its rate; 16 bits of each operand."""

    name, title, rung = "tensor_core_bf16", "fused_{problem} on matrix units, three bf16 products", 13
    unit = "bf16_mma"
    TUNABLES = {**TensorCores.TUNABLES, "resident": replace(TensorCores.TUNABLES["resident"], default=768)}
    GAMMA_TUNABLES = {
        **TensorCores.GAMMA_TUNABLES, "gamma_words": replace(TensorCores.GAMMA_TUNABLES["gamma_words"], default=8),
    }  # fmt: skip
    bf16 = True


class TensorCoresPlain(TensorCores):
    """TF32 operands, rounded: one product, and an accuracy class of its own."""

    name, title, rung = "tensor_core_tf32", "fused_{problem} on matrix units, plain TF32", 14
    precision = "tf32"
    TUNABLES = TensorCoresBf16.TUNABLES
    terms = 1


def gamma_side(channels: int, largest: int, warps: int) -> tuple[int, int]:
    """Return the tile along one side of dgamma that pads least, and how many warps, at most ``warps``, share it."""
    sides = [(even_tile(channels, largest, FRAGMENT_ROWS * count), count) for count in range(warps, 0, -1)]
    small = [(tile, count) for tile, count in sides if tile <= GAMMA_WARP * count] or sides[:1]
    return min(small, key=lambda side: round_up(channels, side[0]))


for engine in (TensorCores, TensorCoresBf16, TensorCoresPlain):
    globals().update(variants(engine))  # where discovery looks for them
