"""A pass in one source for every device: tiles of scores are made by what the device has."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Kernel, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from .base import Loader, Pass, through_dram

TEAM = 32  # work-items to a block of rows in local memory
ROW_WORDS = 32  # of a row there


class TiledPass(Pass):
    """``tiled.cl``: blocks of points times tiles of centres, by vectors, matrix units or dot products of four bytes."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "vector": Tunable({"cpu": 16, "gpu": 0}, (0, 8, 16), "points of a vector; 0: rows in local memory, no vectors"),
        "byte_units": Tunable(1, (0, 1), "matrix units, or the processor's dot product of bytes, where there are any"),
        "group": Tunable({"cpu": 64, "gpu": 128}, (32, 64, 128, 256), "work-items per work-group; with vectors one"),
        "points_each": Tunable(1, (1, 2, 4), "points that a work-item without vectors has at a time"),
        "centres_held": Tunable(10, (2, 4, 5, 8, 10, 16), "centres of a tile; matrix units: rounded up to 8"),
        "stages": Tunable(2, (1, 2, 3), "blocks that a team has in flight, at most, where copies are asynchronous"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 8}, (1, 2, 4, 8, 16, 32), "work-groups per compute unit"),
        "ahead": Tunable(64, (16, 32, 64, 128), "points that are fetched ahead, with vectors"),
    }
    PRODUCT_CLUSTERS = 16  # sums of up to so many are products on matrix units

    def compile(self, loader: Loader) -> Kernel:
        clusters, tunables, have = self.clusters, self.tunables, {*self.device.info.capabilities}
        self.vector, self.points_each = int(tunables["vector"]), int(tunables["points_each"])
        if self.vector and "opencl" not in have:
            raise UnsupportedError(f"vector: {self.device.info.id} has no vectors of {self.vector} integers")
        units = bool(tunables["byte_units"])
        self.matrix = units and not self.vector and {"ptx", "mma"} <= have
        held = min(int(tunables["centres_held"]), clusters)
        self.vnni = units and "vnni" in have
        self.held = round_up(held, 8) if self.matrix else held
        self.padded = round_up(clusters, self.held)
        self.group = 1 if self.vector else int(tunables["group"])
        self.teams = 1 if self.vector else self.group // TEAM
        self.rows = self.vector or TEAM * self.points_each
        self.unit = self.teams * self.rows
        stages = int(tunables["stages"]) if self.matrix else 1
        while stages > 1 and self._local_bytes(stages) > self.device.info.local_memory_bytes:
            stages -= 1
        self.local_bytes = self.require_local(self._local_bytes(stages))
        return loader(
            "tiled.cu" if self.matrix else "tiled.cl", "pass", K=clusters, DIMS=self.dims, GROUP=self.group,
            VECTOR=self.vector, MATRIX=int(self.matrix), VNNI=int(self.vnni),
            AHEAD=int(tunables["ahead"]), POINTS_EACH=self.points_each, CENTRES=self.held, STAGES=stages,
        )  # fmt: skip

    def _local_bytes(self, stages: int) -> int:
        """Return the size of the arena, in the order of ``tile.cl``."""
        k, dims, words = self.clusters, self.dims, self.dims // 4
        parts = 2 * self.padded * (ROW_WORDS if self.matrix else words)
        if self.vector:
            return 4 * (parts + k * dims + 2 * k * words + self.padded + k)
        staged, labels = self.unit * stages * ROW_WORDS, self.unit // 4
        return 4 * (parts + staged + k * dims + self.padded + k + labels)

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, tiles_, points = self.clusters, float(self.dims), len(lengths), float(lengths.sum())
        classes = float((counts > 0).sum())
        blocks = float(ceil_div(lengths, self.rows).sum())
        own = self._by_vectors(lengths, blocks) if self.vector else self._by_rows(lengths, blocks)
        put = round_up(self.dims, 32) if self.matrix else self.dims  # matrix units take 32 dimensions
        common = Traffic(
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group), global_write=points,
            local_read=4 * tiles_ * k * (dims + 1) + 4 * classes,
            local_write=tiles_ * (2 * self.padded * put + 4 * (k * (dims + 1) + self.padded)),
            global_atomics=classes * (dims + 1), **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip
        return Traffic.total(common, own)

    def _by_vectors(self, lengths: np.ndarray, blocks: float) -> Traffic:
        """What blocks cause whose rows are read where they lie, once for each tile and once for the sums."""
        k, dims, padded, points = self.clusters, float(self.dims), float(self.padded), float(lengths.sum())
        flushes, read = float(ceil_div(lengths, 256).sum()), blocks * self.rows * dims * padded / self.held
        pairs = 0 if self.vnni else 0.75 * read  # bytes to 16-bit integers
        return Traffic(
            integer_ops=blocks * self.rows * padded * (2 * dims + 1) + pairs
            + points * (5 * dims / 4 + 1) + flushes * k * dims * 2,
            global_read=read + points * dims,
            local_read=blocks * padded * (2 * dims + 4) + points * (2 * dims + 4) + flushes * k * dims * 6,
            local_write=2 * len(lengths) * k * dims + points * (2 * dims + 4) + flushes * k * dims * 6,
        )  # fmt: skip

    def _by_rows(self, lengths: np.ndarray, blocks: float) -> Traffic:
        """What blocks cause whose rows lie in local memory: the last one of a tile is filled up."""
        k, dims, words, padded = self.clusters, float(self.dims), self.dims / 4, float(self.padded)
        points, rows = float(lengths.sum()), blocks * self.rows
        items = rows / self.points_each
        own = Traffic(
            global_read=rows * dims, local_write=rows * (dims + 1),
            local_atomics=points, local_read=points,
        )  # fmt: skip
        if self.matrix:
            own.integer_ops += rows * padded * (4 * dims + 2)
            own.local_read += rows * round_up(self.dims, 32) * padded / self.held
            own.local_read += blocks * padded * (2 * round_up(self.dims, 64) + TEAM)
        else:
            own.integer_ops += rows * padded * (16 * words + 3)
            own.local_read += rows * dims * padded / self.held + items * padded * (2 * dims + 4)
        if self.matrix and k <= self.PRODUCT_CLUSTERS:
            own.integer_ops += rows * 32 * dims
            own.local_read += rows * (dims + 1)
            own.local_atomics += float(np.minimum(ceil_div(lengths, self.rows), self.teams).sum()) * k * dims
        else:
            own.integer_ops += points * words * 6
            own.local_read += points * words * 5
            own.local_atomics += points * dims
        return own
