"""A pass with dot products of four bytes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Kernel, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from .base import Loader, Pass, through_dram


class FusedPass(Pass):
    """``fused.cl``: rows in local memory, dot products of four bytes, sums by owners of dimensions."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (32, 64, 128, 256, 512), "work-items per work-group"),
        "points_each": Tunable(1, (1, 2, 4), "points that a work-item classifies at a time"),
        "centres_held": Tunable(10, (2, 4, 5, 8, 10, 16), "centres whose dot products a work-item holds, at most"),
        "sums": Tunable(1, (0, 1, 2), "0: an atomic per byte, 1: per two bytes, 2: lists by class"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 8}, (2, 4, 8, 16, 32), "work-groups per compute unit"),
    }

    def compile(self, loader: Loader) -> Kernel:
        clusters, dims, tunables = self.clusters, self.dims, self.tunables
        self.group, self.words = int(tunables["group"]), dims // 4
        self.unit, self.mode = self.group * int(tunables["points_each"]), int(tunables["sums"])
        self.held = max(n for n in range(1, int(tunables["centres_held"]) + 1) if clusters % n == 0)
        if self.group < self.words:
            raise UnsupportedError(f"group: expected at least a work-item per word of a point ({self.words})")
        if self.mode == 1 and self.unit > 257:
            raise UnsupportedError(f"sums: 16-bit halves hold 257 bytes; group x points_each is {self.unit}")
        if self.mode == 2 and clusters > 32:
            raise UnsupportedError(f"sums: registers hold lists of up to 32 classes, there are {clusters}")
        self.lanes = self.group // self.words
        extra = (0, 2 * clusters * self.words, clusters * self.unit // 2 + clusters)[self.mode]
        before = 2 * clusters * self.words + clusters * dims + 2 * clusters + self.unit + extra
        self.local_bytes = self.require_local(4 * (round_up(before, 4) + self.unit * (self.words + 4)))
        return loader(
            "fused.cl", "pass", K=clusters, DIMS=dims, GROUP=self.group, POINTS=int(tunables["points_each"]),
            CENTRES=self.held, SUMS=self.mode,
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, words = self.clusters, float(self.dims), float(self.words)
        tiles_, points = len(lengths), float(lengths.sum())
        steps = float(ceil_div(lengths, self.unit).sum())
        classified = steps * self.unit  # work-items without a point of their own classify one again
        read = words / 4 * (k / self.held + 2 * k / int(self.tunables["points_each"]))  # 16-byte loads
        written = float((counts > 0).sum()) * (dims + 1)
        common = Traffic(
            integer_ops=classified * k * (16 * words + 3),
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + points * dims, global_write=points,
            local_read=classified * (16 * read + 4 * k) + 4 * tiles_ * k * (dims + 1),
            local_write=points * (dims + 4) + 4 * tiles_ * k * (2 * words + dims + 2),
            global_atomics=written, local_atomics=points,
            **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip
        common.local_read += 4 * float((counts > 0).sum())
        if self.mode == 2:
            rows = self._listed(lengths, counts)
            common.local_read += 4 * steps * k + 4 * steps * k * self.lanes * words + points * words * 6
            common.local_read += 4 * steps * k
            common.local_write += points * 2 + 8 * steps * k
            common.integer_ops += points * words * 5 + steps * k + rows * 7
            common.local_atomics += rows * 4
        elif self.mode == 1:
            halves = 2.0 * k * words
            common.local_read += points * words * 8 + 12 * steps * halves
            common.local_write += 4 * tiles_ * halves + 12 * steps * halves
            common.integer_ops += points * words * 3 + 4 * steps * halves
            common.local_atomics += points * words * 2
        else:
            common.local_read += points * words * 8
            common.integer_ops += points * words * 6
            common.local_atomics += points * dims
        return common

    def _listed(self, lengths: np.ndarray, counts: np.ndarray) -> float:
        """How often a work-item empties the halves of a class: once per held steps, where it has added to it."""
        held = 257 // ceil_div(self.unit, self.lanes)
        flushes = ceil_div(lengths, self.unit * held)
        return float((np.minimum(counts, self.lanes) * np.maximum(flushes, 1)[:, None]).sum()) * self.words
