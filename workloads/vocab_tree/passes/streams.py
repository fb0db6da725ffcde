"""A pass for CPUs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Kernel, Traffic, Tunable, ceil_div, round_up

from .base import Loader, Pass, through_dram


class StreamPass(Pass):
    """``streams.cl``: one work-item to a group, vectors of 16 points."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "centres_held": Tunable(10, (2, 4, 5, 8, 10), "centres whose dot products are held at a time"),
        "groups_per_unit": Tunable(4, (1, 2, 4, 8, 16), "work-items per compute unit"),
        "ahead": Tunable(64, (16, 32, 64, 128), "points that are fetched ahead"),
        "vnni": Tunable(1, (0, 1), "use the processor's dot product of bytes, where the compiler takes it"),
    }
    unit = 16
    group = 1

    def compile(self, loader: Loader) -> Kernel:
        clusters, dims, tunables = self.clusters, self.dims, self.tunables
        self.held = min(int(tunables["centres_held"]), clusters)
        self.padded = round_up(clusters, self.held)
        self.vnni = bool(tunables["vnni"]) and "vnni" in self.device.info.capabilities
        self.require_local(6 * clusters * dims + 4 * (clusters + self.padded) + 2 * dims * self.padded)
        return loader(
            "streams.cl", "pass", K=clusters, DIMS=dims, CENTRES=self.held, VNNI=int(self.vnni),
            AHEAD=int(tunables["ahead"]),
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, padded = self.clusters, float(self.dims), float(self.padded)
        tiles_, points = len(lengths), float(lengths.sum())
        blocks = float(ceil_div(lengths, 16).sum())
        flushes = float(ceil_div(lengths, 256).sum())
        return Traffic(
            integer_ops=blocks * 16 * padded * (2 * dims + 1) + 16 * blocks * 2 * dims * padded / self.held
            + points * (5 * dims / 4 + 1) + flushes * k * dims * 2,
            global_read=tiles_ * (k * (2 * dims + 4) + 20) + blocks * 16 * dims * padded / self.held + points * dims,
            global_write=points,
            local_read=blocks * padded * (2 * dims + 4) + points * (2 * dims + 4) + flushes * k * dims * 6
            + 4 * tiles_ * k * (dims + 1),
            local_write=tiles_ * (k * (6 * dims + 4) + padded * (2 * dims + 4)) + points * (2 * dims + 4)
            + flushes * k * dims * 6,
            global_atomics=float(tiles_) * k * (dims + 1), **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip
