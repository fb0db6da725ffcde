"""The portable engine: products tiled over work-groups, with operands in local memory (``fused.cl``)."""

from __future__ import annotations

from math import gcd
from typing import Any, ClassVar

import numpy as np

from perfport.backend import Buffer
from perfport.errors import UnsupportedError
from perfport.work import Traffic
from perfport.workload import Tunable

from . import inputs
from .engine import Engine, Pass, total

LANES = 32  # work-items that the kernel lays out as one block
FINISH_GROUP = 64


class Tiled(Engine):
    """A tile of channels by positions (dgamma: by channels) per work-group, a smaller one per work-item."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "rows": Tunable({"cpu": 32, "gpu": 64}, (32, 64, 96, 128, 192, 256), "channels of a work-group's tile"),
        "columns": Tunable({"cpu": 32, "gpu": 128}, (32, 64, 128, 256), "positions of a work-group's tile"),
        "depth": Tunable({"cpu": 8, "gpu": 16}, (4, 8, 16, 32), "inner dimension per step"),
        "item_rows": Tunable({"cpu": 4, "gpu": 8}, (4, 8, 12, 16), "channels per work-item"),
        "item_columns": Tunable({"cpu": 4, "gpu": 8}, (4, 8, 12, 16), "positions per work-item"),
        "lanes": Tunable(8, (2, 4, 8, 16, 32), "of 32 neighbouring work-items, those side by side in a row"),
        "unroll": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8, 16), "turns of the inner loop that are unrolled"),
    }
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        "gamma_rows": Tunable({"cpu": 32, "gpu": 64}, (32, 64, 96, 128, 192), "rows of a tile of dgamma"),
        "gamma_columns": Tunable({"cpu": 32, "gpu": 64}, (32, 64, 96, 128, 192), "columns of a tile of dgamma"),
        "gamma_depth": Tunable(8, (4, 8, 16, 32), "positions per step of dgamma's product"),
        "gamma_item_rows": Tunable({"cpu": 4, "gpu": 8}, (4, 8, 12, 16), "rows of dgamma per work-item"),
        "gamma_item_columns": Tunable({"cpu": 4, "gpu": 8}, (4, 8, 12, 16), "columns of dgamma per work-item"),
        "gamma_lanes": Tunable(8, (2, 4, 8, 16, 32), "as lanes, in dgamma's product"),
        "gamma_unroll": Tunable({"cpu": 1, "gpu": 4}, (1, 2, 4, 8, 16), "as unroll, in dgamma's product"),
        "run": Tunable({"cpu": 4096, "gpu": 2048}, (512, 1024, 2048, 4096, 8192), "positions summed in one register"),
    }
    file: ClassVar[str] = "fused.cl"

    def _shape(self, prefix: str, names: dict[str, Tunable]) -> dict[str, int]:
        """Macros of a tile's shape, checked against the device's limits."""
        shape = {name.removeprefix(prefix).upper(): self.tunables[name] for name in names if name != "run"}
        self._check(shape)
        nbytes = self._local_bytes(shape)
        if nbytes > self.device.info.local_memory_bytes:
            raise UnsupportedError(
                f"the tiles need {nbytes} bytes of local memory, {self.device.info.id} has "
                f"{self.device.info.local_memory_bytes}"
            )
        return shape

    def _check(self, shape: dict[str, int]) -> None:
        """Raise `UnsupportedError` where the parts of a tile do not fill it."""
        require_multiple(shape, "ROWS", LANES // shape["LANES"] * shape["ITEM_ROWS"])
        require_multiple(shape, "COLUMNS", shape["LANES"] * shape["ITEM_COLUMNS"])

    def _local_bytes(self, shape: dict[str, int]) -> int:
        return 8 * shape["DEPTH"] * (shape["ROWS"] + shape["COLUMNS"])

    def _items(self, shape: dict[str, int]) -> int:
        return shape["ROWS"] // shape["ITEM_ROWS"] * (shape["COLUMNS"] // shape["ITEM_COLUMNS"])

    def _depth(self, shape: dict[str, int]) -> int:
        """The inner dimension of a step."""
        return shape["DEPTH"]

    def _beta_readers(self, shape: dict[str, int]) -> int:
        """Work-items of a group that read the same word of beta."""
        return shape["COLUMNS"] // shape["ITEM_COLUMNS"]

    def _multiply(self, shape: dict[str, int], tiles: float, inner: float) -> Traffic:
        """Of the product alone, operands in local memory."""
        sides, per_item = shape["ROWS"] + shape["COLUMNS"], shape["ITEM_ROWS"] + shape["ITEM_COLUMNS"]
        return Traffic(
            flops=2 * tiles * inner * shape["ROWS"] * shape["COLUMNS"], local_write=4 * tiles * inner * sides,
            local_read=4 * tiles * inner * self._items(shape) * per_item,
        )  # fmt: skip

    def _kernel(self, name: str, which: str, **macros: int) -> Any:
        contiguous = self.channels if self.data.nhwc else gcd(self.channels, self.pixels)
        vector = 1 if contiguous % 4 else 4
        return self.setup.kernel(self.file, name, **{which: 1}, VECTOR=vector, **self.macros, **macros)

    def _over_positions(
        self, kernel: Any, shape: dict[str, int], arguments: tuple[Any, ...], staged_flops: int, arrays: int,
        ending: Traffic,
    ) -> Pass:  # fmt: skip
        """A pass whose columns are positions; a staged value is made of ``arrays`` words by ``staged_flops``."""
        rows, columns = -(-self.channels // shape["ROWS"]), -(-self.positions // shape["COLUMNS"])
        inner = -(-self.channels // self._depth(shape)) * self._depth(shape)
        staged = float(rows) * columns * inner * shape["COLUMNS"]
        staging = Traffic(
            flops=staged_flops * staged,
            global_read=4.0 * columns * self.channels**2 + rows * arrays * self.data.map_bytes,
        )
        group, nbytes = self._items(shape), self._local_bytes(shape)

        def launch() -> None:
            self.device.launch(kernel, rows * columns, group, *arguments, local_bytes=nbytes)

        return Pass(launch, total(self._multiply(shape, rows * columns, inner), staging, ending))

    def _sizes(self) -> tuple[np.uint32, ...]:
        return np.uint32(self.channels), np.uint32(self.positions), np.uint32(self.pixels)

    def forward(self, u: Buffer, save: Buffer | None) -> Pass:
        shape = self._shape("", self.TUNABLES)
        kernel = self._kernel("forward", "FORWARD", SAVE=int(save is not None), **shape)
        operands = [inputs.array(self.setup, name) for name in ("gamma", "beta", "w")]
        outputs = [u] if save is None else [save, u]
        elements, maps = self.data.map_bytes / 4, self.data.map_bytes
        starts = -(-self.positions // shape["COLUMNS"]) * self._beta_readers(shape)
        ending = Traffic(
            flops=(2 if self.data.inverse else 1) * elements, special_ops=elements,
            global_read=maps + 4.0 * starts * self.channels, global_write=len(outputs) * maps,
            dram_read=maps + 4.0 * self.channels**2, dram_write=len(outputs) * maps,
        )  # fmt: skip
        return self._over_positions(kernel, shape, (*operands, *self._sizes(), *outputs), 1, 1, ending)

    def input_gradient(self, d: Buffer, dw: Buffer) -> Pass:
        shape = self._shape("", self.TUNABLES)
        kernel = self._kernel("input_gradient", "INPUT", **shape)
        operands = [inputs.array(self.setup, name) for name in ("gamma", "delta", "w")]
        elements, maps = self.data.map_bytes / 4, self.data.map_bytes
        ending = Traffic(
            flops=(5 if self.data.inverse else 4) * elements, global_read=3 * maps, global_write=maps,
            dram_read=3 * maps + 4.0 * self.channels**2, dram_write=maps,
        )  # fmt: skip
        return self._over_positions(kernel, shape, (*operands, d, *self._sizes(), dw), self.term_flops, 3, ending)

    def parameter_gradients(self, d: Buffer, dgamma: Buffer, dbeta: Buffer | None) -> Pass:
        shape, beta = self._shape("gamma_", self.GAMMA_TUNABLES), int(dbeta is not None)
        kernel = self._kernel("gamma_gradient", "GAMMA", BETA=beta, **self._gamma_macros(), **shape)
        finish = self.setup.kernel("fused.cl", "finish", FINISH=1, BETA=beta, VECTOR=1, **self.macros)
        down, across = -(-self.channels // shape["ROWS"]), -(-self.channels // shape["COLUMNS"])
        depth = self._depth(shape)
        all_steps = self.batch * -(-self.pixels // depth)
        steps = split_steps(self.device.info.compute_units, self.tunables["run"] // depth, all_steps, down * across)
        splits, size = -(-all_steps // steps), self.channels * (self.channels + beta)
        partial = self.setup.scratch(4 * splits * size)
        delta, w = (inputs.array(self.setup, name) for name in ("delta", "w"))
        sizes = [np.uint32(n) for n in (self.channels, self.pixels, self.batch, steps)]
        group, nbytes = self._items(shape), self._local_bytes(shape)
        outputs = [dgamma] if dbeta is None else [dgamma, dbeta]
        totals = [np.uint32(n) for n in (splits, size, self.channels)]

        def launch() -> None:
            groups = down * across * splits
            self.device.launch(kernel, groups, group, delta, w, d, *sizes, partial, local_bytes=nbytes)
            self.device.launch(finish, -(-size // FINISH_GROUP), FINISH_GROUP, partial, *totals, *outputs)

        inner, maps, parts = float(all_steps * depth), self.data.map_bytes, 4.0 * splits * size
        terms, squares = across * down * inner * shape["ROWS"], across * down * inner * shape["COLUMNS"]
        row_sums = beta * terms / across  # of the tiles in the first column
        more = Traffic(
            flops=self.term_flops * terms + squares + row_sums + splits * size, local_read=4 * row_sums,
            global_read=(3 * across + down) * maps + parts, global_write=parts + 4.0 * size,
            dram_read=3 * maps + parts, dram_write=parts + 4.0 * size,
        )  # fmt: skip
        return Pass(launch, total(self._multiply(shape, down * across, inner), more))

    def _gamma_macros(self) -> dict[str, int]:
        """Macros of dgamma's product beyond its shape."""
        return {}


def require_multiple(shape: dict[str, int], side: str, part: int) -> None:
    """Raise `UnsupportedError` unless a side of a tile is a multiple of what lies side by side in it."""
    if shape[side] % part:
        raise UnsupportedError(f"{side.lower()} ({shape[side]}) must be a multiple of {part}, for {shape}")


def split_steps(units: int, longest: int, steps: int, tiles: int) -> int:
    """Steps per split: at most ``longest``, and few enough to give each compute unit some 4 work-groups, if at all."""
    return int(min(max(1, longest), max(4, -(-steps * tiles // (4 * units)))))
