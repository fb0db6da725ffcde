"""Distribution-free statistics of timing samples: medians, confidence intervals, ratios, verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from math import comb

import numpy as np

from ..model.record import Interval, Summary

CONFIDENCE = 0.95
#: Times whose ratio lies within this of 1 are called the same.
SAME_WITHIN = 0.02


class Verdict(StrEnum):
    """Outcome of a comparison. ``ambiguous``: the interval holds 1 but is too wide to say ``same``."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    AMBIGUOUS = "ambiguous"


@cache
def median_ranks(n: int) -> tuple[int, int]:
    """Return the 0-based ranks of the order statistics that enclose the median with 95 % confidence.

    The count of samples below the median is binomial(n, 1/2), whatever the distribution (David and Nagaraja,
    *Order Statistics*, section 7.1). Below 6 samples no pair reaches 95 %; the extremes are returned.
    """
    tail, low = 0.0, 0
    while low < (n - 1) // 2:
        tail += comb(n, low) / 2**n
        if 2 * tail > 1 - CONFIDENCE:
            break
        low += 1
    low = max(low - 1, 0)
    return low, n - 1 - low


def summarise(samples: Sequence[float], workers: Sequence[int] = ()) -> Summary:
    """Summarise samples in seconds. Outliers (Tukey's fences) are counted, never removed.

    Parameters
    ----------
    samples : sequence of float
    workers : sequence of int
        Number of the worker that took each sample. Samples of one process agree better than processes do, so with
        several workers the interval also holds Student's interval of the mean of their medians (of the logarithms).

    Raises
    ------
    ValueError
        If there is no sample.
    """
    values = np.sort(np.asarray(samples, dtype=float))
    if not values.size:
        raise ValueError("no samples to summarise")
    low, high = median_ranks(values.size)
    ci_low, ci_high = float(values[low]), float(values[high])
    if len(set(workers)) > 1:
        between = student_interval(np.log(block_medians(samples, workers)))
        ci_low, ci_high = min(ci_low, math.exp(between.low)), max(ci_high, math.exp(between.high))
    q1, median, q3 = np.quantile(values, [0.25, 0.5, 0.75])
    fence = 1.5 * (q3 - q1)
    return Summary(
        median=float(median),
        ci_low=ci_low,
        ci_high=ci_high,
        q1=float(q1),
        q3=float(q3),
        minimum=float(values[0]),
        maximum=float(values[-1]),
        n=int(values.size),
        outliers=int(((values < q1 - fence) | (values > q3 + fence)).sum()),
    )


def block_medians(samples: Sequence[float], blocks: Sequence[int]) -> list[float]:
    """Return the median of the samples of each block, in the blocks' order; without blocks that of all samples."""
    values, owner = np.asarray(samples, dtype=float), np.asarray(blocks)
    if not owner.size:
        return [float(np.median(values))]
    return [float(np.median(values[owner == block])) for block in np.unique(owner)]


def student_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Return the mean of values with Student's 95 % interval; at least two values are needed."""
    from scipy.special import stdtrit  # a fifth of a second, which each child would pay at its start

    found = np.asarray(values, dtype=float)
    mean, error = float(found.mean()), float(found.std(ddof=1)) / math.sqrt(found.size)
    reach = float(stdtrit(found.size - 1, (1 + CONFIDENCE) / 2)) * error
    return Interval(value=mean, low=mean - reach, high=mean + reach)


def speedup(base: dict[int, float], other: dict[int, float]) -> Interval:
    """Return how many times faster ``other`` is than ``base``, with a 95 % interval.

    Parameters
    ----------
    base, other : dict
        Seconds by interleaving round. Rounds that both took part in are compared pair by pair, so that a drift of
        the machine cancels; with fewer than 6 common rounds the medians and their intervals are divided instead.
    """
    common = sorted(base.keys() & other.keys())
    if len(common) >= 6:
        ratios = summarise([base[i] / other[i] for i in common])
        return Interval(value=ratios.median, low=ratios.ci_low, high=ratios.ci_high)
    a, b = summarise(list(base.values())), summarise(list(other.values()))
    return Interval(value=a.median / b.median, low=a.ci_low / b.ci_high, high=a.ci_high / b.ci_low)


def verdict(ratio: Interval, same_within: float = SAME_WITHIN) -> Verdict:
    """Judge a speed-up: ``same`` when its whole interval lies within ``same_within`` of 1."""
    if 1 - same_within <= ratio.low and ratio.high <= 1 + same_within:
        return Verdict.SAME
    if ratio.low > 1:
        return Verdict.FASTER
    if ratio.high < 1:
        return Verdict.SLOWER
    return Verdict.AMBIGUOUS
