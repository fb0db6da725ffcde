"""A pass that compares most centres by their upper bytes alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Kernel, Traffic, Tunable

from .. import fixed_point
from .base import Loader, Pass, through_dram

BLOCK = 8192  # points whose keys are computed at a time


class PrunedPass(Pass):
    """``pruned.cl``: rows in registers, all centres by their upper bytes, exactly those that may be the nearest."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 32, "gpu": 512}, (32, 64, 128, 256, 512, 1024), "work-items per work-group"),
        "points_each": Tunable({"cpu": 1, "gpu": 2}, (1, 2, 4), "points whose rows a work-item holds"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 1}, (1, 2, 4, 8), "work-groups per compute unit"),
    }
    KEPT = 8

    def compile(self, loader: Loader) -> Kernel:
        clusters, dims, tunables = self.clusters, self.dims, self.tunables
        self.group, self.points_each = int(tunables["group"]), int(tunables["points_each"])
        self.unit, self.kept = self.group * self.points_each, min(clusters, self.KEPT)
        words = dims // 4
        self.local_bytes = self.require_local(4 * (clusters * (2 * words + 4 + dims + 1 + 3) + 1))
        return loader(
            "pruned.cl", "pass", K=clusters, DIMS=dims, GROUP=self.group, POINTS=self.points_each, KEPT=self.kept
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        """What a launch causes, but for the exact comparisons: `comparing`."""
        k, dims, words = self.clusters, float(self.dims), self.dims / 4
        tiles_, points = len(lengths), float(lengths.sum())
        whole, left = np.divmod(lengths, self.unit)
        items = float((whole * self.group + np.minimum(left, self.group)).sum())
        classified = items * self.points_each  # a work-item without another point classifies the last one again
        classes = float((counts > 0).sum())
        return Traffic(
            integer_ops=classified * k * (8 * words + 2) + points * (14 * words + 6) + 40 * tiles_ * k * words,
            flops=2 * points, special_ops=points + tiles_ * self.group,
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + classified * dims, global_write=points,
            local_read=items * k * (dims + 4) + tiles_ * 4 * (k * (dims + 1 + words) + self.group) + 4 * classes,
            local_write=4 * tiles_ * (k * (2 * words + dims + 4) + 1),
            global_atomics=classes * (dims + 1), local_atomics=points * (dims + 1) + tiles_ * k,
            **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip

    def compared(self, points: np.ndarray, centres: np.ndarray) -> tuple[float, float]:
        """Return how often points are compared exactly.

        Parameters
        ----------
        points : uint8, (count, dims)
        centres : uint16, (clusters, dims)
            Fixed point.

        Returns
        -------
        float
            Centres that are compared exactly, per point.
        float
            Share of points whose keys are all computed again.
        """
        shifted, squares = centres.astype(np.int64) + 128, np.square(points.astype(np.float32)).sum(axis=1)
        minus = -fixed_point.halves(centres).astype(np.int64)
        bases = (minus & ~255) | (255 - np.arange(self.clusters))
        farthest = np.sqrt(np.square((shifted & 255) - 128).sum(axis=1).max().astype(np.float32))
        near = np.empty(len(points), np.int64)  # centres that may be the nearest
        for first in range(0, len(points), BLOCK):
            block = slice(first, first + BLOCK)
            keys = (
                256 * (points[block].astype(np.float32) @ (shifted >> 8).T.astype(np.float32)).astype(np.int64) + bases
            )
            bound = (np.sqrt(squares[block]) * farthest * np.float32(1.00001)).astype(np.int64) + 1
            near[block] = (keys >= (keys.max(axis=1) - 2 * bound - 510)[:, None]).sum(axis=1)
        again = (near >= self.kept) & (self.kept < self.clusters)
        return float(np.where(near == 1, 0, near).mean()), float(again.mean())

    def comparing(self, points: float, exactly: float, again: float) -> Traffic:
        """Return what comparisons cause, by what `compared` returns."""
        products = points * (exactly + again * self.clusters)
        return Traffic(integer_ops=products * (2 * self.dims + 2), local_read=products * (self.dims + 4))
