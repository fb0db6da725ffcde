"""Host threads that gather the points of jobs ahead of the devices, under a budget of memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from .queues import Job, Queues
from .workers import gather


class Budget:
    """Bytes that may be held at a time. What is larger than the whole budget waits until it is alone."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held, self.most = limit, 0, 0
        self._changed = threading.Condition()

    def take(self, nbytes: int) -> None:
        """Wait until so many bytes fit, and count them."""
        with self._changed:
            self._changed.wait_for(lambda: not self.held or self.held + nbytes <= self.limit)
            self.held += nbytes
            self.most = max(self.most, self.held)

    def give(self, nbytes: int) -> None:
        """Count bytes no longer."""
        with self._changed:
            self.held -= nbytes
            self._changed.notify_all()


@dataclass
class Prepared:
    """A job with its points, node by node, and their numbers."""

    job: Job
    rows: Any
    order: np.ndarray
    release: Callable[[], None]


class Preparer:
    """Takes jobs from the queues and gathers their points, one job ahead for each device.

    Parameters
    ----------
    queues : Queues
    points : PrivatePoints or SharedPoints
        The whole set.
    share : callable
        Allocates points that every worker can reach, by shape.
    budget : Budget
    threads : int
    """

    def __init__(self, queues: Queues, points: Any, share: Callable[..., Any], budget: Budget, threads: int) -> None:
        self.queues, self.points, self.share, self.budget, self.threads = queues, points, share, budget, threads
        self._pool = ThreadPoolExecutor(threads)
        self._taking = threading.Lock()

    def next(self) -> Prepared | None:
        """Return the next job with its points; ``None`` when there is none left."""
        job = self.queues.take()
        return None if job is None else self.prepare(job)

    def prepare(self, job: Job) -> Prepared:
        """Gather a job's points; a view where it is the whole set."""
        if job.nodes[0].index is None:
            return Prepared(job, self.points, np.arange(job.size, dtype=np.uint32), lambda: None)
        order = np.concatenate([node.index for node in job.nodes if node.index is not None])
        shape = (job.size, self.points.array.shape[1])
        nbytes = shape[0] * shape[1]
        self.budget.take(nbytes)
        rows = self.share(shape)
        gather(self._pool, self.threads, self.points.array, order, rows.array)

        def release() -> None:
            rows.free()
            self.budget.give(nbytes)

        return Prepared(job, rows, order, release)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
