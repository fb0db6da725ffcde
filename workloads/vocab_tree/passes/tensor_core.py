"""Passes on matrix units."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Kernel, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from .base import Loader, Pass, through_dram


class MatrixPass(Pass):
    """``tensor_core.cu``: scores and sums as products on matrix units, for up to 16 clusters."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "warps": Tunable(4, (2, 4, 8, 16), "warps per work-group"),
        "stages": Tunable(2, (1, 2, 3, 4), "blocks of 32 points that a warp has in flight, at most"),
        "groups_per_unit": Tunable(8, (1, 2, 4, 8, 16), "work-groups per compute unit"),
    }
    ROW = 128
    CLUSTERS = 16

    def compile(self, loader: Loader) -> Kernel:
        clusters, dims, tunables = self.clusters, self.dims, self.tunables
        if clusters > self.CLUSTERS:
            raise UnsupportedError(f"clusters: sums as products take up to {self.CLUSTERS}, got {clusters}")
        self.warps, stages = int(tunables["warps"]), int(tunables["stages"])
        self.group, self.unit = 32 * self.warps, 32 * self.warps
        self.padded = round_up(clusters, 8)
        fixed = 2 * self.padded * self.ROW + 4 * clusters * dims + 8 * self.padded + 32 * self.warps
        stage = self.warps * 32 * self.ROW
        while stages > 1 and fixed + stages * stage > self.device.info.local_memory_bytes:
            stages -= 1
        self.local_bytes = self.require_local(fixed + stages * stage)
        return loader(
            "tensor_core.cu", "pass", K=clusters, DIMS=dims, WARPS=self.warps, STAGES=stages
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, padded = self.clusters, float(self.dims), float(self.padded)
        tiles_, points = len(lengths), float(lengths.sum())
        rows = 32 * float(ceil_div(lengths, 32).sum())
        warps = float(np.minimum(ceil_div(lengths, 32), self.warps).sum())
        return Traffic(
            integer_ops=rows * (padded * (4 * dims + 2) + 32 * dims), global_write=points,
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + rows * dims,
            global_atomics=float((counts > 0).sum()) * (dims + 1), local_atomics=warps * k * dims,
            local_read=rows * (dims + round_up(self.dims, 32) + padded * round_up(self.dims, 64) / 16 + padded / 8)
            + 4 * tiles_ * k * dims,
            local_write=rows * dims + tiles_ * (2 * padded * dims + 4 * k * dims),
            **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip


class MatrixAtomicsPass(Pass):
    """``tensor_core_atomics.cu``: scores as products on matrix units from rows in registers, sums by atomics."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "warps": Tunable(12, (4, 8, 12, 16, 20, 24), "warps per work-group"),
        "sharing": Tunable(4, (2, 4), "tiles of 16 points of a warp that share a load of centres"),
        "groups_per_unit": Tunable(1, (1, 2, 4, 8), "work-groups per compute unit"),
        "spread": Tunable(1, (0, 1), "a word for each lane in the sums, where local memory has room for eight of them"),
    }

    def compile(self, loader: Loader) -> Kernel:
        clusters, dims, tunables = self.clusters, self.dims, self.tunables
        warps, sharing = int(tunables["warps"]), int(tunables["sharing"])
        self.group, self.block = 32 * warps, 16 * sharing
        self.unit = warps * self.block
        self.padded = round_up(clusters, 8)
        for spread in range(int(tunables["spread"]), -1, -1):
            self.slots = 8 * dims if spread else round_up(dims, 32)  # words of a cluster's sums
            shared = 2 * self.padded * dims + 4 * clusters * (self.slots + 1) + 4 * self.padded
            if shared <= self.device.info.local_memory_bytes:
                break
        self.local_bytes = self.require_local(shared)
        return loader(
            "tensor_core_atomics.cu", "pass", K=clusters, DIMS=dims, WARPS=warps, SHARING=sharing, SPREAD=spread
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, padded = self.clusters, float(self.dims), float(self.padded)
        tiles_, points = len(lengths), float(lengths.sum())
        rows = self.block * float(ceil_div(lengths, self.block).sum())
        return Traffic(
            integer_ops=rows * padded * (4 * dims + 2), global_write=points,
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + rows * dims,
            global_atomics=float((counts > 0).sum()) * (dims + 1), local_atomics=rows * dims + points,
            local_read=rows * padded * (2 * dims + 32) / self.block + 4 * tiles_ * k * (self.slots + 1),
            local_write=tiles_ * (padded * (2 * dims + 4) + 4 * k * (self.slots + 1)),
            **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip
