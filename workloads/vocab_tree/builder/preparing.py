"""Host threads that gather the points of jobs ahead of the devices, into a block of memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .host_memory import Piece, Points, Staging
from .queues import Job, Node, Queues
from .workers import gather


@dataclass
class Prepared:
    """A job with its points, node by node, and their numbers."""

    job: Job
    rows: Points
    order: np.ndarray
    release: Callable[[], None]


@dataclass
class PreparedLarge:
    """A large node with its points: in its own order, or all points, of which ``index`` are the node's."""

    node: Node
    rows: Points
    index: np.ndarray | None
    release: Callable[[], None]


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
    threads : int
    """

    def __init__(self, queues: Queues, points: Points, staging: Staging, threads: int) -> None:
        self.queues, self.points, self.staging, self.threads = queues, points, staging, threads
        self._pool = ThreadPoolExecutor(threads)

    def next(self) -> Prepared | None:
        """Return the next job with its points; ``None`` when there is none left."""
        job = self.queues.take()
        if job is None:
            return None
        if job.nodes[0].index is None:
            return Prepared(job, self.points, np.arange(job.size, dtype=np.uint32), _nothing)
        order = np.concatenate([node.index for node in job.nodes if node.index is not None])
        rows, release = self._gathered(order)
        return Prepared(job, rows, order, release)

    def next_large(self) -> PreparedLarge | None:
        """Return the next large node; its points are gathered once if they fit, else at every load."""
        node = self.queues.take_large()
        if node is None:
            return None
        if node.index is None or node.size * self.points.array.shape[1] > self.staging.limit:
            return PreparedLarge(node, self.points, node.index, _nothing)
        rows, release = self._gathered(node.index)
        return PreparedLarge(node, rows, None, release)

    def _gathered(self, order: np.ndarray) -> tuple[Piece, Callable[[], None]]:
        rows, release = self.staging.take((len(order), self.points.array.shape[1]))
        gather(self._pool, self.threads, self.points.array, order, rows.array)
        return rows, release

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
