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
    def streamed(self) -> bool:
        """Whether it is a single node that goes through the devices' memory in chunks."""
        return self.kind in ("shared", "large")

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
    """Shared, large, ordinary and fragment nodes.

    Parameters
    ----------
    shared : int
        A node of more points is for all devices.
    large : int
        A node of more points is large.
    fragment : int
        A node of at most so many points is a fragment.
    batch : int
        Fragments of one job at most.
    """

    def __init__(self, shared: int, large: int, fragment: int, batch: int) -> None:
        self.limits = {"shared": shared, "large": large, "ordinary": fragment, "fragment": -1}
        self.batch, self._room = batch, large
        self._waiting: dict[str, deque[Node]] = {kind: deque() for kind in self.limits}
        self._running = 0
        self._stopped = False
        self._changed = threading.Condition()
        self.nodes = dict.fromkeys(self._waiting, 0)

    def put(self, node: Node) -> None:
        """Sort a node into its queue."""
        kind = next(kind for kind, limit in self.limits.items() if node.size > limit)
        with self._changed:
            self._waiting[kind].append(node)
            self.nodes[kind] += 1
            self._changed.notify_all()

    def take_shared(self) -> Job | None:
        """Return the next shared node, if there is one."""
        with self._changed:
            return self._single("shared")

    def take(self) -> Job | None:
        """Wait for a job of any other class; ``None`` once all is done or stopped.

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

    def _single(self, kind: str) -> Job | None:
        waiting = self._waiting[kind]
        return Job(kind, [waiting.popleft()]) if waiting else None

    def _next(self) -> Job | None:
        if job := self._single("large") or self._single("ordinary"):
            return job
        nodes: list[Node] = []
        room, fragments = self._room, self._waiting["fragment"]
        while fragments and len(nodes) < self.batch and fragments[0].size <= room:
            nodes.append(fragments.popleft())
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
            self._waiting[job.kind].extendleft(reversed(job.nodes))
            self._running -= 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Let everybody who waits go."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
