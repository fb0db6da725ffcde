"""k-means and vocabulary trees in NumPy: what every kernel and every build is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfport.workload import UsageError, in_blocks

from . import fixed_point, seeding
from .tree import Level, Tree

BLOCK = 1 << 16  # points whose scores are held at a time


@dataclass(frozen=True)
class Pass:
    """One pass over a node's points: classification, then sums by class.

    Attributes
    ----------
    labels : uint8, (points,)
    sums : uint64, (clusters, dims)
    counts : int64, (clusters,)
    """

    labels: np.ndarray
    sums: np.ndarray
    counts: np.ndarray


def check_points(points: np.ndarray, clusters: int, where: str = "points") -> None:
    """Raise `UsageError` unless the array can be clustered.

    Parameters
    ----------
    points : uint8, (count, dims); dims a multiple of 16 up to `fixed_point.DIMS_LIMIT`, count at least ``clusters``
    clusters : int
        2 to `fixed_point.CLUSTERS_LIMIT`.
    where : str
        What the message names.
    """
    if not 2 <= clusters <= fixed_point.CLUSTERS_LIMIT:
        raise UsageError(f"clusters: expected 2 to {fixed_point.CLUSTERS_LIMIT}, got {clusters}")
    if points.ndim != 2:
        raise UsageError(f"{where}: expected shape (points, dims), got {points.shape}")
    if points.dtype != np.uint8:
        raise UsageError(f"{where}: expected dtype uint8, got {points.dtype}")
    dims = points.shape[1]
    if dims % 16 or not 16 <= dims <= fixed_point.DIMS_LIMIT:
        raise UsageError(
            f"{where}: expected a number of dimensions that is a multiple of 16, 16 to {fixed_point.DIMS_LIMIT}, "
            f"got {dims}"
        )
    if len(points) < clusters:
        raise UsageError(f"{where}: expected at least as many points as clusters ({clusters}), got {len(points)}")


def classify(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the nearest centre of each point, uint8; the lowest index of equal ones."""
    labels = np.empty(len(points), np.uint8)

    def fill(block: slice) -> None:
        labels[block] = fixed_point.scores(points[block], centres).argmax(axis=1)

    in_blocks(fill, len(points), BLOCK)
    return labels


def between(points: np.ndarray, centres: np.ndarray, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the points whose second nearest centre is at most ``slack`` farther, in squared distance, and that centre.

    Both are int64, (found,): the points' numbers, and the lowest index of equally near ones.
    """

    def find(block: slice) -> tuple[np.ndarray, np.ndarray]:
        scores = fixed_point.scores(points[block], centres)
        best = scores.max(axis=1)
        scores[np.arange(len(scores)), scores.argmax(axis=1)] = -np.inf
        near = np.flatnonzero(2 * (best - scores.max(axis=1)) <= slack * fixed_point.ONE)
        return near + block.start, scores[near].argmax(axis=1)

    numbers, others = zip(*in_blocks(find, len(points), BLOCK), strict=True)
    return np.concatenate(numbers), np.concatenate(others)


def totals(points: np.ndarray, labels: np.ndarray, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sums, uint64, (clusters, dims), and counts, int64, of points by label."""

    def sums_of(block: slice) -> np.ndarray:
        one_hot = (labels[None, block] == np.arange(clusters)[:, None]).astype(np.float32)
        return one_hot @ points[block].astype(np.float32)  # at most 255 BLOCK < 2^24: exact

    sums = np.zeros((clusters, points.shape[1]), np.uint64)
    for part in in_blocks(sums_of, len(points), BLOCK):
        sums += part.astype(np.uint64)
    return sums, np.bincount(labels, minlength=clusters)[:clusters]


def one_pass(points: np.ndarray, centres: np.ndarray) -> Pass:
    """Classify all points and add them up by class."""
    labels = classify(points, centres)
    return Pass(labels, *totals(points, labels, len(centres)))


def farthest(points: np.ndarray, labels: np.ndarray, centres: np.ndarray, count: int) -> np.ndarray:
    """Return the ``count`` points farthest from the centres of their classes, the lowest index first of equal ones."""
    products = (points.astype(np.int64) * centres[labels]).sum(axis=1)
    scores = products - fixed_point.halves(centres)[labels]
    return np.argsort(-fixed_point.distances(points, scores), kind="stable")[:count]


@dataclass(frozen=True)
class Clustering:
    """A node after its iterations: centres, labels by those centres, and how many classes were filled again."""

    centres: np.ndarray
    labels: np.ndarray
    iterations: int
    reseeded: int


def lloyd(points: np.ndarray, centres: np.ndarray, iterations: int) -> Clustering:
    """Iterate until the centres do not change, or ``iterations`` times; then classify once more.

    An empty class gets the point that is farthest from its own new centre; several classes, by index, get the farthest
    points, by distance.
    """
    reseeded = done = 0
    for _ in range(iterations):
        result = one_pass(points, centres)
        new = fixed_point.from_sums(result.sums, result.counts)
        empty = np.flatnonzero(result.counts == 0)
        if len(empty):
            new[empty] = fixed_point.from_points(points[farthest(points, result.labels, new, len(empty))])
            reseeded += len(empty)
        done += 1
        unchanged = np.array_equal(new, centres) and not len(empty)
        centres = new
        if unchanged:
            break
    return Clustering(centres, classify(points, centres), done, reseeded)


def build(points: np.ndarray, clusters: int, levels: int, iterations: int, seed: int) -> Tree:
    """Build a whole tree, node by node, level by level."""
    check_points(points, clusters)
    made = []
    nodes = [(0, np.arange(len(points)))]
    words = np.zeros(len(points), np.uint64)
    depths = np.zeros(len(points), np.uint8)
    for level in range(levels):
        paths, centres, counts, children = [], [], [], []
        for path, members in nodes:
            if len(members) < clusters:
                continue
            where = np.array([level]), np.array([path], np.uint64), np.array([len(members)])
            drawn = seeding.draw(seed, *where, clusters)[0]
            clustering = lloyd(points[members], fixed_point.from_points(points[members[drawn]]), iterations)
            paths.append(path)
            centres.append(clustering.centres)
            counts.append(np.bincount(clustering.labels, minlength=clusters))
            for k in range(clusters):
                inside = members[clustering.labels == k]
                if len(inside):
                    children.append((path * clusters + k, inside))
                    words[inside], depths[inside] = path * clusters + k, level + 1
        if not paths:
            break
        made.append(Level(np.array(paths, np.uint64), np.stack(centres), np.stack(counts).astype(np.uint32)))
        nodes = children
    tree = Tree(clusters, points.shape[1], made)
    tree.points = tree.words_at(words, depths)
    return tree
