"""Autocorrelation of samples: estimates against processes that have it, and intervals that hold what they should."""

from __future__ import annotations

import numpy as np
import pytest

from perfport.measure.autocorrelation import estimate
from perfport.measure.intervals import median_ranks, summarise


def series(rng: np.random.Generator, number: int, n: int, rho: float) -> np.ndarray:
    """Draw stationary first-order autoregressions around 0 of standard deviation 1; one a row."""
    steps = rng.standard_normal((number, n))
    values = steps.copy()
    for i in range(1, n):
        values[:, i] = rho * values[:, i - 1] + np.sqrt(1 - rho**2) * steps[:, i]
    return values


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("n", [15, 60, 200])
def test_the_estimate_is_close_to_what_the_process_has(n: int, rho: float) -> None:
    found = [estimate(row) for row in series(np.random.default_rng(n), 400, n, rho)]
    assert np.mean([each.first for each in found if each]) == pytest.approx(rho, abs=0.07)
    if n == 200:
        inefficiency = np.median([each.inefficiency for each in found if each])
        assert inefficiency == pytest.approx((1 + rho) / (1 - rho), rel=0.15)


#: Least coverage of an interval of nominal 95 %, by samples and autocorrelation: the shorter the series, the less of a
#: strong autocorrelation shows in it. docs/measurement.md has what a longer simulation gives.
LEAST = {
    (7, 0.0): 0.95, (7, 0.3): 0.93, (7, 0.5): 0.91, (7, 0.7): 0.84,
    (15, 0.0): 0.95, (15, 0.3): 0.92, (15, 0.5): 0.89, (15, 0.7): 0.85,
    (60, 0.0): 0.95, (60, 0.3): 0.95, (60, 0.5): 0.94, (60, 0.7): 0.93,
    (200, 0.0): 0.94, (200, 0.3): 0.94, (200, 0.5): 0.94, (200, 0.7): 0.93,
}  # fmt: skip


@pytest.mark.parametrize(("n", "rho"), LEAST)
def test_intervals_hold_the_median_of_autocorrelated_samples(n: int, rho: float) -> None:
    times = np.exp(0.01 * series(np.random.default_rng(n), 800, n, rho))
    found = [summarise(row) for row in times]
    covered = np.mean([each.ci_low <= 1.0 <= each.ci_high for each in found])
    low, high = median_ranks(n)
    ordered = np.sort(times, axis=1)
    before = np.mean((ordered[:, low] <= 1.0) & (ordered[:, high] >= 1.0))
    assert covered >= LEAST[n, rho] and covered >= before
    if rho == 0.7:
        assert before < 0.8 and covered > before + 0.1, "samples taken for independent do not"


def test_a_slow_drift_below_faster_noise_is_seen_in_long_series() -> None:
    rng = np.random.default_rng(5)
    drifts = np.exp(0.01 * (series(rng, 300, 200, 0.9) + 1.2 * rng.standard_normal((300, 200))))
    found = [estimate(row) for row in drifts]
    first = np.mean([each.first for each in found if each])
    assert np.mean([each.inefficiency for each in found if each]) > 2 * (1 + first) / (1 - first)
    assert np.mean([s.ci_low <= 1.0 <= s.ci_high for s in map(summarise, drifts)]) > 0.85


@pytest.mark.parametrize("n", [1, 5])
def test_too_few_samples_tell_nothing(n: int) -> None:
    assert estimate([1.0] * n) is None and estimate([1.0] * 3 * n, [0] * n + [1] * n + [2] * n) is None


def test_equal_and_alternating_samples_are_not_autocorrelated() -> None:
    constant, turning = estimate([2.0] * 20), estimate([1.0, 2.0] * 20)
    assert constant and (constant.first, constant.inefficiency) == (0.0, 1.0)
    assert turning and turning.first < -0.9 and turning.inefficiency == 1.0
    climbing = estimate(range(20))
    assert climbing and climbing.inefficiency == pytest.approx(20, rel=0.6) and climbing.inefficiency <= 20


def test_neither_outliers_nor_units_matter() -> None:
    values = np.exp(0.01 * series(np.random.default_rng(6), 1, 60, 0.6)[0])
    outlier = values.copy()
    outlier[np.argmax(values)] = 1e3
    assert estimate(values) == estimate(outlier) == estimate(values**3 * 7)
    inverse, plain = estimate(1 / values), estimate(values)
    assert inverse and plain and inverse.inefficiency == pytest.approx(plain.inefficiency)


def test_what_differs_between_workers_is_no_autocorrelation() -> None:
    rng = np.random.default_rng(7)
    levels = np.repeat([1.0, 1.1, 1.2], 20)
    workers = np.repeat([0, 1, 2], 20).tolist()
    samples = levels * np.exp(0.001 * rng.standard_normal(60))
    blind, known = estimate(samples), estimate(samples, workers)
    assert blind and known and blind.first > 0.8 and abs(known.first) < 0.25
    joined = np.exp(0.01 * series(rng, 3, 20, 0.8)).ravel()
    drifting = estimate(joined, workers)
    assert drifting and drifting.first > 0.5
