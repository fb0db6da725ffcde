"""Workers that iterate over the chunks of one node together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from perfport.workload import ceil_div, round_up

from .. import fixed_point, seeding
from .host_memory import Points
from .jobs import Settings
from .memory import LEAST_CHUNK
from .preparing import Prepared
from .queues import Node
from .streamed import PassResult
from .workers import Worker


@dataclass(frozen=True)
class Chunk:
    """A part of a node's points, by class.

    Attributes
    ----------
    first : int
        Its first point.
    sizes : uint32, (clusters,)
        Points of each class.
    order : uint32, (points,)
        The points, by their numbers within the chunk, class by class, ascending in each.
    """

    first: int
    sizes: np.ndarray
    order: np.ndarray


class Crew:
    """Some workers and one node.

    Parameters
    ----------
    workers : list of Worker
    settings : Settings
    points : Points
        The whole set.
    callers : ThreadPoolExecutor
        A thread for each worker.

    Attributes
    ----------
    shares : list of lists of (first, last)
        Chunks of each worker.
    passes, loaded, reseeded : int
        Passes so far, chunks loaded for them, empty classes filled again.
    """

    def __init__(self, workers: list[Worker], settings: Settings, points: Points, callers: ThreadPoolExecutor) -> None:
        self.workers, self.settings, self.points, self.callers = workers, settings, points, callers
        self.shares: list[list[tuple[int, int]]] = []
        self.passes = self.loaded = self.reseeded = 0

    @property
    def chunks(self) -> int:
        """Chunks of the node."""
        return sum(len(share) for share in self.shares)

    def iterate(self, prepared: Prepared) -> tuple[list[Chunk], np.ndarray]:
        """Iterate over a node; return the points of each chunk by class, and the centres, uint16, (clusters, dims)."""
        s, (node,) = self.settings, prepared.job.nodes
        chunks = self._cut(node.size)
        self.shares = [chunks[number :: len(self.workers)] for number in range(len(self.workers))]
        self._all(lambda worker, number: worker.open_node(prepared.rows, prepared.order, self.shares[number]))
        where = np.array([node.level]), np.array([node.path], np.uint64), np.array([node.size])
        drawn = seeding.draw(s.seed, *where, s.clusters)[0]
        centres, moving = fixed_point.from_points(self._rows(node, drawn)), True
        for _ in range(s.iterations):
            if not moving:
                break
            centres, moving = self._improve(node, centres)
        results = self._pass(centres, last=True)
        parts = [chunk for both in zip(self.shares, results, strict=True) for chunk in _chunks_of(*both)]
        self._all(lambda worker, _: worker.close_node())
        return sorted(parts, key=lambda chunk: chunk.first), centres

    def _improve(self, node: Node, centres: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the means of the classes by ``centres``, and whether they differ from these."""
        results = self._pass(centres, last=False)
        sums, counts = (np.sum([getattr(result, name) for result in results], axis=0) for name in ("sums", "counts"))
        new, empty = fixed_point.from_sums(sums, counts), np.flatnonzero(counts == 0)
        if len(empty):
            new[empty] = centres[empty]
            new[empty] = fixed_point.from_points(self._rows(node, self._farthest(centres, new, len(empty))))
            self.reseeded += len(empty)
        return new, bool(len(empty)) or not np.array_equal(new, centres)

    def _cut(self, size: int) -> list[tuple[int, int]]:
        """Cut a node into chunks that fit every worker, of nearly equal size, as many for each worker."""
        length, workers = min(worker.plan.chunk for worker in self.workers), len(self.workers)
        number = ceil_div(size, length * workers) * workers
        number = max(ceil_div(size, length), min(number, size // LEAST_CHUNK))
        cuts = [*(round_up(size * i // number, LEAST_CHUNK) for i in range(number)), size]
        return list(pairwise(cuts))

    def _rows(self, node: Node, numbers: np.ndarray) -> np.ndarray:
        return self.points.array[numbers if node.index is None else node.index[numbers]]

    def _all(self, call: Callable[[Worker, int], Any]) -> list[Any]:
        """Call each worker, with its number, at the same time."""
        each = self.callers.map if len(self.workers) > 1 else map
        return list(each(call, self.workers, range(len(self.workers))))

    def _pass(self, centres: np.ndarray, last: bool) -> list[PassResult]:
        results = self._all(lambda worker, _: worker.run_pass(centres, last))
        self.passes += results[0].passes
        self.loaded += sum(result.loaded for result in results)
        return results

    def _farthest(self, centres: np.ndarray, new: np.ndarray, count: int) -> np.ndarray:
        """Return the farthest points of the node, over all workers' chunks."""
        results = self._all(lambda worker, _: worker.farthest(centres, new, count))
        self.passes += 1
        self.loaded += sum(loaded for _, loaded in results)
        candidates = sorted((-distance, point) for far, _ in results for distance, point in far)
        return np.array([point for _, point in candidates[:count]])


def _chunks_of(share: list[tuple[int, int]], result: PassResult) -> list[Chunk]:
    """What a device says of its share of a node, chunk by chunk."""
    assert result.sizes is not None and result.order is not None
    chunks, done = [], 0
    for (first, last), sizes in zip(share, result.sizes, strict=True):
        chunks.append(Chunk(first, sizes, result.order[done : done + last - first]))
        done += last - first
    return chunks


def by_class(chunks: Sequence[Chunk], index: np.ndarray | None, pool: ThreadPoolExecutor) -> list[np.ndarray]:
    """Put the points of a node's chunks, in the order of these, together.

    Parameters
    ----------
    chunks : sequence of Chunk
    index : uint32, (points,), optional
        Numbers of the node's points in the whole set, unless they are those in the node.
    pool : ThreadPoolExecutor

    Returns
    -------
    list of uint32 arrays
        Of each class the numbers of its points, ascending.
    """
    sizes = np.array([chunk.sizes for chunk in chunks], np.int64)
    starts = np.cumsum(sizes, axis=1) - sizes  # in each chunk

    def points_of(number: int) -> np.ndarray:
        numbers, done = np.empty(sizes[:, number].sum(), np.uint32), 0
        for chunk, start, size in zip(chunks, starts[:, number], sizes[:, number], strict=True):
            own, out = chunk.order[start : start + size], numbers[done : done + size]
            if index is None:
                np.add(own, np.uint32(chunk.first), out=out)
            else:
                np.take(index[chunk.first :], own, out=out, mode="clip")
            done += size
        return numbers

    return list(pool.map(points_of, range(sizes.shape[1])))
