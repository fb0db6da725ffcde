"""What a build has of its tree: nodes that were split, and leaves, in the order in which devices return them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from ..tree import Level, Tree
from .jobs import Nodes, Settings, Splits

LEAVES = 1 << 17  # whose points a host thread gives their words at a time


class Assembly:
    """A tree in parts.

    Parameters
    ----------
    settings : Settings
    count : int
        Points of the tree.

    Attributes
    ----------
    splits : list of Splits
    leaves : list of (Nodes, uint32 array)
        Leaves, and their points, node by node.
    """

    def __init__(self, settings: Settings, count: int) -> None:
        self.settings, self.count = settings, count
        self.splits: list[Splits] = []
        self.leaves: list[tuple[Nodes, np.ndarray]] = []

    def tree(self, pool: ThreadPoolExecutor) -> Tree:
        """Put splits and leaves together; host threads copy, for these are some hundred bytes for every word."""
        tree = Tree(self.settings.clusters, self.settings.dims, self._levels(pool))
        tree.points = np.empty(self.count, np.uint32)

        def note(leaves: Nodes, order: np.ndarray, cuts: tuple[int, int], ends: tuple[int, int]) -> None:
            some = slice(*cuts)
            words = tree.words_at(leaves.path[some], leaves.level[some])
            tree.points[order[slice(*ends)]] = np.repeat(words, leaves.size[some])

        parts = []
        for leaves, order in self.leaves:
            cuts = [*range(0, len(leaves), LEAVES), len(leaves)]
            ends = np.concatenate([[0], np.cumsum(leaves.size)])[cuts].tolist()
            parts += [(leaves, order, *both) for both in zip(pairwise(cuts), pairwise(ends), strict=True)]
        list(pool.map(lambda part: note(*part), parts))
        return tree

    def _levels(self, pool: ThreadPoolExecutor) -> list[Level]:
        """Put the splits into the order of the tree's file, by level, then by path; what is in order is not copied."""
        levels = []
        for number in range(self.settings.levels):
            parts = []
            for split in self.splits:
                here = split.level == number
                if here.any():
                    arrays = split.path, split.centres, split.counts
                    parts.append(arrays if here.all() else tuple(array[here] for array in arrays))
            if not parts:
                break
            path, centres, counts = parts[0]
            if len(parts) > 1 or (path[1:] < path[:-1]).any():
                path, centres, counts = _merged(parts, pool)
            levels.append(Level(path, centres, counts))
        return levels


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
