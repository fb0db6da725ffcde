"""A pass in one source for every device: tiles of scores are made by what the device has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from perfport.workload import Kernel, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from .base import Loader, Pass, through_dram

TEAM = 32  # work-items to a block of rows in local memory
ROW_BYTES = 128  # of a row there
HELD = 256  # points of a class whose sums 16 bits hold


class Layout(NamedTuple):
    """What a work-group keeps in local memory besides norms and counts: centres at a time, sums, pairs, rows."""

    resident: int
    sums: bool
    pairs: bool
    group: int
    stages: int


class TiledPass(Pass):
    """``tiled.cl``: blocks of points times tiles of centres, by vectors, matrix units or dot products of four bytes."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "vector": Tunable({"cpu": 16, "gpu": 0}, (0, 8, 16), "points of a vector; 0: rows in local memory, no vectors"),
        "byte_units": Tunable(1, (0, 1), "matrix units, or the processor's dot product of bytes, where there are any"),
        "group": Tunable(
            {"cpu": 64, "gpu": 0},
            (0, 32, 64, 128, 256),
            "work-items per work-group; with vectors one; 0: 128, or 256 where centres and sums take more than rows",
        ),
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
        self.rows = self.vector or TEAM * self.points_each
        self.layout = self._layout()
        self.local_bytes = self.require_local(self._local_bytes(self.layout))
        self.group = self.layout.group
        self.teams = 1 if self.vector else self.group // TEAM
        self.unit = self.teams * self.rows
        self.padded = round_up(clusters, self.layout.resident)
        return loader(
            "tiled.cu" if self.matrix else "tiled.cl", "pass", K=clusters, DIMS=self.dims, GROUP=self.group,
            VECTOR=self.vector, MATRIX=int(self.matrix), VNNI=int(self.vnni),
            AHEAD=int(tunables["ahead"]), POINTS_EACH=self.points_each, CENTRES=self.held,
            RESIDENT=self.layout.resident, STAGES=self.layout.stages, LOCAL_SUMS=int(self.layout.sums),
            LOCAL_PAIRS=int(self.layout.pairs),
        )  # fmt: skip

    def _layout(self) -> Layout:
        """Return the first layout that fits, or the smallest of all."""
        for layout in self._layouts():
            if self._local_bytes(layout) <= self.device.info.local_memory_bytes:
                break
        return layout

    def _layouts(self) -> Iterator[Layout]:
        """Yield layouts, smaller and smaller: fewer blocks in flight, no sums, no pairs, then centres in chunks."""
        stages = int(self.tunables["stages"]) if self.matrix else 1
        kept = ((True, True), (False, True), (False, False)) if self.vector else ((True, False), (False, False))
        for chunks in range(1, ceil_div(self.clusters, self.held) + 1):
            resident = round_up(ceil_div(self.clusters, chunks), self.held)
            for sums, pairs in kept:
                for group in self._groups(resident, sums, pairs):
                    for staged in range(stages, 0, -1):
                        yield Layout(resident, sums, pairs, group, staged)

    def _groups(self, resident: int, sums: bool, pairs: bool) -> tuple[int, ...]:
        """Return the work-items per group to try: many teams are to share what is held for all of them."""
        if self.vector:
            return (1,)
        if asked := int(self.tunables["group"]):
            return (asked,)
        many = self._shared_bytes(resident, sums, pairs) > 128 * self.points_each * ROW_BYTES
        return (256, 128) if many else (128,)

    def _shared_bytes(self, resident: int, sums: bool, pairs: bool) -> int:
        """Return the bytes that all teams share: halves of centres, sums, pairs; norms and counts."""
        k, dims = self.clusters, self.dims
        centres = 2 * resident * (ROW_BYTES if self.matrix else dims)
        return centres + k * dims * (4 * sums + 2 * pairs) + 4 * (round_up(k, resident) + k)

    def _local_bytes(self, layout: Layout) -> int:
        """Return the size of the arena of ``tile.cl``: what is shared; rows and labels of teams."""
        shared = self._shared_bytes(layout.resident, layout.sums, layout.pairs)
        return shared if self.vector else shared + layout.group * self.points_each * (layout.stages * ROW_BYTES + 1)

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, tiles_, points = self.clusters, float(self.dims), len(lengths), float(lengths.sum())
        classes, kept = float((counts > 0).sum()), self.layout
        own = self._by_vectors(lengths, counts) if self.vector else self._by_rows(lengths)
        put = round_up(self.dims, 32) if self.matrix else self.dims  # matrix units take 32 dimensions
        brought = float(tiles_)  # centres: once, or in chunks for each step
        if kept.resident < self.padded:
            brought = float(ceil_div(lengths, self.unit).sum())
        halved = brought * self.padded * put / 4  # words of centres, whose 16 bits are taken apart
        common = Traffic(
            integer_ops=halved * (8 if self.vector and not self.vnni else 24),
            global_read=2 * brought * k * dims + tiles_ * (4 * k + 20 * self.group), global_write=points,
            local_read=4 * tiles_ * k + 4 * classes, global_atomics=classes,
            local_write=2 * brought * self.padded * put + 4 * tiles_ * (k + self.padded),
            **through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip
        if kept.sums:  # cleared, and added to the node's
            common.local_write += 4 * tiles_ * k * dims
            common.local_read += 4 * tiles_ * k * dims
            common.global_atomics += classes * dims
        return Traffic.total(common, own)

    def _by_vectors(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        """What blocks cause whose rows are read where they lie, once for each tile and once for the sums."""
        k, dims, padded, points = self.clusters, float(self.dims), float(self.padded), float(lengths.sum())
        blocks, kept = float(ceil_div(lengths, self.rows).sum()), self.layout
        read = blocks * self.rows * dims * padded / self.held
        own = Traffic(
            integer_ops=blocks * self.rows * padded * (2 * dims + 1) + points
            + (0 if self.vnni else 0.75 * read),  # bytes to 16-bit integers
            global_read=read + points * dims,
            local_read=blocks * padded * (2 * dims + 4) + 4 * points, local_write=4 * points,
        )  # fmt: skip
        if not kept.pairs:
            own.integer_ops += points * dims / 4 * 6
            own.global_atomics += points * dims
            return own
        emptied = float(ceil_div(counts, HELD).sum()) * dims
        own.integer_ops += points * 5 * dims / 4 + emptied * (2 if kept.sums else 1)
        own.local_read += 2 * (points * dims + emptied)
        own.local_write += 2 * (points * dims + emptied + len(lengths) * k * dims)
        if kept.sums:
            own.local_read += 4 * emptied
            own.local_write += 4 * emptied
        else:
            own.global_atomics += emptied
        return own

    def _by_rows(self, lengths: np.ndarray) -> Traffic:
        """What blocks cause whose rows lie in local memory: the last one of a tile is filled up."""
        k, dims, words, padded = self.clusters, float(self.dims), self.dims / 4, float(self.padded)
        blocks, points = float(ceil_div(lengths, self.rows).sum()), float(lengths.sum())
        rows = blocks * self.rows
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
            added = float(np.minimum(ceil_div(lengths, self.rows), self.teams).sum()) * k * dims
        else:
            own.integer_ops += points * words * 6
            own.local_read += points * words * 5
            added = points * dims
        if self.layout.sums:
            own.local_atomics += added
        else:
            own.global_atomics += added
        return own
