"""Autocorrelation of samples taken in a row, and how many independent samples they amount to.

Drifts of clock and temperature make neighbouring samples alike: an interval for independent samples is then too narrow
by the square root of the statistical inefficiency 1 + 2 (rho_1 + rho_2 + ...). It is estimated from ranks, so that
neither an outlier nor the unit matters (R. Bartels, "The rank version of von Neumann's ratio test for randomness",
JASA 77, 1982), as the larger of two estimates:

- that of a first-order autoregression, (1 + rho) / (1 - rho), with the lag-1 autocorrelation corrected for its bias in
  short series (F. H. C. Marriott and J. A. Pope, "Bias in the estimation of autocorrelations", Biometrika 41, 1954);
- the initial positive sequence (C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7, 1992), which
  sees slow drifts below faster noise where the series is long enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Fewer samples in a row tell nothing of their autocorrelation.
LEAST_SAMPLES = 6


@dataclass(frozen=True)
class Autocorrelation:
    """What is estimated of a series.

    Attributes
    ----------
    first : float
        Lag-1 autocorrelation of the ranks, corrected for bias, from -1 to 1.
    inefficiency : float
        By how much the variance of a mean or a median exceeds that of as many independent samples; at least 1.
    """

    first: float
    inefficiency: float


def estimate(samples: Sequence[float] | np.ndarray, workers: Sequence[int] = ()) -> Autocorrelation | None:
    """Return the autocorrelation of samples in the order in which they were taken.

    Parameters
    ----------
    samples : sequence of float
    workers : sequence of int
        Number of the worker that took each sample. Samples of different workers are not neighbours, and what differs
        between workers is no autocorrelation: each worker's samples are ranked apart.

    Returns
    -------
    Autocorrelation or None
        ``None`` below `LEAST_SAMPLES` samples per worker.
    """
    values, owner = np.asarray(samples, dtype=float), np.asarray(workers)
    parts = [values[owner == number] for number in np.unique(owner)] if owner.size else [values]
    length = values.size / len(parts)
    if length < LEAST_SAMPLES:
        return None
    covariances = np.zeros(max(part.size for part in parts))
    for part in parts:
        ranks = _centred_ranks(part)
        covariances[: part.size] += np.correlate(ranks, ranks, "full")[part.size - 1 :]
    if not covariances[0]:
        return Autocorrelation(0.0, 1.0)
    correlations = covariances / covariances[0]
    first = min(max((length * float(correlations[1]) + 1) / (length - 4), -1.0), 1.0)
    by_first = (1 + first) / (1 - first) if first < 1 else length
    return Autocorrelation(first, min(max(by_first, _positive_sequence(correlations), 1.0), length))


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, equal values sharing their mean rank, less the mean of all."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks - ranks.mean()


def _positive_sequence(correlations: np.ndarray) -> float:
    """Inefficiency by Geyer's initial positive sequence: sums of neighbouring lags count until one is not positive."""
    even = correlations.size // 2 * 2
    pairs = correlations[:even:2] + correlations[1:even:2]
    ends = np.flatnonzero(pairs <= 0)
    return 2 * float(pairs[: ends[0] if ends.size else pairs.size].sum()) - 1
