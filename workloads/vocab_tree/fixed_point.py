"""Centres in 16-bit fixed point: how means are rounded, and which centre is the nearest, in exact integers.

A centre is C = round(256 c), 8 bits of fraction. For a point x of bytes and a centre c,

    |x - c|^2 = |x|^2 - 2 (x . c - |c|^2 / 2),

so the nearest centre has the largest score x . C - H with H = (C . C + 256) >> 9: a 32-bit integer, because x . C is
below 2^31 up to 128 dimensions. Every implementation that computes it in integers gives the same label, ties going to
the lowest index. Against exact means two roundings remain: each component of c is off by at most 2^-9, H by half a
unit.
"""

from __future__ import annotations

import numpy as np

ONE = 256  # what stands for 1
DIMS_LIMIT = 128  # beyond it a score needs more than 32 bits
CLUSTERS_LIMIT = 256  # a label is a byte
POINTS_LIMIT = 2**32 // 255  # beyond it a 32-bit sum of bytes can overflow


def from_points(points: np.ndarray) -> np.ndarray:
    """Return points (bytes) as centres, uint16, the same shape."""
    return points.astype(np.uint16) * np.uint16(ONE)


def from_sums(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the means as centres, uint16, halves rounded up.

    Parameters
    ----------
    sums : (..., clusters, dims), integer
    counts : (..., clusters), integer
        A mean of no points is 0.
    """
    n = np.maximum(counts.astype(np.uint64), 1)[..., None]
    return ((2 * ONE * sums.astype(np.uint64) + n) // (2 * n)).astype(np.uint16)


def halves(centres: np.ndarray) -> np.ndarray:
    """Return H of each centre, int32, shape (..., clusters)."""
    wide = centres.astype(np.uint64)
    squares = np.einsum("...d,...d->...", wide, wide)
    return ((squares + ONE) >> np.uint64(9)).astype(np.int32)


def scores(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return x . C - H, float64 that hold exact integers, shape (points, clusters)."""
    return points.astype(np.float64) @ centres.astype(np.float64).T - halves(centres)


def distances(points: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return 256 |x|^2 - 2 score + 1, int64: it orders points by their squared distance (times 256) to a centre.

    The 1 keeps it from being negative: rounding H may take 1 away.
    """
    norms = np.square(points.astype(np.int64)).sum(axis=-1)
    return ONE * norms - 2 * scores.astype(np.int64) + 1
