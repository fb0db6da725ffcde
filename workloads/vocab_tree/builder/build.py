"""A build: nodes to devices, children to queues, until all queues are empty."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from perfport.workload import InfrastructureError

from ..reference import check_points
from ..tree import Tree
from .assembly import Assembly
from .chunks import loads
from .crew import Chunk, Crew, by_class
from .host_memory import Points, Staging
from .jobs import Nodes, Outcome, Settings, Splits
from .preparing import InterleavingPreparer, Prepared, Preparer
from .queues import Node, Queues
from .report import Report
from .workers import Worker, WorkerLost


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
        self.assembly = Assembly(settings, self.count)
        self._failures: list[BaseException] = []
        self._lock = threading.Lock()
        # What is more than a device's share would leave the others idle.
        share = max(self.count // len(self.workers), settings.fragment)
        fitting = min(worker.plan.points for worker in self.workers)
        self.queues = Queues(share, fitting, settings.fragment, settings.batch)
        self.staging = Staging(settings.host_limit or points.array.nbytes // 2, self.workers[0].share)
        threads = settings.threads * len(self.workers)
        self._pool = ThreadPoolExecutor(threads)
        preparer = InterleavingPreparer if settings.two_kernels else Preparer
        self.preparer = preparer(self.queues, points, self.staging, self._pool, threads)
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
            tree = self.assembly.tree(self._pool)
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
                self.report.add_seconds(level, seconds)

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
            self.assembly.leaves.append((nodes, order))
            self.assembly.splits += outcome.splits
            self.report.reseeded += outcome.reseeded
            for level, seconds in outcome.seconds.items():
                self.report.add_seconds(level, seconds)

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

    def _stream(self, prepared: Prepared, workers: list[Worker]) -> tuple[list[Chunk], np.ndarray]:
        """Iterate over a node's chunks with some workers; return the points of each by class, and the centres."""
        (node,), started = prepared.job.nodes, time.perf_counter()
        crew = Crew(workers, self.settings, self.points, self._callers)
        chunks, centres = crew.iterate(prepared)
        ended, report, kept = time.perf_counter(), self.report, self.settings.kept
        with self._lock:
            report.reseeded += crew.reseeded
            report.passes += crew.passes
            report.chunk_loads += crew.loaded
            report.chunk_loads_expected += sum(loads(len(share), crew.passes, kept) for share in crew.shares)
            report.chunk_loads_naive += crew.passes * crew.chunks
            report.loaded_bytes += crew.loaded * node.size * self.settings.dims // crew.chunks
            report.pass_seconds += (ended - started) * len(workers)
            report.streamed_seconds = max(report.streamed_seconds, ended - self._started)
        return chunks, centres

    def _partition(self, node: Node, chunks: list[Chunk], centres: np.ndarray) -> None:
        """Children of a streamed node into the queues."""
        s, k = self.settings, self.settings.clusters
        inside = by_class(chunks, node.index, self._pool)
        counts = np.array([[len(numbers) for numbers in inside]], np.uint32)
        level, path = np.array([node.level]), np.array([node.path], np.uint64)
        self.assembly.splits.append(Splits(level, path, centres[None], counts))
        # What takes longest begins first.
        for number in np.argsort(-counts[0].astype(np.int64), kind="stable").tolist():
            numbers, own = inside[number], node.path * k + number
            if node.level + 1 < s.levels and len(numbers) >= k:
                self.queues.put(Node(node.level + 1, own, len(numbers), numbers))
            elif len(numbers):
                leaf = Nodes(level + 1, np.array([own], np.uint64), np.array([len(numbers)]))
                self.assembly.leaves.append((leaf, numbers))
