"""Queues of nodes by class: a later queue is served when the earlier ones are empty."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

from .jobs import Nodes


@dataclass(frozen=True)
class Node:
    """A node that waits: level, path, and the numbers of its points, ascending (all points where ``None``)."""

    level: int
    path: int
    size: int
    index: np.ndarray | None = None


@dataclass(frozen=True)
class Job:
    """Nodes that go to a device together; ``kind`` is the class that they came from."""

    kind: str
    nodes: list[Node]

    @property
    def size(self) -> int:
        """Points of all nodes."""
        return sum(node.size for node in self.nodes)

    def described(self) -> Nodes:
        """The nodes as arrays."""
        columns = zip(*((node.level, node.path, node.size) for node in self.nodes), strict=True)
        level, path, size = columns
        return Nodes(np.array(level, np.int64), np.array(path, np.uint64), np.array(size, np.int64))


class Queues:
    """Large, ordinary and fragment nodes.

    Parameters
    ----------
    large : int
        A node of more points is large.
    fragment : int
        A node of at most so many points is a fragment.
    batch : int
        Fragments of one job at most.
    """

    def __init__(self, large: int, fragment: int, batch: int) -> None:
        self.limits, self.batch = (large, fragment), batch
        self._large: deque[Node] = deque()
        self._ordinary: deque[Node] = deque()
        self._fragments: deque[Node] = deque()
        self._running = 0
        self._stopped = False
        self._changed = threading.Condition()
        self.nodes = {"large": 0, "ordinary": 0, "fragment": 0}

    def put(self, node: Node) -> None:
        """Sort a node into its queue."""
        large, fragment = self.limits
        with self._changed:
            if node.size > large:
                self._large.append(node)
                self.nodes["large"] += 1
            elif node.size > fragment:
                self._ordinary.append(node)
                self.nodes["ordinary"] += 1
            else:
                self._fragments.append(node)
                self.nodes["fragment"] += 1
            self._changed.notify_all()

    def take_large(self) -> Node | None:
        """Return the next large node, if there is one."""
        with self._changed:
            return self._large.popleft() if self._large else None

    def take(self) -> Job | None:
        """Wait for a job of ordinary nodes or of fragments; ``None`` once all is done or stopped.

        Who takes a job says `done`, or `give_back`.
        """
        with self._changed:
            while not self._stopped:
                if job := self._next():
                    self._running += 1
                    return job
                if not self._running:
                    return None
                self._changed.wait()
            return None

    def _next(self) -> Job | None:
        if self._ordinary:
            return Job("ordinary", [self._ordinary.popleft()])
        nodes: list[Node] = []
        room = self.limits[0]
        while self._fragments and len(nodes) < self.batch and self._fragments[0].size <= room:
            nodes.append(self._fragments.popleft())
            room -= nodes[-1].size
        return Job("fragment", nodes) if nodes else None

    def done(self) -> None:
        """A job is done, and its children are in the queues."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def give_back(self, job: Job) -> None:
        """Put a job's nodes first in their queue again: its worker is lost."""
        with self._changed:
            queue = self._ordinary if job.kind == "ordinary" else self._fragments
            queue.extendleft(reversed(job.nodes))
            self._running -= 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Let everybody who waits go."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
