"""A node that does not fit a device: chunks in parts of the memory, one loaded while another is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfport.workload import OpenDevice, round_up

from .. import fixed_point, passes
from .chunks import Traversal, Visit
from .jobs import Nodes, Settings
from .memory import LEAST_CHUNK
from .resident import DevicePoints, Kernels, NodeState

Gather = Callable[[int, int, np.ndarray], None]


@dataclass(frozen=True)
class PassResult:
    """One device's part of a pass.

    Attributes
    ----------
    sums : uint64, (clusters, dims)
    counts : int64, (clusters,)
        Both are zero where nobody asked for them.
    loaded : int
        Chunks loaded for this pass.
    passes : int
        How often the chunks were walked for it.
    sizes : uint32, (chunks, clusters)
        Of the last pass: points of each class in each chunk.
    order : uint32, (points,)
        Of the last pass: points of each chunk, by their numbers within it, class by class, ascending in each.
    """

    sums: np.ndarray
    counts: np.ndarray
    loaded: int
    passes: int = 1
    sizes: np.ndarray | None = None
    order: np.ndarray | None = None


class Streamed:
    """Passes over one device's chunks of a node.

    Parameters
    ----------
    points : uint8, (points, dims), or callable
        Of the node; or ``gather(first, last, out)``, which puts points of the node into ``out``, uint8,
        (last - first, dims), at each load.
    chunks : list of (first, last)
        This device's chunks.
    """

    def __init__(
        self,
        device: OpenDevice,
        kernels: Kernels,
        settings: Settings,
        points: np.ndarray | Gather,
        chunks: list[tuple[int, int]],
    ) -> None:
        self.device, self.settings, self.chunks = device, settings, chunks
        self.points = points
        self.kernel, self.state = kernels.pass_, NodeState(device, kernels, settings, 1)
        self.length = round_up(max((last - first for first, last in chunks), default=0), LEAST_CHUNK)
        self.places = [device.empty(self.length * settings.dims) for _ in range(settings.places)]
        self.used: list[Any] = [None] * settings.places
        self.labels = device.empty(self.length)
        self.queue = device.queue()
        # Host memory that is gathered to, and the upload out of it that comes first.
        self.gathered: deque[tuple[np.ndarray, Any]] = deque(
            (device.pinned(max(1, self.length * settings.dims)), None) for _ in range(2 if callable(points) else 0)
        )
        self.traversal = Traversal(len(chunks), settings.kept, settings.places)
        self.asked: deque[tuple[Visit, Future | None]] = deque()
        self.tables = {}
        for size in {last - first for first, last in chunks}:
            table = passes.tiles(np.zeros(1, np.int64), np.array([size]), self.kernel.tile_points(size))
            self.tables[size] = len(table), device.upload(table)
        device.write(self.state.buffers["moving"], np.ones(1, np.uint32))
        # One thread gathers and uploads ahead of the one that launches.
        self.ahead = ThreadPoolExecutor(1, initializer=device.attach)

    def free(self) -> None:
        """Give memory and thread back."""
        self.ahead.shutdown()
        self.device.finish()
        for buffer in (*self.places, self.labels, *(table for _, table in self.tables.values())):
            buffer.free()
        self.state.free()
        self.gathered.clear()

    def _rows(self, points: np.ndarray, first: int, last: int) -> np.ndarray:
        """What is uploaded of a chunk's points."""
        return points[first:last]

    def _load(self, chunk: int, place: int) -> Any:
        """Enqueue a chunk's upload behind the last use of its place, after gathering it where that is wanted."""
        first, last = self.chunks[chunk]
        if callable(self.points):
            memory, uploaded = self.gathered.popleft()
            if uploaded is not None:
                self.device.synchronize(uploaded)
            data = memory[: (last - first) * self.settings.dims].reshape(last - first, -1)
            self.points(first, last, data)
        else:
            data = self._rows(self.points, first, last)
        if self.used[place] is not None:
            self.device.wait(self.used[place], self.queue)
        self.device.write(self.places[place], data, self.queue)
        uploaded = self.device.record(self.queue)
        if callable(self.points):
            self.gathered.append((memory, uploaded))
        return uploaded

    def _ask(self, onward: bool) -> None:
        """Load what may be loaded ahead: up to the next load whose place waits for a launch."""
        while len(self.asked) <= len(self.places):
            visit = self.traversal.advance({visit.place for visit, _ in self.asked}, onward)
            if visit is None:
                return
            loading = self.ahead.submit(self._load, visit.chunk, visit.place) if visit.missing else None
            self.asked.append((visit, loading))

    def run(self, centres: np.ndarray, last: bool) -> PassResult:
        """Do one pass: sums and counts by the nearest of ``centres``, uint16, (clusters, dims).

        The last one sorts points by class; every other one ends with the first loads of the next.
        """
        self.state.write_centres(centres[None])
        if not last:
            return self._sum()
        numbers = self.device.upload(np.arange(self.length, dtype=np.uint32))
        sorted_numbers = self.device.empty(4 * self.length)
        ends = np.cumsum([end - first for first, end in self.chunks]).tolist()
        sizes = np.empty((len(self.chunks), self.settings.clusters), np.uint32)
        order = np.empty(ends[-1] if ends else 0, np.uint32)

        def sort(chunk: int, place: int, size: int) -> None:
            node = Nodes(np.zeros(1, np.int64), np.zeros(1, np.uint64), np.array([size]))
            points, to = (DevicePoints(self.places[place], order) for order in (numbers, sorted_numbers))
            sizes[chunk] = self.state.sort(node, self.labels, points, to, moves=False)
            self.device.read(sorted_numbers, np.uint32, (size,), out=order[ends[chunk] - size : ends[chunk]])

        loaded = self._classify(sort, last=True)
        numbers.free()
        sorted_numbers.free()
        k, dims = self.settings.clusters, self.settings.dims
        return PassResult(np.zeros((k, dims), np.uint64), np.zeros(k, np.int64), loaded, sizes=sizes, order=order)

    def farthest(self, centres: np.ndarray, new: np.ndarray, count: int) -> tuple[list[tuple[int, int]], int]:
        """Return the points that are farthest from the ``new`` centres of their classes by ``centres``.

        Returns
        -------
        list of (distance, point of the node)
            Of each chunk ``count``, the largest distance first, the lowest point first of equal ones.
        int
            Chunks loaded.
        """
        device, state = self.device, self.state
        targets = device.upload(new), device.upload(fixed_point.halves(new))
        distances = device.empty(4 * self.length)
        state.write_centres(centres[None])
        candidates: list[tuple[int, int]] = []

        def measure(chunk: int, place: int, size: int) -> None:
            tiles, table = self.tables[size]
            state.launch("distances", tiles, 64, self.places[place], table, *targets, self.labels, distances)
            own = device.read(distances, np.uint32, (size,)).astype(np.int64)
            far = np.argsort(-own, kind="stable")[:count]
            candidates.extend((int(own[i]), self.chunks[chunk][0] + int(i)) for i in far)

        loaded = self._classify(measure, last=False)
        for buffer in (*targets, distances):
            buffer.free()
        return candidates, loaded

    def _sum(self) -> PassResult:
        """Classify and sum all chunks."""
        state, k, dims = self.state, self.settings.clusters, self.settings.dims
        sums, counts, added = np.zeros((k, dims), np.uint64), np.zeros(k, np.int64), 0

        def add_up() -> None:
            nonlocal sums, counts
            sums += state.read("sums", np.uint32, k, dims)
            counts += state.read("counts", np.uint32, k)
            state.clear(1)

        def add(chunk: int, place: int, size: int) -> None:
            nonlocal added
            if added + size > fixed_point.POINTS_LIMIT:
                add_up()
                added = 0
            added += size
            self._add(chunk, place, size)

        state.clear(1)
        loaded = self._walk(add, last=False)
        add_up()
        return PassResult(sums, counts, loaded)

    def _buffers(self, place: int, size: int) -> tuple[Any, ...]:
        """How many tiles a chunk of this size has, and the buffers of a pass over it."""
        tiles, table = self.tables[size]
        taken = self.state.take("centres", "halves", "moving"), self.state.take("sums", "counts")
        return tiles, self.places[place], table, *taken[0], self.labels, *taken[1]

    def _add(self, chunk: int, place: int, size: int) -> None:
        """Enqueue what adds a chunk's points up."""
        self.kernel.launch(*self._buffers(place, size))

    def _classify(self, then: Callable[[int, int, int], None], last: bool) -> int:
        """Classify all chunks, one after the other, and do what follows on each; return how many were loaded."""

        def classify(chunk: int, place: int, size: int) -> None:
            self.kernel.classify(*self._buffers(place, size))
            then(chunk, place, size)

        return self._walk(classify, last)

    def _walk(self, visited: Callable[[int, int, int], None], last: bool) -> int:
        """Go over all chunks and enqueue what is to be done with each; return how many were loaded for it."""
        loaded = 0
        for _ in self.chunks:
            if not self.asked:
                self._ask(onward=True)
            visit, loading = self.asked.popleft()
            if loading is not None:
                self.device.wait(loading.result())
            loaded += visit.missing
            first, end = self.chunks[visit.chunk]
            visited(visit.chunk, visit.place, end - first)
            self.used[visit.place] = self.device.record()
            self._ask(onward=not last)
        return loaded
