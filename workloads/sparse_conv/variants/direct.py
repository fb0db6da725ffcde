"""The template with weights as data, from global or from constant memory."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Traffic, Tunable, UnsupportedError, ceil_div

from ..operators import Tiles
from .engine import Convolution

CONSTANT_WORDS = 64 * 1024 // 4  # what devices give a program's constants


class Template(Convolution):
    """Dense direct convolution, weights in global memory (``direct.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "columns": Tunable({"cpu": 16, "gpu": 16}, (4, 8, 16, 32), "work-items of a group across"),
        "rows": Tunable({"cpu": 2, "gpu": 8}, (1, 2, 4, 8, 16), "work-items of a group down"),
        "bn": Tunable(1, (1, 2), "images of a work-item"),
        "bh": Tunable(2, (1, 2, 4), "output rows of a work-item"),
        "bw": Tunable(1, (1, 2, 4), "output columns of a work-item"),
        "bk": Tunable(8, (1, 2, 4, 8, 16, 32), "filters of a work-item"),
    }
    prefetch: ClassVar[int] = 1
    in_constants: ClassVar[bool] = False

    def prepare(self) -> None:
        self.blocks = ceil_div(self.operator.filters, self.tunables["bk"])
        weights = self.upload(f"packed by {self.tunables['bk']}", self.packed())
        kernel = self._kernel("direct.cl", {})
        self.launches: list[tuple[Any, int, tuple[Any, ...]]] = [(kernel, self.blocks, (weights,))]

    def packed(self) -> np.ndarray:
        """Weights as (block, C, R, S, filter of the block), zeros behind the last filter."""
        o, bk = self.operator, self.tunables["bk"]
        padded = np.zeros((self.blocks * bk, *o.shape[1:]), np.float32)
        padded[: o.filters] = self.layer.weights
        return padded.reshape(self.blocks, bk, *o.shape[1:]).transpose(0, 2, 3, 4, 1).copy()

    @cached_property
    def _tiles(self) -> Tiles:
        """Tiles of a map, one for each work-group and block of filters."""
        t = self.tunables
        return Tiles(self.operator, t["rows"] * t["bh"], t["columns"] * t["bw"])

    @property
    def _groups(self) -> int:
        """Work-groups of each block of filters."""
        return self._tiles.count * ceil_div(self.batch, self.tunables["bn"])

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel file."""
        tiles = self._tiles
        return {
            **self.sizes, "EARLY": self.prefetch, "TILES_ACROSS": tiles.across, "TILES_DOWN": tiles.down,
            "BATCH": self.batch,
        }  # fmt: skip

    def _kernel(self, file: str, more: dict[str, int]) -> Any:
        return self.setup.kernel(file, "direct", **self.macros, **more)

    def launch(self) -> None:
        groups, group, first = self._groups, self.tunables["columns"] * self.tunables["rows"], 0
        for kernel, blocks, weights in self.launches:
            arguments = (self.source, *weights, self.result, np.int32(first))
            self.device.launch(kernel, (groups, blocks), (group, 1), *arguments)
            first += blocks * self.tunables["bk"]

    def traffic(self) -> Traffic:
        o, t, tiles = self.operator, self.tunables, self._tiles
        groups, apart = float(self._groups * self.blocks), t["bn"] * t["bw"]
        items = groups * t["rows"] * t["columns"]
        staged = self.batch * self.blocks * o.channels * 4.0
        window = len({b * o.stride + r for b in range(t["bh"]) for r in range(o.kernel_height)})
        weights = 4 * items * t["bk"] * o.taps
        return Traffic(
            flops=2 * items * t["bk"] * t["bh"] * apart * o.taps,
            local_write=groups * o.channels * 4 * t["bn"] * tiles.input_size,
            local_read=4 * items * apart * o.channels * o.kernel_width * window,
            global_read=staged * tiles.inside + (0 if self.in_constants else weights),
            constant_read=weights if self.in_constants else 0, global_write=self.output_bytes,
            dram_read=self.input_bytes + 4 * o.weights, dram_write=self.output_bytes,
        )  # fmt: skip


class TemplateWithoutPrefetch(Template):
    """The next tile is fetched when the present one is done."""

    prefetch = 0


class ConstantTemplate(Template):
    """The template with its weights in constant memory, in as many programs as 64 KiB each ask for."""

    in_constants = True

    def prepare(self) -> None:
        o, bk = self.operator, self.tunables["bk"]
        self.blocks = ceil_div(o.filters, bk)
        packed = self.packed().reshape(self.blocks, -1)
        if packed.shape[1] > CONSTANT_WORDS:
            raise UnsupportedError(
                f"{bk} filters of {o.taps} weights need {4 * packed.shape[1]} bytes of constants, a program has "
                f"{4 * CONSTANT_WORDS}; lower the tunable bk"
            )
        step = CONSTANT_WORDS // packed.shape[1]
        text = self.setup.session.source("direct.cl")
        macros = {**self.macros, "CONSTANT": 1, **{name.upper(): value for name, value in self.tunables.items()}}
        self.launches = []
        for first in range(0, self.blocks, step):
            part = packed[first : first + step]
            source = f"{constant_table(part.reshape(-1))}#line 1\n{text}"
            kernel = self.setup.load("direct", partial(self.build, "constants.cl", source, macros))
            self.launches.append((kernel, len(part), ()))


def constant_table(values: np.ndarray) -> str:
    """Source of a table in constant memory, ``table``; hexadecimal literals keep every bit."""
    lines = [", ".join(literal(value) for value in values[i : i + 8]) for i in range(0, len(values), 8)]
    return f"CONSTANT_TABLE(float, table, {max(len(values), 1)}) = {{\n" + ",\n".join(lines or ["0.0f"]) + "};\n"


def literal(value: float) -> str:
    """A FP32 value as a hexadecimal literal of C."""
    return f"{float(value).hex()}f"
