"""Grouping of windows into faces, with the rule and the results of OpenCV's ``groupRectangles``."""

from __future__ import annotations

import numpy as np

EPSILON = 0.2  # relative distance at which two boxes belong together
BLOCK = 1024


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
    share = np.float32(1) / counts.astype(np.float32)
    means = np.rint(sums.astype(np.float32) * share[:, None]).astype(np.int64)
    strong = counts > neighbours
    means, counts = means[strong], counts[strong]
    kept = [
        mean
        for i, (mean, count) in enumerate(zip(means, counts, strict=True))
        if not _inside(mean, count, np.delete(means, i, axis=0), np.delete(counts, i))
    ]
    return _ordered(np.array(kept, np.int64).reshape(-1, 4))


def clip(boxes: np.ndarray, width: int, height: int) -> np.ndarray:
    """Cut boxes off at the edges of an image; shape (n, 4) of x, y, width, height."""
    low = np.maximum(boxes[:, :2], 0)
    high = np.minimum(boxes[:, :2] + boxes[:, 2:], (width, height))
    return np.concatenate([low, high - low], axis=1)[(high > low).all(axis=1)]


def _ordered(boxes: np.ndarray) -> np.ndarray:
    return boxes[np.lexsort(boxes.T[::-1])]


def _clusters(boxes: np.ndarray) -> np.ndarray:
    """Number the connected components of the relation "close together", shape (n,)."""
    left, top, right, bottom = boxes[:, 0], boxes[:, 1], boxes[:, 0] + boxes[:, 2], boxes[:, 1] + boxes[:, 3]
    parent = np.arange(len(boxes))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for first in range(0, len(boxes), BLOCK):
        part = slice(first, first + BLOCK)
        sides = sum(np.minimum(boxes[part, None, axis], boxes[None, :, axis]) for axis in (2, 3))
        limit = EPSILON * sides * 0.5
        close = np.ones(limit.shape, bool)
        for edge in (left, top, right, bottom):
            close &= np.abs(edge[part, None] - edge[None, :]) <= limit
        for i, j in zip(*np.nonzero(close), strict=True):
            if j < i + first:
                parent[root(i + first)] = root(j)
    return np.unique([root(i) for i in range(len(boxes))], return_inverse=True)[1]


def _inside(box: np.ndarray, count: int, others: np.ndarray, counts: np.ndarray) -> bool:
    """Whether a box lies in another, slightly widened one that more windows support."""
    margin = np.rint(others[:, 2:] * EPSILON)
    low = (box[:2] >= others[:, :2] - margin).all(axis=1)
    high = (box[:2] + box[2:] <= others[:, :2] + others[:, 2:] + margin).all(axis=1)
    return bool((low & high & ((counts > max(3, count)) | (count < 3))).any())
