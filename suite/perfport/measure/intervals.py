"""Distribution-free statistics of timing samples: medians, confidence intervals, ratios, verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from math import comb

import numpy as np

from ..model.record import CONFIDENCE, Interval, Summary
from .autocorrelation import Autocorrelation, estimate

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
    *Order Statistics*, section 7.1). Below 6 samples no pair reaches 95 %; the extremes are returned, and
    `Summary.confidence` says what they reach.
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
    """Summarise samples in seconds (or rates), in the order in which they were taken.

    Outliers (Tukey's fences) are counted, never removed. The interval of the median is that of independent samples,
    widened by the square root of their statistical inefficiency where they are autocorrelated.

    Parameters
    ----------
    samples : sequence of float
        Not negative.
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
    dependence = estimate(samples, workers)
    ci_low, ci_high = _median_interval(values, dependence)
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
        autocorrelation=dependence.first if dependence else None,
        effective=values.size / dependence.inefficiency if dependence else None,
    )


def _median_interval(values: np.ndarray, dependence: Autocorrelation | None) -> tuple[float, float]:
    """Return the ends of the interval of the median of sorted values, whatever workers differ by.

    Where values depend on each other, both are drawn away from the median by a factor. Above it distances count, below
    it those of the inverses: ends are positive whatever the factor, and those of a ratio are the inverses of those of
    the inverse ratio.
    """
    widening = math.sqrt(dependence.inefficiency) if dependence else 1.0
    low, high = (float(values[rank]) for rank in median_ranks(values.size))
    middle = math.sqrt(values[(values.size - 1) // 2] * values[values.size // 2])
    if widening == 1.0 or not middle:
        return low, high
    return middle * low / (low + widening * (middle - low)), middle + widening * (high - middle)


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


def welch_interval(one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> Interval:
    """Return the difference of the means of two groups of at least two values, with its 95 % interval.

    B. L. Welch, "The generalization of Student's problem when several different population variances are involved",
    Biometrika 34, 1947.
    """
    from scipy.special import stdtrit  # as above

    groups = [np.asarray(group, dtype=float) for group in (one, other)]
    errors = np.array([group.var(ddof=1) / group.size for group in groups])
    difference = float(groups[0].mean() - groups[1].mean())
    if not errors.any():
        return Interval(value=difference, low=difference, high=difference)
    freedom = errors.sum() ** 2 / sum(error**2 / (group.size - 1) for error, group in zip(errors, groups, strict=True))
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(errors.sum())
    return Interval(value=difference, low=difference - reach, high=difference + reach)


@dataclass(frozen=True)
class Series:
    """Samples of one case in the order in which they were taken.

    Attributes
    ----------
    seconds : dict of float
        By interleaving round.
    workers : dict of int
        Number of the worker that took each, by round; empty where one took all.
    """

    seconds: dict[int, float]
    workers: dict[int, int] = field(default_factory=dict)

    def summary(self) -> Summary:
        """Return the summary of the samples."""
        return summarise(*self._by_worker)

    def within(self) -> tuple[float, float]:
        """Return the interval of the median that leaves out what workers differ by."""
        samples, workers = self._by_worker
        return _median_interval(np.sort(samples), estimate(samples, workers))

    def worker_logs(self) -> np.ndarray:
        """Return the logarithm of each worker's median."""
        return np.log(block_medians(*self._by_worker))

    @property
    def _by_worker(self) -> tuple[list[float], list[int]]:
        return list(self.seconds.values()), [self.workers[i] for i in self.seconds if i in self.workers]


class Ratio(Interval):
    """A ratio of times with its interval, and the confidence that the interval has: 95 %, or less of few samples."""

    confidence: float = CONFIDENCE

    def widened(self, factor: float) -> Ratio:
        """Return the ratio with both ends so many times as far off, as logarithms."""
        low, high = (self.value * (end / self.value) ** factor for end in (self.low, self.high))
        return Ratio(value=self.value, low=low, high=high, confidence=self.confidence)


def speedup(base: Series, other: Series) -> Ratio:
    """Return how many times faster ``other`` is than ``base``, with its interval.

    Rounds that both took part in are compared pair by pair, so that a drift of the machine cancels; by several workers
    the interval holds the spread of the ratio between them. With fewer than 6 common rounds the medians and their
    intervals are divided instead; where both sides have several workers, these are the intervals of the samples, and
    the spread between workers enters as Welch's interval of the difference of the logarithms of their medians.
    """
    common = sorted(base.seconds.keys() & other.seconds.keys())
    if len(common) >= 6:
        ratios = Series({i: base.seconds[i] / other.seconds[i] for i in common}, base.workers).summary()
        return Ratio(value=ratios.median, low=ratios.ci_low, high=ratios.ci_high)
    a, b = base.summary(), other.summary()
    low, high = a.ci_low / b.ci_high, a.ci_high / b.ci_low
    if len(set(base.workers.values())) > 1 < len(set(other.workers.values())):
        (a_low, a_high), (b_low, b_high) = base.within(), other.within()
        between = welch_interval(base.worker_logs(), other.worker_logs())
        low, high = min(a_low / b_high, math.exp(between.low)), max(a_high / b_low, math.exp(between.high))
    return Ratio(
        value=a.median / b.median, low=low, high=high,
        confidence=min(CONFIDENCE, divided_confidence(a.n, b.n)),
    )  # fmt: skip


@cache
def divided_confidence(a: int, b: int) -> float:
    """Return the confidence of the ratio of two medians whose intervals are divided, opposite ends by each other.

    It misses the ratio of two distributions that differ by a factor where the interval of one lies wholly below that of
    the other, once the factor is taken out. How likely that is follows from counting orders of ``a`` and ``b``
    independent samples (N. Balakrishnan and H. K. T. Ng, *Precedence-Type Tests and Applications*, chapter 2).
    """
    (low_a, _), (low_b, _) = median_ranks(a), median_ranks(b)
    before = sum(comb(a - low_a - 1 + j, j) * comb(low_a + b - j, low_a) for j in range(low_b + 1))
    return 1 - 2 * before / comb(a + b, a)


def verdict(ratio: Interval, same_within: float = SAME_WITHIN) -> Verdict:
    """Judge a speed-up: ``same`` when its whole interval lies within ``same_within`` of 1."""
    if 1 - same_within <= ratio.low and ratio.high <= 1 + same_within:
        return Verdict.SAME
    if ratio.low > 1:
        return Verdict.FASTER
    if ratio.high < 1:
        return Verdict.SLOWER
    return Verdict.AMBIGUOUS
