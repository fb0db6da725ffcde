"""The engine on matrix units (``tensor_core.cu``): the tiled engine with products by ``mma.sync``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, DeviceInfo, Enqueue, Setup, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from . import inputs
from .fused import variants
from .tiled import PACK_GROUP, WARP, Tiled, even_tile

LONG = 512  # channels whose sums the unit's truncation spoils: 8e-6 of u at 1000
FRAGMENT_ROWS, FRAGMENT_WORDS = 16, 8  # of operand A of one instruction, in 32-bit words
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
    }
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        "gamma_rows": Tunable(96, (32, 64, 96, 128, 192), "rows of a tile of dgamma, at most"),
        "gamma_columns": Tunable(192, (32, 64, 96, 128, 192), "columns of a tile of dgamma, at most"),
        "gamma_down": Tunable(2, (1, 2, 4), "warps side by side along the rows of a tile of dgamma"),
        "gamma_across": Tunable(4, (1, 2, 4), "warps side by side along its columns"),
        "gamma_words": Tunable(16, (8, 16), "words of positions per step of dgamma's product"),
        "gamma_resident": Tunable(1, (1, 2, 3, 4), "as resident, of dgamma's product"),
        "run": Tunable(2048, (512, 1024, 2048, 4096, 8192), "positions of a split of dgamma's product"),
    }
    name, title, rung = "tensor_core", "fused_{problem} on matrix units, three TF32 products", 12
    needs = ("ptx",)
    unit = "tf32_mma"
    file: ClassVar[str] = "tensor_core.cu"
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
        room = self.device.info.local_memory_bytes // (4 * self.parts * columns) - 4
        turns = ceil_div(steps * FRAGMENT_WORDS, max(FRAGMENT_WORDS, min(t["words"], room)))
        down = even_tile(warps, t["down"], 1)
        return {
            "ROWS": rows * down, "WARP_ROWS": rows,
            "COLUMNS": columns, "WARP_COLUMNS": t["warp_columns"],
            "WORDS": ceil_div(steps, turns) * FRAGMENT_WORDS, "FETCHES": t["fetches"], "UNROLL": t["unroll"],
            "RESIDENT": max(1, t["resident"] // (WARP * down * t["across"])), "APART": int(self.channels > LONG),
        }  # fmt: skip

    def _gamma_shape(self) -> dict[str, int]:
        t = self.tunables
        down, across = t["gamma_down"], t["gamma_across"]
        rows = even_tile(self.channels, t["gamma_rows"], FRAGMENT_ROWS * down)
        columns = even_tile(self.channels, t["gamma_columns"], FRAGMENT_ROWS * across)
        room = self.device.info.local_memory_bytes // (8 * self.parts * (rows + columns)) - 4
        return {
            "ROWS": rows, "COLUMNS": columns, "WARP_ROWS": rows // down, "WARP_COLUMNS": columns // across,
            "WORDS": min(t["gamma_words"], max(FRAGMENT_WORDS, room // FRAGMENT_WORDS * FRAGMENT_WORDS)),
            "RESIDENT": t["gamma_resident"],
        }  # fmt: skip

    def _local_bytes(self, shape: dict[str, int], sides: int) -> int:
        return self._fitting(8 * self.parts * sides * (shape["WORDS"] + 4))

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
        kernel = self._kernel("pack", "PACK", OF_TRANSPOSE=int(of_transpose))
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
        """Operations of the matrix units; each warp reads its rows and columns of both parts."""
        words = inner / self._depth(shape) * shape["WORDS"] * tiles * self.parts
        per_warp = shape["WARP_ROWS"] + shape["WARP_COLUMNS"]
        return Traffic(
            flops=2 * self.terms * tiles * inner * shape["ROWS"] * shape["COLUMNS"],
            local_write=4 * words * (shape["ROWS"] + shape["COLUMNS"]),
            local_read=4 * words * per_warp * self._warps(shape),
        )

    def _kernel(self, name: str, which: str, **macros: int) -> Any:
        return super()._kernel(name, which, FORMAT=int(self.bf16), TERMS=self.terms, **macros)


class TensorCoresBf16(TensorCores):
    """bf16 operands in two parts: half the shared memory of TF32's, and twice its rate; 16 bits of each operand."""

    name, title, rung = "tensor_core_bf16", "fused_{problem} on matrix units, three bf16 products", 13
    unit = "bf16_mma"
    TUNABLES = {**TensorCores.TUNABLES, "resident": replace(TensorCores.TUNABLES["resident"], default=768)}
    bf16 = True


class TensorCoresPlain(TensorCores):
    """TF32 operands, rounded: one product, and an accuracy class of its own."""

    name, title, rung = "tensor_core_tf32", "fused_{problem} on matrix units, plain TF32", 14
    precision = "tf32"
    TUNABLES = TensorCoresBf16.TUNABLES
    GAMMA_TUNABLES = {
        **TensorCores.GAMMA_TUNABLES,
        "gamma_rows": replace(TensorCores.GAMMA_TUNABLES["gamma_rows"], default=64),
        "gamma_resident": replace(TensorCores.GAMMA_TUNABLES["gamma_resident"], default=2),
    }
    terms = 1


for engine in (TensorCores, TensorCoresBf16, TensorCoresPlain):
    globals().update(variants(engine))  # where discovery looks for them
