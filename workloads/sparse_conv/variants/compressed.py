"""Sparse direct convolution without code generation: compressed rows whose offsets are read at run time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Traffic, Tunable, ceil_div

from ..operators import Tiles
from ..weights import compressed
from .engine import Convolution, Padded


def stretched_rows(engine: Convolution, padded: Padded) -> tuple[Buffer, Buffer, Buffer]:
    """Upload compressed rows: starts, offsets into the padded input from an output's window on, values."""
    o, rows = engine.operator, compressed(engine.layer.weights)
    channel, tap = np.divmod(rows.taps, o.kernel_height * o.kernel_width)
    offsets = padded.offset(channel, *np.divmod(tap, o.kernel_width)).astype(np.int32)
    return (
        engine.upload("starts", rows.starts),
        engine.upload(f"offsets {padded.plane} {padded.line}", np.append(offsets, np.int32(0))),  # never empty
        engine.upload("values", np.append(rows.values, np.float32(0))),
    )


class CompressedRows(Convolution):
    """One loop over a filter's row for each work-item, which computes several outputs (``csr.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 128}, (32, 64, 128, 256), "work-items per work-group"),
        "bh": Tunable(4, (1, 2, 4, 8), "outputs of a work-item"),
    }

    def prepare(self) -> None:
        o, bh = self.operator, self.tunables["bh"]
        self.parts = ceil_div(o.out_height, bh)
        self.padded = Padded(self, self.parts * bh, o.out_width)
        self.ahead = [self.padded]
        self.arrays = stretched_rows(self, self.padded)
        macros = {"PARTS": self.parts, "PLANE": self.padded.plane, "LINE": self.padded.line, "IMAGES": self.batch}
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


class Escoin(Convolution):
    """Escoin's kernel: the row of a filter in local memory for a tile of outputs (``escoin.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "columns": Tunable(16, (8, 16, 32), "work-items of a group across; Escoin: 16"),
        "rows": Tunable(16, (4, 8, 16, 32), "work-items of a group down; Escoin: 16"),
        "images": Tunable(2, (1, 2, 4), "images of a work-group, at most; Escoin: 2 of a batch"),
        "staged": Tunable(1024, (256, 512, 1024), "weights in local memory; Escoin: 1024"),
    }

    def prepare(self) -> None:
        t, images = self.tunables, min(self.tunables["images"], self.batch)
        self.tiles = tiles = Tiles(self.operator, t["rows"], t["columns"])
        self.padded = Padded(self, tiles.down * t["rows"], tiles.across * t["columns"])
        self.ahead = [self.padded]
        self.arrays = stretched_rows(self, self.padded)
        self.groups = tiles.count * ceil_div(self.batch, images)
        macros = {
            "TILES_ACROSS": tiles.across, "TILES_DOWN": tiles.down, "PLANE": self.padded.plane,
            "LINE": self.padded.line, "BATCH": self.batch, "IMAGES": images,
        }  # fmt: skip
        self.kernel: Any = self.setup.kernel("escoin.cl", "escoin", **self.sizes, **macros)

    def launch(self) -> None:
        groups, items = (self.groups, self.operator.filters), self.tunables["columns"] * self.tunables["rows"]
        self.device.launch(self.kernel, groups, (items, 1), self.padded.buffer, *self.arrays, self.result)

    def traffic(self) -> Traffic:
        o, nonzero, items = self.operator, self.layer.nonzero, self.tunables["columns"] * self.tunables["rows"]
        sums, groups = float(self.tiles.count * items * self.batch), float(self.groups)
        rows = np.count_nonzero(self.layer.weights.reshape(o.filters, -1), axis=1)
        pieces = float(np.ceil(rows / self.tunables["staged"]).sum())  # what is left of a row: a difference of starts
        return Traffic(
            flops=2 * sums * nonzero, integer_ops=groups * items * pieces,
            local_write=8 * groups * nonzero, local_read=8 * sums * nonzero,
            global_read=4 * sums * nonzero + 8 * groups * (nonzero + items * o.filters),
            global_write=self.output_bytes, dram_write=self.output_bytes,
            dram_read=4.0 * self.batch * o.channels * self.padded.plane + 8 * nonzero + 4 * (o.filters + 1),
        )  # fmt: skip
