"""Nodes in a device's memory: all iterations of many nodes per launch, children moved together, level after level."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from perfport.workload import Buffer, OpenDevice, ceil_div

from .. import fixed_point, passes, seeding
from .jobs import Nodes, Outcome, Settings, Splits
from .memory import SCATTER_TILE, Plan

GROUP = 256
# What is worth a host thread: less of it, and threads wait for each other's pages and for the interpreter.
NODES_EACH, BYTES_EACH = 8192, 8 << 20


class Kernels:
    """All kernels of a build, compiled for a device."""

    def __init__(
        self, device: OpenDevice, loader: passes.Loader, settings: Settings, tunables: Mapping[str, Any]
    ) -> None:
        kind = passes.suited(device.info, settings.clusters, settings.two_kernels)
        self.pass_ = kind(device, loader, settings.clusters, settings.dims, tunables)
        self.group = min(GROUP, device.info.max_work_group)
        macros = {
            "K": settings.clusters, "DIMS": settings.dims, "GROUP": self.group, "TILE": SCATTER_TILE,
            "INTERLEAVED": int(settings.two_kernels),
        }  # fmt: skip
        names = ("clear", "start", "update", "distances", "refill", "count_tiles", "place_tiles", "scatter")
        self.named = {name: loader("tree.cl", name, **macros) for name in names}


@dataclass(frozen=True)
class DevicePoints:
    """Points on the device: their rows, and their numbers in the whole set."""

    rows: Buffer
    order: Buffer


class NodeState:
    """Centres, sums and flags of the nodes of a launch."""

    def __init__(self, device: OpenDevice, kernels: Kernels, settings: Settings, nodes: int) -> None:
        self.device, self.k, self.dims = device, settings.clusters, settings.dims
        self.kernels, self.group = kernels.named, kernels.group
        centres = nodes * self.k
        sizes = {
            "centres": 2 * centres * self.dims, "halves": 4 * centres, "moving": 4 * nodes,
            "sums": 4 * centres * self.dims, "counts": 4 * centres, "empty": 4 * nodes, "chosen": 4 * centres,
            "progress": 8,
        }  # fmt: skip
        self.buffers = {name: device.empty(nbytes) for name, nbytes in sizes.items()}
        self.reseeded = 0

    def launch(self, name: str, groups: int, group: int, *args: Any) -> None:
        """Enqueue one of the kernels."""
        self.device.launch(self.kernels[name], groups, group, *args)

    def take(self, *names: str) -> list[Buffer]:
        """Return buffers by name."""
        return [self.buffers[name] for name in names]

    def clear(self, nodes: int) -> None:
        """Set sums and counts to zero."""
        self.launch("clear", 4 * self.device.info.compute_units, 64, *self.take("sums", "counts"), np.uint32(nodes))

    def start(self, points: Buffer, chosen: np.ndarray) -> None:
        """Begin with chosen points as centres, uint32, (nodes, clusters)."""
        self.device.write(self.buffers["chosen"], np.ascontiguousarray(chosen, np.uint32))
        self.launch("start", chosen.size, self.dims, points, *self.take("chosen", "centres", "halves", "moving"))

    def write_centres(self, centres: np.ndarray) -> None:
        """Set all centres, uint16, (nodes, clusters, dims)."""
        self.device.write(self.buffers["centres"], np.ascontiguousarray(centres))
        self.device.write(self.buffers["halves"], fixed_point.halves(centres))

    def update(self, nodes: int) -> tuple[int, int]:
        """Make new centres; return how many nodes still move, and how many classes are empty."""
        self.device.fill(self.buffers["progress"], 0)
        names = ("sums", "counts", "centres", "halves", "moving", "empty", "progress")
        self.launch("update", nodes, self.dims, *self.take(*names))
        moving, gaps = self.device.read(self.buffers["progress"], np.uint32, (2,))
        return int(moving), int(gaps)

    def read(self, name: str, dtype: Any, *shape: int) -> np.ndarray:
        """Copy the front of a buffer to the host."""
        return self.device.read(self.buffers[name], dtype, shape)

    def sort(self, nodes: Nodes, labels: Buffer, points: DevicePoints, to: DevicePoints, moves: bool) -> np.ndarray:
        """Bring the points' numbers into the order of their classes, and their rows too if ``moves``.

        Returns
        -------
        uint32, (nodes, clusters)
            Points of each class.
        """
        device, k, count = self.device, self.k, len(nodes)
        table = passes.tiles(nodes.first, nodes.size, SCATTER_TILE)
        heads = np.concatenate([[0], np.cumsum(ceil_div(nodes.size, SCATTER_TILE))]).astype(np.uint32)
        tiles, head, places, sizes = buffers = (
            device.upload(table), device.upload(heads), device.empty(4 * len(table) * k), device.empty(4 * count * k)
        )  # fmt: skip
        self.launch("count_tiles", len(table), self.group, tiles, labels, places)
        self.launch("place_tiles", count, self.group, tiles, head, places, sizes)
        args = (points.rows, points.order, tiles, labels, places, np.uint32(moves), to.rows, to.order)
        self.launch("scatter", len(table), self.group, *args)
        counts = device.read(sizes, np.uint32, (count, k))
        for buffer in buffers:
            buffer.free()
        return counts

    def free(self) -> None:
        """Give the memory back."""
        for buffer in self.buffers.values():
            buffer.free()


class Resident:
    """Splits nodes whose points are uploaded together, down to the leaves or by one level."""

    def __init__(
        self, device: OpenDevice, kernels: Kernels, settings: Settings, plan: Plan, pool: ThreadPoolExecutor
    ) -> None:
        self.device, self.settings, self.plan, self.pool = device, settings, plan, pool
        self.kernels, self.kernel = kernels, kernels.pass_
        self._held = 0
        self._state: NodeState | None = None
        self._buffers: list[Buffer] = []
        self._centres: np.ndarray = np.empty(0, np.uint16)  # page-locked, for those of a launch

    def _reserve(self, points: int) -> None:
        """Have room for so many points (rows and order twice, labels) and for as many nodes as they can make."""
        if points > self._held:
            self.free()
            dims, nodes = self.settings.dims, max(1, points // self.settings.clusters)
            self._state = NodeState(self.device, self.kernels, self.settings, min(nodes, self.plan.nodes))
            self._buffers = [self.device.empty(points * n) for n in (dims, dims, 4, 4, 1)]
            pinned = self.device.pinned(self._state.buffers["centres"].nbytes).view(np.uint16)
            self._centres = pinned.reshape(-1, self.settings.clusters, dims)
            self._held = points

    @property
    def state(self) -> NodeState:
        """Of the nodes of a launch; there once memory is reserved."""
        assert self._state
        return self._state

    def free(self) -> None:
        """Give the memory back."""
        for buffer in self._buffers:
            buffer.free()
        self._buffers, self._held = [], 0
        self._centres = np.empty(0, np.uint16)
        if self._state:
            self._state.free()
            self._state = None

    def load(self, rows: np.ndarray, order: np.ndarray) -> None:
        """Bring the points of some nodes to the device; the host's memory is free again afterwards.

        Parameters
        ----------
        rows : uint8, (points, dims)
            Node by node; or interleaved, with as many points more as make whole runs.
        order : uint32, (points,)
            Numbers of these points in the whole set.
        """
        self._reserve(len(rows))
        rows_from, _, order_from, *_ = self._buffers
        self.device.write(rows_from, rows)
        self.device.write(order_from, order)

    def split(self, nodes: Nodes) -> Outcome:
        """Split the nodes whose points are loaded."""
        s, device = self.settings, self.device
        rows_from, rows_to, order_from, order_to, labels = self._buffers
        points, to = DevicePoints(rows_from, order_from), DevicePoints(rows_to, order_to)
        splits: list[Splits] = []
        seconds: dict[int, float] = {}
        self.state.reseeded = 0
        while True:
            started = time.perf_counter()
            ready = (nodes.level < s.levels) & (nodes.size >= s.clusters)
            if not ready.any():
                break
            device.fill(labels, 0)  # nodes that are done count as one class
            centres = self._iterate_all(nodes, np.flatnonzero(ready), points.rows, labels)
            last = not s.resident or not self._goes_on(nodes, ready)
            counts = self.state.sort(nodes, labels, points, to, moves=not last)
            split = Splits(nodes.level[ready], nodes.path[ready], centres, counts[ready])
            splits.append(split)
            nodes = self._children(nodes, ready, counts)
            points, to = to, points
            level = int(split.level.max())
            seconds[level] = seconds.get(level, 0.0) + time.perf_counter() - started
            if last:
                break
        order = device.read(points.order, np.uint32, (int(nodes.size.sum()),))
        return Outcome(splits, nodes, order, self.state.reseeded, seconds)

    def _goes_on(self, nodes: Nodes, ready: np.ndarray) -> bool:
        """Whether any child of these nodes may be split again."""
        below = (nodes.level < self.settings.levels - 1) & (nodes.size >= self.settings.clusters)
        return bool((below & ready).any())

    def _iterate_all(self, nodes: Nodes, ready: np.ndarray, rows: Buffer, labels: Buffer) -> np.ndarray:
        """Run all iterations of the nodes that are ``ready``, as many at a time as fit; return their centres."""
        s = self.settings
        centres = np.empty((len(ready), s.clusters, s.dims), np.uint16)
        drawn = np.empty((len(ready), s.clusters), np.int64)

        def draw(some: slice) -> None:
            own = ready[some]
            drawn[some] = seeding.draw(s.seed, nodes.level[own], nodes.path[own], nodes.size[own], s.clusters)

        def keep(some: slice) -> None:
            np.copyto(centres[first:last][some], pinned[some])

        self._each(draw, len(ready), NODES_EACH)
        batches = ceil_div(len(ready), self.plan.nodes)
        for first, last in pairwise(len(ready) * i // batches for i in range(batches + 1)):
            self._iterate(nodes, ready[first:last], drawn[first:last], rows, labels)
            pinned = self._centres[: last - first]
            self.device.read(self.state.buffers["centres"], np.uint16, pinned.shape, out=pinned)
            self._each(keep, last - first, BYTES_EACH // centres[0].nbytes)
        return centres

    def _each(self, work: Callable[[slice], None], count: int, least: int) -> None:
        """Do what is to be done for each of many nodes by several host threads, for ``least`` nodes or more in each."""
        parts = max(1, min(self.settings.threads, count // least))
        some = [slice(count * i // parts, count * (i + 1) // parts) for i in range(parts)]
        list(self.pool.map(work, some) if parts > 1 else map(work, some))

    def _iterate(self, nodes: Nodes, batch: np.ndarray, drawn: np.ndarray, rows: Buffer, labels: Buffer) -> None:
        """Run all iterations of some nodes from the points ``drawn``; leaves labels and centres on the device."""
        s, state, count = self.settings, self.state, len(batch)
        first, size = nodes.first[batch], nodes.size[batch]
        table = passes.tiles(first, size, self.kernel.tile_points(int(size.sum())))
        tiles = self.device.upload(table)
        buffers = [rows, tiles, *state.take("centres", "halves", "moving"), labels, *state.take("sums", "counts")]
        state.start(rows, drawn + first[:, None])
        state.clear(count)
        for _ in range(s.iterations):
            self.kernel.launch(len(table), *buffers)
            moving, gaps = state.update(count)
            if gaps:
                self._refill(first, size, (len(table), tiles), rows, labels)
                state.reseeded += gaps
            if not moving:
                break
        self.kernel.launch(len(table), *buffers)
        tiles.free()

    def _refill(
        self, first: np.ndarray, size: np.ndarray, tiles: tuple[int, Buffer], rows: Buffer, labels: Buffer
    ) -> None:
        """Give empty classes the farthest points of their nodes."""
        device, state, (count, table) = self.device, self.state, tiles
        distances, *where = buffers = (
            device.empty(4 * int((first + size).max())),
            device.upload(first.astype(np.uint32)),
            device.upload(size.astype(np.uint32)),
        )
        centres = state.take("centres", "halves")
        state.launch("distances", count, 64, rows, table, *centres, labels, distances)
        told = state.take("moving", "empty", "counts")
        state.launch("refill", len(first), state.group, rows, *where, distances, *told, *centres)
        device.fill(state.buffers["counts"], 0)
        for buffer in buffers:
            buffer.free()

    def _children(self, nodes: Nodes, ready: np.ndarray, counts: np.ndarray) -> Nodes:
        """Return the nodes after a split, those that were not split among them."""
        k = self.settings.clusters
        sizes = counts.astype(np.int64)
        level = np.repeat(nodes.level + ready, k)
        digits = np.tile(np.arange(k, dtype=np.uint64), len(nodes))
        path = np.where(np.repeat(ready, k), np.repeat(nodes.path, k) * np.uint64(k) + digits, np.repeat(nodes.path, k))
        there = sizes.ravel() > 0
        return Nodes(level[there], path[there], sizes.ravel()[there])
