"""Grouping of windows into faces, with the rule and the results of OpenCV's ``groupRectangles``."""

from __future__ import annotations

import numpy as np

EPSILON = 0.2  # relative distance at which two boxes belong together


def group(boxes: np.ndarray, neighbours: int) -> np.ndarray:
    """Merge boxes that lie close together.

    Parameters
    ----------
    boxes : int64, shape (n, 4)
        x, y, width, height.
    neighbours : int
        A cluster needs more boxes than this; 0 leaves the boxes as they are.

    Returns
    -------
    int64, shape (faces, 4)
        Rows in ascending order.
    """
    if neighbours == 0 or not len(boxes):
        return _ordered(boxes)
    labels = _clusters(boxes)
    counts = np.bincount(labels)
    sums = np.stack([np.bincount(labels, weights=column) for column in boxes.T], axis=1)
    strong = counts > neighbours
    return merge(counts[strong], sums[strong])


def merge(counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the mean boxes of clusters, without those that lie in a stronger one.

    Parameters
    ----------
    counts : int64, shape (n,)
        Boxes of each cluster.
    sums : shape (n, 4)
        Sums of their x, y, width, height.

    Returns
    -------
    int64, shape (faces, 4)
        Rows in ascending order.
    """
    share = np.float32(1) / counts.astype(np.float32)
    means = np.rint(sums.astype(np.float32) * share[:, None]).astype(np.int64)
    margin = np.rint(means[:, 2:] * EPSILON)
    low, high = means[:, :2], means[:, :2] + means[:, 2:]
    inside = (low[:, None] >= low - margin).all(axis=2) & (high[:, None] <= high + margin).all(axis=2)
    inside &= (counts > np.maximum(3, counts)[:, None]) | (counts < 3)[:, None]
    np.fill_diagonal(inside, False)
    return _ordered(means[~inside.any(axis=1)])


def clip(boxes: np.ndarray, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut boxes (n, 4) of x, y, width, height off at the edges of an image; say which have something inside."""
    low = np.maximum(boxes[:, :2], 0)
    high = np.minimum(boxes[:, :2] + boxes[:, 2:], (width, height))
    return np.concatenate([low, high - low], axis=1), (high > low).all(axis=1)


def _ordered(boxes: np.ndarray) -> np.ndarray:
    return boxes[np.lexsort(boxes.T[::-1])]


def close_pairs(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of boxes that are close together, some of them in both orders, each box with itself too.

    Two boxes are close if none of their edges is farther apart than `EPSILON` times the mean of their smaller width and
    their smaller height. Boxes of one pyramid grow in both directions at once, so that for a size and all larger ones
    this limit is that of the smaller box: one search in the space of the four edges.
    """
    from scipy.spatial import cKDTree  # slow to import, and every command imports every workload

    edges = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1).astype(np.float64)
    order = np.lexsort(boxes[:, 2:].T)
    sizes, firsts = np.unique(boxes[order, 2:].astype(np.int64) @ (1 << 32, 1), return_index=True)
    starts, ends = [order], [order]
    for size, first, after in zip(sizes, firsts, [*firsts[1:], len(boxes)], strict=True):
        limit = EPSILON * float((size >> 32) + (size & 0xFFFFFFFF)) * 0.5
        near = cKDTree(edges[order[first:after]]).sparse_distance_matrix(
            cKDTree(edges[order[first:]]), limit, p=np.inf, output_type="ndarray"
        )
        starts.append(order[first + near["i"]])
        ends.append(order[first + near["j"]])
    return np.concatenate(starts), np.concatenate(ends)


def _clusters(boxes: np.ndarray) -> np.ndarray:
    """Number the connected components of the relation "close together", shape (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    start, end = close_pairs(boxes)
    links = coo_array((np.ones(len(start), bool), (start, end)), shape=(len(boxes), len(boxes)))
    return connected_components(links, directed=False)[1]
