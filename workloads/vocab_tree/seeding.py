"""First centres: which of its points a node starts from, by a seed that depends on the node alone.

A node is known by its level and its path (the classes on the way from the root, as digits to the base of the number of
clusters), so that the order in which nodes are processed, on however many devices, does not change the tree.
"""

from __future__ import annotations

import numpy as np


def _mixed(x: np.ndarray) -> np.ndarray:
    """The 64-bit finaliser of SplitMix (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw(seed: int, levels: np.ndarray, paths: np.ndarray, sizes: np.ndarray, clusters: int) -> np.ndarray:
    """Draw different points of each node, by R. W. Floyd's algorithm (Communications of the ACM 30(9), 1987).

    Parameters
    ----------
    seed : int
    levels : integer, (nodes,)
    paths : uint64, (nodes,)
    sizes : integer, (nodes,)
        Points of each node, at least ``clusters``.
    clusters : int

    Returns
    -------
    int64, (nodes, clusters)
        Numbers of points within each node.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    chosen = np.empty((len(paths), clusters), np.int64)
    with np.errstate(over="ignore"):
        start = _mixed(np.uint64(seed & 0xFFFFFFFFFFFFFFFF) + (levels.astype(np.uint64) + np.uint64(1)) * golden)
        state = _mixed(paths.astype(np.uint64) * golden + start)
        for number in range(clusters):
            last = sizes.astype(np.int64) - clusters + number
            state = state + golden
            drawn = (_mixed(state) % (last + 1).astype(np.uint64)).astype(np.int64)
            taken = (chosen[:, :number] == drawn[:, None]).any(axis=1)
            chosen[:, number] = np.where(taken, last, drawn)
    return chosen
