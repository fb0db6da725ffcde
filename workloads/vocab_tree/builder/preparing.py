"""Host threads that gather the points of jobs ahead of the devices, into a block of memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from perfport.workload import round_up

from .. import passes
from .host_memory import Piece, Points, Staging
from .queues import Job, Queues
from .workers import gather

BLOCK = 1 << 15  # points that a host thread interleaves at a time


@dataclass
class Prepared:
    """A job with its points; leaving it as a context gives their memory back.

    ``rows`` are the job's points, node by node, and ``order`` their numbers. Of a node that is streamed, ``order`` is
    None, or ``rows`` are all points, of which ``order`` are still to be gathered, at each load.
    """

    job: Job
    rows: Points
    order: np.ndarray | None
    release: Callable[[], None]

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def _nothing() -> None:
    """Nothing was taken."""


class Preparer:
    """Takes nodes from the queues and gathers their points, one job ahead for each device.

    Parameters
    ----------
    queues : Queues
    points : Points
        The whole set.
    staging : Staging
        Where gathered points go.
    pool : ThreadPoolExecutor
        Of ``threads`` threads.
    threads : int
    """

    def __init__(
        self, queues: Queues, points: Points, staging: Staging, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        self.queues, self.points, self.staging, self.pool, self.threads = queues, points, staging, pool, threads

    def next(self) -> Prepared | None:
        """Return the next job with its points; ``None`` when there is none left."""
        job = self.queues.take()
        return None if job is None else self.prepare(job)

    def prepare(self, job: Job) -> Prepared:
        """Gather the points of a job; those of a streamed node only if they fit the block."""
        indices = [node.index for node in job.nodes if node.index is not None]
        if not indices:  # the root
            return Prepared(job, self.points, None if job.streamed else np.arange(job.size, dtype=np.uint32), _nothing)
        order = indices[0] if job.streamed else np.concatenate(indices)
        if job.streamed and job.size * self.points.array.shape[1] > self.staging.limit:
            return Prepared(job, self.points, order, _nothing)
        rows, release = self._gathered(order)
        return Prepared(job, rows, None if job.streamed else order, release)

    def _gathered(self, order: np.ndarray) -> tuple[Piece, Callable[[], None]]:
        rows, release = self.staging.take((len(order), self.points.array.shape[1]))
        gather(self.pool, self.threads, self.points.array, order, rows.array)
        return rows, release


class InterleavingPreparer(Preparer):
    """Interleaves the points of every job, as the source's two kernels read them; those of a streamed node once."""

    def prepare(self, job: Job) -> Prepared:
        """Gather the points of a job and interleave them."""
        indices = [np.arange(job.size, dtype=np.uint32) if node.index is None else node.index for node in job.nodes]
        order = indices[0] if len(indices) == 1 else np.concatenate(indices)
        rows, release = self._gathered(order)
        return Prepared(job, rows, None if job.streamed else order, release)

    def _gathered(self, order: np.ndarray) -> tuple[Piece, Callable[[], None]]:
        rows, release = self.staging.take((round_up(len(order), passes.RUN), self.points.array.shape[1]))

        def part(first: int) -> None:
            own = order[first : first + BLOCK]
            gathered = np.take(self.points.array, own, axis=0, mode="clip")  # "clip": nothing is checked
            passes.interleave(gathered, rows.array[first : first + round_up(len(own), passes.RUN)])

        list(self.pool.map(part, range(0, len(order), BLOCK)))
        return rows, release
