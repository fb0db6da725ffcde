"""A build as the source has it: two kernels, and the host merges what each leaves before the next begins."""

from __future__ import annotations

import numpy as np

from perfport.workload import Buffer, round_up

from .. import fixed_point, passes
from .jobs import Nodes
from .resident import Resident
from .streamed import PassResult, Streamed

MERGED = 64  # nodes that a host thread makes new centres of, at least


class MergedResident(Resident):
    """Splits nodes whose points are on the device by one level; the host makes new centres of the sums."""

    kernel: passes.TwoKernelPass

    def _iterate(self, nodes: Nodes, batch: np.ndarray, drawn: np.ndarray, rows: Buffer, labels: Buffer) -> None:
        device, s, state, count = self.device, self.settings, self.state, len(batch)
        first, size = nodes.first[batch], nodes.size[batch]
        table = passes.tiles(first, size, self.kernel.tile_points(int(size.sum())))
        tiles = device.upload(table)
        buffers = [rows, tiles, *state.take("centres", "halves", "moving"), labels, *state.take("sums", "counts")]
        state.start(rows, drawn + first[:, None])
        centres, moving = state.read("centres", np.uint16, count, s.clusters, s.dims), np.ones(count, bool)
        for _ in range(s.iterations):
            state.clear(count)
            self.kernel.classify(len(table), *buffers)
            device.finish()
            self.kernel.add(len(table), *buffers)
            centres, moving, empty = self._merge(centres, moving)
            device.write(state.buffers["moving"], moving.astype(np.uint32))
            if empty.any():
                device.write(state.buffers["empty"], empty)
                self._refill(first, size, (len(table), tiles), rows, labels)
                state.reseeded += int(empty.sum())
                centres = state.read("centres", np.uint16, *centres.shape)
            if not moving.any():
                break
        self.kernel.classify(len(table), *buffers)
        tiles.free()

    def _merge(self, centres: np.ndarray, moving: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Write new centres of the moving nodes; return them, which nodes still move, and their empty classes."""
        state, (count, k, dims) = self.state, centres.shape
        sums, counts = state.read("sums", np.uint32, count, k, dims), state.read("counts", np.uint32, count, k)
        new, halves = np.empty_like(centres), np.empty((count, k), np.int32)
        moves, empty = np.empty(count, bool), np.empty(count, np.uint32)

        def merge(some: slice) -> None:
            new[some] = fixed_point.from_sums(sums[some], counts[some])
            none = counts[some] == 0  # also of nodes that do not move
            new[some][none] = centres[some][none]
            halves[some] = fixed_point.halves(new[some])
            empty[some] = none.sum(axis=1) * moving[some]
            moves[some] = moving[some] & ((new[some] != centres[some]).any(axis=(1, 2)) | (empty[some] > 0))

        self._each(merge, count, MERGED)
        self.device.write(state.buffers["centres"], new)
        self.device.write(state.buffers["halves"], halves)
        return new, moves, empty


class TwiceStreamed(Streamed):
    """Walks the chunks twice for an iteration: to classify, and to add up; labels are gathered in the host's memory."""

    kernel: passes.TwoKernelPass

    def _rows(self, points: np.ndarray, first: int, last: int) -> np.ndarray:
        return points[first : round_up(last, passes.RUN)]

    def _sum(self) -> PassResult:
        labels = {}

        def keep(chunk: int, place: int, size: int) -> None:
            labels[chunk] = self.device.read(self.labels, np.uint8, (size,))

        self._labels = labels
        loaded = self._classify(keep, last=False)
        result = super()._sum()
        return PassResult(result.sums, result.counts, loaded + result.loaded, passes=2)

    def _add(self, chunk: int, place: int, size: int) -> None:
        self.device.write(self.labels, self._labels[chunk])
        self.kernel.add(*self._buffers(place, size))
