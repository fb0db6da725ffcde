"""What travels between a build and its device workers: nodes to split, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Settings:
    """What a tree is made of, and how it is made; only the first five change the tree.

    Attributes
    ----------
    clusters : int
        K, children of a node.
    levels : int
        L, how often a point's node is split at most.
    iterations : int
        Of a node, at most; fewer if its centres stop changing.
    seed : int
    dims : int
    memory_limit : int, optional
        Bytes of each device's memory; what is free unless given.
    host_limit : int, optional
        Bytes of gathered points in host memory; half of the data unless given. One job always may.
    batch : int
        Nodes to a launch at most.
    fragment : int
        Nodes of at most so many points are fragments, which wait for each other.
    resident : bool
        A job goes on with the children of its nodes, which are in the device's memory already; else they go back to the
        queues.
    places : int
        Chunks that a device's memory is for.
    kept : int
        Chunks that one pass leaves to the next, 0 to ``places``.
    threads : int
        Host threads that prepare points, for each device.
    two_kernels : bool
        As in the source: classify and sum are two kernels, each goes over all chunks of a streamed node before the
        other, the host merges after each, and its threads interleave the points of every job; not with ``resident``.
    """

    clusters: int
    levels: int
    iterations: int
    seed: int
    dims: int
    memory_limit: int | None = None
    host_limit: int | None = None
    batch: int = 16384
    fragment: int = 4096
    resident: bool = True
    places: int = 2
    kept: int = 1
    threads: int = 4
    two_kernels: bool = False


@dataclass
class Nodes:
    """Nodes, in the order of their points.

    Attributes
    ----------
    level, size : int64, (nodes,)
    path : uint64, (nodes,)
    """

    level: np.ndarray
    path: np.ndarray
    size: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """First point of each node."""
        return np.cumsum(self.size) - self.size

    def __len__(self) -> int:
        return len(self.size)


@dataclass
class Splits:
    """Nodes that were split: level, path, centres (uint16) and counts (uint32) of their children."""

    level: np.ndarray
    path: np.ndarray
    centres: np.ndarray
    counts: np.ndarray


@dataclass
class Outcome:
    """A job that is done.

    Attributes
    ----------
    splits : list of Splits
    nodes : Nodes
        What is left unsplit, in the order of ``order``.
    order : uint32
        The points, by their numbers in the whole set.
    reseeded : int
        Empty classes that were filled again.
    seconds : dict
        By level: host seconds of the nodes split there.
    """

    splits: list[Splits]
    nodes: Nodes
    order: np.ndarray
    reseeded: int
    seconds: dict[int, float]
