"""A pass as the source has it: classify, then sum."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Buffer, Kernel, Traffic, Tunable

from .base import Loader, Pass

RUN = 32  # neighbouring points whose words are interleaved, as in kernels/interleaved.cl


def interleave(rows: np.ndarray, out: np.ndarray) -> None:
    """Lay rows out as kernels/interleaved.cl has them.

    Parameters
    ----------
    rows : uint8, (points, dims)
    out : uint8, (points rounded up to `RUN`, dims)
        What lies beyond the last point is left as it is.
    """
    whole, words = len(rows) // RUN, rows.shape[1] // 4
    runs = out.view(np.uint32).reshape(-1, words, RUN)
    own = rows.view(np.uint32)
    runs[:whole] = own[: whole * RUN].reshape(whole, RUN, words).transpose(0, 2, 1)
    if len(rows) > whole * RUN:
        runs[whole, :, : len(rows) - whole * RUN] = own[whole * RUN :].T


class TwoKernelPass(Pass):
    """``two_kernels.cl``: the points interleaved, classified by one kernel and added up by another."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (32, 64, 128, 256), "work-items per work-group that classifies"),
        "rows": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8), "work-items that share dimensions, where sums have room"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 8}, (2, 4, 8, 16, 32), "work-groups per compute unit"),
    }

    def compile(self, loader: Loader) -> Kernel:
        clusters, dims, tunables = self.clusters, self.dims, self.tunables
        self.group = self.unit = int(tunables["group"])
        self.rows, row = int(tunables["rows"]), 4 * clusters * (dims + 1)
        while self.rows > 1 and self.rows * row > self.device.info.local_memory_bytes:
            self.rows //= 2
        self.local_bytes = self.require_local(2 * clusters * dims + 4 * clusters)
        self.add_bytes = self.require_local(self.rows * row)
        macros = {"K": clusters, "DIMS": dims, "GROUP": self.group, "ROWS": self.rows}
        self.adding = loader("two_kernels.cl", "add", **macros)
        return loader("two_kernels.cl", "classify", **macros)

    def classify(self, number: int, *buffers: Buffer) -> None:
        """Enqueue the first kernel over ``number`` tiles; the buffers as for `launch`."""
        self.device.launch(self.kernel, number, self.group, *buffers[:6], local_bytes=self.local_bytes)

    def add(self, number: int, *buffers: Buffer) -> None:
        """Enqueue the second kernel over ``number`` tiles; the buffers as for `launch`."""
        points, tiles, _, _, moving, labels, sums, counts = buffers
        self.device.launch(
            self.adding, number, self.dims // 4 * self.rows, points, tiles, moving, labels, sums, counts,
            local_bytes=self.add_bytes,
        )  # fmt: skip

    def launch(self, number: int, *buffers: Buffer) -> None:
        """Enqueue both, the buffers as the package says."""
        self.classify(number, *buffers)
        self.add(number, *buffers)

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, words = self.clusters, float(self.dims), self.dims / 4
        tiles_, points = len(lengths), float(lengths.sum())
        adders, row = words * self.rows, k * (dims + 1.0)  # work-items, and values of a row of partial sums
        halvings = tiles_ * (self.rows - 1) * row
        written = float((counts > 0).sum()) * (dims + 1)
        return Traffic(
            integer_ops=points * (k * (3 * dims + 1) + 4 * dims + 1) + halvings,  # bytes taken out of words among them
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * (self.group + adders)) + points * (2 * dims + words),
            global_write=points,
            local_read=points * (k * (2 * dims + 4) + 4 * (dims + 1)) + 8 * halvings + 4 * written,
            local_write=tiles_ * (k * (2 * dims + 4) + 4 * self.rows * row) + points * 4 * (dims + 1) + 4 * halvings,
            global_atomics=written,
            dram_read=points * (2 * dims + 1) + 2 * tiles_ * k * dims,
            dram_write=points + 4 * tiles_ * row,
        )  # fmt: skip
