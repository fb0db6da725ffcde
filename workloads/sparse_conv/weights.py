"""Weights: random ones, pruning, .npz files, compressed sparse rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfport.workload import UsageError, read_npz

from .operators import Operator

#: ``random`` and ``magnitude`` may put a zero anywhere; the others remove whole channels, filters, or both.
PRUNINGS = ("random", "magnitude", "channels", "filters", "both")


def random_weights(operator: Operator, seed: int) -> np.ndarray:
    """Independent normal weights without a zero, scaled so that outputs have about unit variance, float32."""
    values = np.random.default_rng(seed).standard_normal(operator.shape, np.float32)
    values[values == 0] = 1
    return values / np.float32(np.sqrt(operator.taps))


def prune(weights: np.ndarray, sparsity: float, pruning: str, seed: int) -> np.ndarray:
    """Return weights with zeros in place of a fraction ``sparsity`` of them.

    Parameters
    ----------
    weights : array, shape (K, C, R, S)
    sparsity : float
        In [0, 1]. Of ``channels`` and ``filters`` this fraction is removed, rounded; of ``both``
        1 - sqrt(1 - sparsity) each, those of least norm first.
    pruning : str
        One of `PRUNINGS`.
    seed : int
        Of the random mask.

    Raises
    ------
    UsageError
        For an unknown pruning.
    """
    pruned = weights.copy()
    if pruning in ("random", "magnitude"):
        flat = pruned.reshape(-1)
        count = round(sparsity * flat.size)
        if pruning == "random":
            order = np.random.default_rng(seed).permutation(flat.size)
        else:
            order = np.argsort(np.abs(flat), kind="stable")
        flat[order[:count]] = 0
    elif pruning in PRUNINGS:
        fraction = sparsity if pruning != "both" else 1 - np.sqrt(1 - sparsity)
        if pruning != "filters":
            pruned[:, ~kept(weights, 1, fraction)] = 0
        if pruning != "channels":
            pruned[~kept(weights, 0, fraction)] = 0
    else:
        raise UsageError(f"pruning: {pruning!r} is not one of {', '.join(PRUNINGS)}")
    return pruned


def kept(weights: np.ndarray, axis: int, fraction: float) -> np.ndarray:
    """Which filters (axis 0) or channels (axis 1) stay when a fraction of least L2 norm goes; bool."""
    others = tuple(other for other in range(4) if other != axis)
    norms = np.sqrt(np.square(weights, dtype=np.float64).sum(axis=others))
    stays = np.ones(weights.shape[axis], bool)
    stays[np.argsort(norms, kind="stable")[: round(fraction * stays.size)]] = False
    return stays


def check(weights: np.ndarray, operator: Operator, where: str) -> None:
    """Refuse weights that are no finite four-dimensional tensor of the operator's shape.

    Raises
    ------
    UsageError
        Naming ``where`` they came from.
    """
    if weights.ndim != 4:
        raise UsageError(f"{where}: weights must have 4 dimensions (K, C, R, S), got {weights.ndim}: {weights.shape}")
    if weights.shape != operator.shape:
        raise UsageError(f"{where}: weights must have the shape {operator.shape} (K, C, R, S), got {weights.shape}")
    if bad := int(weights.size - np.isfinite(weights).sum()):
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(weights))[0])
        raise UsageError(f"{where}: {bad} weights are NaN or infinite, the first at {at}")


def load(path: Path) -> np.ndarray:
    """Return the array ``weights`` of an .npz file as float32; `check` judges it.

    Raises
    ------
    UsageError
        If the file is not there, is no .npz file, or has no such array of numbers.
    """
    given = read_npz(path, ["weights"], where=f"weights: {path}")["weights"]
    with np.errstate(over="ignore"):  # beyond FP32: infinite, which `check` refuses
        return given.astype(np.float32)


@dataclass(frozen=True)
class Csr:
    """Compressed sparse rows, one row for each filter.

    Attributes
    ----------
    starts : array of int32, shape (K + 1,)
    taps : array of int32, shape (nnz,)
        Position (c R + r) S + s of each value in its filter.
    values : array of float32, shape (nnz,)
    """

    starts: np.ndarray
    taps: np.ndarray
    values: np.ndarray


def compressed(weights: np.ndarray) -> Csr:
    """Return the non-zero weights in compressed sparse rows."""
    rows = weights.reshape(weights.shape[0], -1)
    nonzero = rows != 0
    starts = np.concatenate([[0], np.cumsum(nonzero.sum(axis=1))]).astype(np.int32)
    return Csr(starts, np.nonzero(nonzero)[1].astype(np.int32), rows[nonzero].astype(np.float32))


def window_use(weights: np.ndarray, height: int, stride: int) -> np.ndarray:
    """Which inputs of a window some non-zero weight multiplies; bool, shape (C, window rows, S).

    The window is that of ``height`` outputs below each other.
    """
    needed = (weights != 0).any(axis=0)
    channels, rows, columns = needed.shape
    window = np.zeros((channels, (height - 1) * stride + rows, columns), bool)
    for b in range(height):
        window[:, b * stride : b * stride + rows] |= needed
    return window
