"""The template with weights as data: dense, from constant memory, and over compressed sparse rows."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Traffic, Tunable, UnsupportedError, ceil_div

from ..operators import Tiles
from ..weights import compressed
from .engine import Convolution, Padded

CONSTANT_WORDS = 64 * 1024 // 4  # what devices give a program's constants


class Template(Convolution):
    """Dense direct convolution, weights in global memory (``direct.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "columns": Tunable({"cpu": 16, "gpu": 16}, (4, 8, 16, 32), "work-items of a group across"),
        "rows": Tunable({"cpu": 2, "gpu": 8}, (1, 2, 4, 8, 16), "work-items of a group down"),
        "bh": Tunable({"cpu": 2, "gpu": 2}, (1, 2, 4), "output rows of a work-item"),
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
        return Tiles(self.operator, self.tunables["rows"] * self.tunables["bh"], self.tunables["columns"])

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel file."""
        tiles = self._tiles
        return {**self.sizes, "EARLY": self.prefetch, "TILES_ACROSS": tiles.across, "TILES_DOWN": tiles.down}

    def _kernel(self, file: str, more: dict[str, int]) -> Any:
        return self.setup.kernel(file, "direct", **self.macros, **more)

    def launch(self) -> None:
        groups, group, first = self._tiles.count * self.batch, self.tunables["columns"] * self.tunables["rows"], 0
        for kernel, blocks, weights in self.launches:
            arguments = (self.source, *weights, self.result, np.int32(first))
            self.device.launch(kernel, (groups, blocks), (group, 1), *arguments)
            first += blocks * self.tunables["bk"]

    def traffic(self) -> Traffic:
        o, t, tiles = self.operator, self.tunables, self._tiles
        groups = float(tiles.count * self.batch * self.blocks)
        items = groups * t["rows"] * t["columns"]
        staged = self.batch * self.blocks * o.channels * 4.0
        window = len({b * o.stride + r for b in range(t["bh"]) for r in range(o.kernel_height)})
        weights = 4 * items * t["bk"] * o.taps
        return Traffic(
            flops=2 * items * t["bk"] * t["bh"] * o.taps,
            local_write=groups * o.channels * 4 * tiles.input_size,
            local_read=4 * items * o.channels * o.kernel_width * window,
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


class CompressedRows(Convolution):
    """What sparse direct convolution without code generation does: values and offsets are read (``csr.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 128}, (32, 64, 128, 256), "work-items per work-group"),
        "bh": Tunable(4, (1, 2, 4, 8), "outputs of a work-item"),
    }

    def prepare(self) -> None:
        o, bh = self.operator, self.tunables["bh"]
        self.parts = ceil_div(o.out_height, bh)
        self.padded = Padded(self, self.parts * bh, o.out_width)
        self.ahead = [self.padded]
        rows = compressed(self.layer.weights)
        channel, tap = np.divmod(rows.taps, o.kernel_height * o.kernel_width)
        r, s = np.divmod(tap, o.kernel_width)
        p = self.padded
        offsets = channel * p.plane + r * p.line + s % o.stride * p.pitch + s // o.stride
        self.arrays = (
            self.upload("starts", rows.starts),
            self.upload(f"offsets {p.plane} {p.line}", np.append(offsets.astype(np.int32), np.int32(0))),  # never empty
            self.upload("values", np.append(rows.values, np.float32(0))),
        )
        macros = {"PARTS": self.parts, "PLANE": p.plane, "LINE": p.line, "IMAGES": self.batch}
        self.kernel = self.setup.kernel("csr.cl", "csr", **self.sizes, **macros)

    def launch(self) -> None:
        group = self.tunables["group"]
        groups = ceil_div(self.batch * self.parts * self.operator.out_width, group)
        self.device.launch(
            self.kernel, (groups, self.operator.filters), (group, 1), self.padded.buffer, *self.arrays, self.result
        )

    def traffic(self) -> Traffic:
        o, bh = self.operator, self.tunables["bh"]
        items, nonzero = float(self.batch * self.parts * o.out_width), self.layer.nonzero
        return Traffic(
            flops=2 * items * bh * nonzero, global_read=4 * items * ((2 + bh) * nonzero + 2 * o.filters),
            global_write=self.output_bytes, dram_write=self.output_bytes,
            dram_read=4.0 * self.batch * o.channels * self.padded.plane + 8 * nonzero + 4 * (o.filters + 1),
        )  # fmt: skip


def constant_table(values: np.ndarray) -> str:
    """Source of a table in constant memory, ``table``; hexadecimal literals keep every bit."""
    lines = [", ".join(literal(value) for value in values[i : i + 8]) for i in range(0, len(values), 8)]
    return f"CONSTANT_TABLE(float, table, {max(len(values), 1)}) = {{\n" + ",\n".join(lines or ["0.0f"]) + "};\n"


def literal(value: float) -> str:
    """A FP32 value as a hexadecimal literal of C."""
    return f"{float(value).hex()}f"
