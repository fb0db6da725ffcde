"""Divisive normalization in float64: operator, gradients, parametrisation, and what its arguments must be.

J. Balle, V. Laparra, E. P. Simoncelli, "Density Modeling of Images Using a Generalized Normalization
Transformation", ICLR 2016. Arrays are (channels, positions).
"""

from __future__ import annotations

import numpy as np

from perfport.workload import UsageError

PEDESTAL = 2.0**-36
BETA_MIN = 1e-6


def _factor(inverse: bool) -> tuple[float, int]:
    """c and k of t = c delta w D^k, which all three gradients are made of."""
    return (0.5, 1) if inverse else (-0.5, 3)


def check_arguments(w: np.ndarray, gamma: np.ndarray, beta: np.ndarray, where: str = "gdn") -> None:
    """Raise `UsageError` unless the arguments make a divisive normalization.

    Parameters
    ----------
    w : (channels, positions)
    gamma : (channels, channels), no element negative
    beta : (channels,), every element positive
    where : str
        What the message names as the place of the arguments.
    """
    if w.ndim != 2 or 0 in w.shape:
        raise UsageError(f"{where}: w must be channels x positions, neither of them 0; got shape {w.shape}")
    channels = w.shape[0]
    for name, value, shape in (("gamma", gamma, (channels, channels)), ("beta", beta, (channels,))):
        if value.shape != shape:
            raise UsageError(f"{where}: {name} must have shape {shape} for {channels} channels; got {value.shape}")
    for name, value in (("w", w), ("gamma", gamma), ("beta", beta)):
        if not np.issubdtype(value.dtype, np.floating):
            raise UsageError(f"{where}: {name} must hold floating-point numbers; got {value.dtype}")
        if not np.isfinite(value).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
            raise UsageError(f"{where}: {name} must be finite; {name}{list(at)} is {value[at]}")
    if (gamma < 0).any():
        at = tuple(int(i) for i in np.argwhere(gamma < 0)[0])
        raise UsageError(f"{where}: gamma must not be negative; gamma{list(at)} is {gamma[at]}")
    if (beta <= 0).any():
        first = int(np.flatnonzero(beta <= 0)[0])
        raise UsageError(f"{where}: beta must be positive; beta[{first}] is {beta[first]}")


def pool(w: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """z[i,p] = beta[i] + sum_j gamma[i,j] w[j,p]^2."""
    return beta[:, None] + gamma @ (w * w)


def forward(w: np.ndarray, gamma: np.ndarray, beta: np.ndarray, inverse: bool = False) -> np.ndarray:
    """u = w / sqrt(z), or w sqrt(z) for the inverse."""
    root = np.sqrt(pool(w, gamma, beta))
    return w * root if inverse else w / root


def common_factor(delta: np.ndarray, w: np.ndarray, d: np.ndarray, inverse: bool = False) -> np.ndarray:
    """t = -1/2 delta w D^3, or 1/2 delta w D for the inverse, where D = z^(-1/2)."""
    scale, power = _factor(inverse)
    return scale * delta * w * d**power


def parameter_gradients(
    delta: np.ndarray, w: np.ndarray, d: np.ndarray, inverse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """dL/dgamma = t (w^2)^T and dL/dbeta = the row sums of t."""
    t = common_factor(delta, w, d, inverse)
    return t @ (w * w).T, t.sum(axis=1)


def input_gradient(
    delta: np.ndarray, w: np.ndarray, d: np.ndarray, gamma: np.ndarray, inverse: bool = False
) -> np.ndarray:
    """dL/dw = delta D + 2 w (gamma^T t), with 1/D in place of D for the inverse."""
    t = common_factor(delta, w, d, inverse)
    return delta * (1 / d if inverse else d) + 2 * w * (gamma.T @ t)


def bound(beta_min: float = BETA_MIN) -> float:
    """B: the least value of beta's raw parameter that has an effect."""
    return float(np.sqrt(beta_min + PEDESTAL))


def effective(raw: np.ndarray, least: float) -> np.ndarray:
    """max(raw, B)^2 - 2^-36: the parametrisation that training libraries use; ``least`` is 0 for gamma."""
    return np.maximum(raw, bound(least)) ** 2 - PEDESTAL


def raw_gradient(gradient: np.ndarray, raw: np.ndarray, least: float) -> np.ndarray:
    """Gradient by the raw parameter: q [raw >= B or q < 0] with q = 2 max(raw, B) dL/d(effective).

    Below the bound a step that would raise the parameter passes, so that it can come back.
    """
    q = 2 * np.maximum(raw, bound(least)) * gradient
    return q * ((raw >= bound(least)) | (q < 0))
