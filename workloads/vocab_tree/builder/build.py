"""A build: nodes to devices, children to queues, until all queues are empty."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from perfport.workload import InfrastructureError, ceil_div

from .. import fixed_point, seeding
from ..reference import check_points
from ..tree import Level, Tree
from .chunks import loads
from .host_memory import Points, Staging
from .jobs import Nodes, Outcome, Settings, Splits
from .memory import LEAST_CHUNK
from .preparing import Prepared, Preparer
from .queues import Node, Queues
from .streamed import PassResult
from .workers import Worker, WorkerLost

LEAVES = 1 << 17  # whose points a host thread gives their words at a time


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


@dataclass
class Report:
    """What a build did.

    Attributes
    ----------
    nodes : dict
        Nodes by class.
    seconds_by_class, seconds_by_level : dict
        Seconds that workers spent on nodes of a class, and on splitting nodes of a level.
    chunk_loads, chunk_loads_expected, chunk_loads_naive : int
        Chunks loaded; what the traversal takes by `chunks.loads`; what it would take without keeping any.
    loaded_bytes : int
        Bytes of these chunks: over the seconds of the passes they give the rate that streaming reaches.
    pass_seconds : float
        Seconds that devices spent on passes over streamed nodes, without moving the points to children.
    streamed_seconds : float
        From the start of the build to the end of the last of these passes.
    passes : int
        Passes over streamed nodes.
    reseeded : int
        Empty classes filled again.
    lost : list of str
        Workers that ended before the build did.
    prepared_bytes : int
        Most host memory that prepared points took at a time.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    seconds_by_class: dict[str, float] = field(default_factory=dict)
    seconds_by_level: dict[int, float] = field(default_factory=dict)
    chunk_loads: int = 0
    chunk_loads_expected: int = 0
    chunk_loads_naive: int = 0
    loaded_bytes: int = 0
    pass_seconds: float = 0.0
    streamed_seconds: float = 0.0
    passes: int = 0
    reseeded: int = 0
    lost: list[str] = field(default_factory=list)
    prepared_bytes: int = 0
    seconds: float = 0.0


class Build:
    """Builds one tree with some workers.

    Parameters
    ----------
    points : Points
        What every worker can reach, uint8, (points, dims).
    settings : Settings
    workers : sequence of Worker
        They stay open.

    Raises
    ------
    UsageError
        If the points cannot be clustered (`check_points`).
    """

    def __init__(self, points: Points, settings: Settings, workers: Sequence[Worker]) -> None:
        check_points(points.array, settings.clusters)
        self.points, self.settings, self.workers = points, settings, list(workers)
        self.count = len(points.array)
        self.report = Report()
        self._splits: list[Splits] = []
        self._leaves: list[tuple[Nodes, np.ndarray]] = []  # and their points, node by node
        self._failures: list[BaseException] = []
        self._lock = threading.Lock()
        # What is more than a device's share would leave the others idle.
        share = max(self.count // len(self.workers), settings.fragment)
        fitting = min(worker.plan.points for worker in self.workers)
        self.queues = Queues(share, fitting, settings.fragment, settings.batch)
        self.staging = Staging(settings.host_limit or points.array.nbytes // 2, self.workers[0].share)
        threads = settings.threads * len(self.workers)
        self._pool = ThreadPoolExecutor(threads)
        self.preparer = Preparer(self.queues, points, self.staging, self._pool, threads)
        self._callers = ThreadPoolExecutor(len(self.workers))  # a pass over a node lasts a few milliseconds

    def run(self) -> Tree:
        """Build the tree.

        Raises
        ------
        InfrastructureError
            If every worker was lost.
        """
        self._started = time.perf_counter()
        try:
            self.queues.put(Node(0, 0, self.count))
            self._split_shared()
            self._serve_all()
            tree = self._tree()
        finally:
            self._pool.shutdown()
            self._callers.shutdown()
        self.report.nodes = dict(self.queues.nodes)
        self.report.prepared_bytes = self.staging.most
        self.report.seconds = time.perf_counter() - self._started
        return tree

    def _timed(self, kind: str, level: int | None, work: Any) -> None:
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        with self._lock:
            self.report.seconds_by_class[kind] = self.report.seconds_by_class.get(kind, 0.0) + seconds
            if level is not None:
                self.report.seconds_by_level[level] = self.report.seconds_by_level.get(level, 0.0) + seconds

    def _lose(self, error: WorkerLost) -> None:
        with self._lock:
            self.report.lost.append(str(error))
            if error.worker in self.workers:
                self.workers.remove(error.worker)
            if not self.workers:
                raise InfrastructureError(f"no device worker is left: {'; '.join(self.report.lost)}") from error

    # --- a node or several on one device --------------------------------------------------------------------------

    def _serve_all(self) -> None:
        """One thread per worker takes jobs; another sorts what becomes of them."""

        def serve(worker: Worker) -> None:
            try:
                self._serve(worker, sorter)
            except BaseException as error:
                self._fail(error)

        with ThreadPoolExecutor(1) as sorter:
            threads = [threading.Thread(target=serve, args=(worker,)) for worker in list(self.workers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self._failures:
            raise self._failures[0]

    def _fail(self, error: BaseException) -> None:
        self._failures.append(error)
        self.queues.stop()

    def _serve(self, worker: Worker, sorter: ThreadPoolExecutor) -> None:
        """Split jobs on one worker, while the next one's points are gathered."""
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self.preparer.next)
            while (prepared := coming.result()) is not None:
                coming = ahead.submit(self.preparer.next)
                job = prepared.job
                level = job.nodes[0].level if job.streamed else None
                try:
                    self._timed(job.kind, level, lambda p=prepared: self._split(worker, p, sorter))
                except WorkerLost as error:
                    self.queues.give_back(job)
                    self._return(coming)
                    self._lose(error)
                    return
                except BaseException:
                    self.queues.stop()
                    self._return(coming)
                    raise

    def _return(self, coming: Any) -> None:
        """Give back the job that was prepared for a worker that is gone."""
        prepared = coming.result()
        if prepared is not None:
            prepared.release()
            self.queues.give_back(prepared.job)

    def _split(self, worker: Worker, prepared: Prepared, sorter: ThreadPoolExecutor) -> None:
        job = prepared.job
        if job.streamed:
            with prepared:
                chunks, centres = self._stream(prepared, [worker])
            sorter.submit(self._sort, self._partition, job.nodes[0], chunks, centres)
        else:
            assert prepared.order is not None
            with prepared:
                worker.load(prepared.rows, prepared.order)
            sorter.submit(self._sort, self._keep, worker.split(job.described()))

    def _sort(self, what: Callable[..., None], *args: Any) -> None:
        """Do what follows a job in the sorting thread."""
        try:
            what(*args)
        except BaseException as error:
            self._fail(error)
        finally:
            self.queues.done()

    def _keep(self, outcome: Outcome) -> None:
        """Keep what is split, note the leaves, and put the other children into the queues."""
        nodes, first = outcome.nodes, outcome.nodes.first
        again = (nodes.level < self.settings.levels) & (nodes.size >= self.settings.clusters)
        self._note(outcome, ~again)
        for number in np.flatnonzero(again):
            own = outcome.order[first[number] : first[number] + nodes.size[number]]
            self.queues.put(Node(int(nodes.level[number]), int(nodes.path[number]), len(own), own))

    def _note(self, outcome: Outcome, leaf: np.ndarray) -> None:
        nodes, order = outcome.nodes, outcome.order
        if not leaf.all():
            order = order[np.repeat(leaf, nodes.size)]
            nodes = Nodes(nodes.level[leaf], nodes.path[leaf], nodes.size[leaf])
        with self._lock:
            self._leaves.append((nodes, order))
            self._splits += outcome.splits
            self.report.reseeded += outcome.reseeded
            for level, seconds in outcome.seconds.items():
                self.report.seconds_by_level[level] = self.report.seconds_by_level.get(level, 0.0) + seconds

    # --- streamed nodes -------------------------------------------------------------------------------------------

    def _split_shared(self) -> None:
        """Split what is for all devices, one node after the other."""
        while (job := self.queues.take_shared()) is not None:
            with self.preparer.prepare(job) as prepared:
                self._timed("shared", job.nodes[0].level, lambda p=prepared: self._split_by_all(p))

    def _split_by_all(self, prepared: Prepared) -> None:
        """Split a node with all workers; if one is lost, begin again with the others."""
        while True:
            try:
                chunks, centres = self._stream(prepared, list(self.workers))
                break
            except WorkerLost as error:
                self._lose(error)
        self._partition(prepared.job.nodes[0], chunks, centres)

    def _stream(self, prepared: Prepared, crew: list[Worker]) -> tuple[list[Chunk], np.ndarray]:
        """Iterate over a node's chunks with some workers; return the points of each by class, and the centres."""
        s, (node,), started = self.settings, prepared.job.nodes, time.perf_counter()
        chunks = self._chunks(node.size, crew)
        shares = [chunks[number :: len(crew)] for number in range(len(crew))]
        self._all(crew, lambda worker, number: worker.open_node(prepared.rows, prepared.order, shares[number]))
        one = np.array([node.level]), np.array([node.path], np.uint64), np.array([node.size])
        drawn = seeding.draw(s.seed, *one, s.clusters)[0]
        centres, passes, reseeded, loaded = fixed_point.from_points(self._rows(node, drawn)), 0, 0, 0
        for _ in range(s.iterations):
            found = self._pass(crew, centres, last=False)
            passes += 1
            loaded += sum(result.loaded for result in found)
            sums, counts = np.sum([r.sums for r in found], axis=0), np.sum([r.counts for r in found], axis=0)
            new, empty = fixed_point.from_sums(sums, counts), np.flatnonzero(counts == 0)
            if len(empty):
                new[empty] = centres[empty]
                far, again = self._farthest(crew, centres, new, len(empty))
                new[empty] = fixed_point.from_points(self._rows(node, far))
                reseeded += len(empty)
                passes += 1
                loaded += again
            unchanged = np.array_equal(new, centres) and not len(empty)
            centres = new
            if unchanged:
                break
        found = self._pass(crew, centres, last=True)
        parts = [chunk for share, result in zip(shares, found, strict=True) for chunk in _chunks(share, result)]
        passes += 1
        loaded += sum(result.loaded for result in found)
        self._all(crew, lambda worker, _: worker.close_node())
        ended = time.perf_counter()
        with self._lock:
            self.report.reseeded += reseeded
            self.report.passes += passes
            self.report.chunk_loads += loaded
            self.report.chunk_loads_expected += sum(loads(len(share), passes, s.kept) for share in shares)
            self.report.chunk_loads_naive += passes * len(chunks)
            self.report.loaded_bytes += loaded * node.size * s.dims // len(chunks)
            self.report.pass_seconds += (ended - started) * len(crew)
            self.report.streamed_seconds = max(self.report.streamed_seconds, ended - self._started)
        return sorted(parts, key=lambda chunk: chunk.first), centres

    def _chunks(self, size: int, crew: list[Worker]) -> list[tuple[int, int]]:
        """Cut a node into chunks that fit every worker, of nearly equal size, as many for each worker."""
        length, workers = min(worker.plan.chunk for worker in crew), len(crew)
        number = ceil_div(size, length * workers) * workers
        number = max(ceil_div(size, length), min(number, size // LEAST_CHUNK))
        cuts = [size * i // number for i in range(number + 1)]
        return list(pairwise(cuts))

    def _rows(self, node: Node, numbers: np.ndarray) -> np.ndarray:
        return self.points.array[numbers if node.index is None else node.index[numbers]]

    def _all(self, crew: list[Worker], call: Callable[[Worker, int], Any]) -> list[Any]:
        """Call each of some workers, with its number among them, at the same time."""
        each = self._callers.map if len(crew) > 1 else map
        return list(each(call, crew, range(len(crew))))

    def _pass(self, crew: list[Worker], centres: np.ndarray, last: bool) -> list[PassResult]:
        return self._all(crew, lambda worker, _: worker.run_pass(centres, last))

    def _farthest(self, crew: list[Worker], centres: np.ndarray, new: np.ndarray, count: int) -> tuple[np.ndarray, int]:
        """Return the farthest points of the node, over all workers' chunks, and how many chunks were loaded for it."""
        found = self._all(crew, lambda worker, _: worker.farthest(centres, new, count))
        candidates = sorted((-distance, point) for far, _ in found for distance, point in far)
        return np.array([point for _, point in candidates[:count]]), sum(loaded for _, loaded in found)

    def _partition(self, node: Node, chunks: list[Chunk], centres: np.ndarray) -> None:
        """Children of a streamed node into the queues."""
        s, k = self.settings, self.settings.clusters
        inside = by_class(chunks, node.index, self._pool)
        counts = np.array([[len(numbers) for numbers in inside]], np.uint32)
        level, path = np.array([node.level]), np.array([node.path], np.uint64)
        self._splits.append(Splits(level, path, centres[None], counts))
        # What takes longest begins first.
        for number in np.argsort(-counts[0].astype(np.int64), kind="stable").tolist():
            numbers, own = inside[number], node.path * k + number
            if node.level + 1 < s.levels and len(numbers) >= k:
                self.queues.put(Node(node.level + 1, own, len(numbers), numbers))
            elif len(numbers):
                leaf = Nodes(level + 1, np.array([own], np.uint64), np.array([len(numbers)]))
                self._leaves.append((leaf, numbers))

    def _tree(self) -> Tree:
        """Put splits and leaves together; host threads copy, for these are some hundred bytes for every word."""
        tree = Tree(self.settings.clusters, self.settings.dims, self._levels())
        tree.points = np.empty(self.count, np.uint32)

        def note(leaves: Nodes, order: np.ndarray, cuts: tuple[int, int], ends: tuple[int, int]) -> None:
            some = slice(*cuts)
            words = tree.words_at(leaves.path[some], leaves.level[some])
            tree.points[order[slice(*ends)]] = np.repeat(words, leaves.size[some])

        parts = []
        for leaves, order in self._leaves:
            cuts = [*range(0, len(leaves), LEAVES), len(leaves)]
            ends = np.concatenate([[0], np.cumsum(leaves.size)])[cuts].tolist()
            parts += [(leaves, order, *both) for both in zip(pairwise(cuts), pairwise(ends), strict=True)]
        list(self._pool.map(lambda part: note(*part), parts))
        return tree

    def _levels(self) -> list[Level]:
        """Put the splits into the order of the tree's file, by level, then by path; what is in order is not copied."""
        found = []
        for number in range(self.settings.levels):
            parts = []
            for split in self._splits:
                here = split.level == number
                if here.any():
                    arrays = split.path, split.centres, split.counts
                    parts.append(arrays if here.all() else tuple(array[here] for array in arrays))
            if not parts:
                break
            path, centres, counts = parts[0]
            if len(parts) > 1 or (path[1:] < path[:-1]).any():
                path, centres, counts = _merged(parts, self._pool)
            found.append(Level(path, centres, counts))
        return found


def _merged(parts: Sequence[tuple[np.ndarray, ...]], pool: ThreadPoolExecutor) -> tuple[np.ndarray, ...]:
    """Paths, centres and counts of all parts by ascending path."""
    paths = np.concatenate([path for path, _, _ in parts])
    order = np.argsort(paths)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = np.cumsum([len(path) for path, _, _ in parts])
    _, like, counted = parts[0]
    centres, counts = (np.empty((len(paths), *array.shape[1:]), array.dtype) for array in (like, counted))

    def copy(number: int) -> None:
        _, own, sizes = parts[number]
        where = place[ends[number] - len(own) : ends[number]]
        centres[where], counts[where] = own, sizes

    list(pool.map(copy, range(len(parts))))
    return paths[order], centres, counts


def _chunks(share: list[tuple[int, int]], result: PassResult) -> list[Chunk]:
    """What a device found of its share of a node, chunk by chunk."""
    assert result.sizes is not None and result.order is not None
    found, done = [], 0
    for (first, last), sizes in zip(share, result.sizes, strict=True):
        found.append(Chunk(first, sizes, result.order[done : done + last - first]))
        done += last - first
    return found


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

    def one(number: int) -> np.ndarray:
        found, done = np.empty(sizes[:, number].sum(), np.uint32), 0
        for chunk, start, size in zip(chunks, starts[:, number], sizes[:, number], strict=True):
            own, out = chunk.order[start : start + size], found[done : done + size]
            if index is None:
                np.add(own, np.uint32(chunk.first), out=out)
            else:
                np.take(index[chunk.first :], own, out=out, mode="clip")
            done += size
        return found

    return list(pool.map(one, range(sizes.shape[1])))
