"""Medians, their intervals, ratios and verdicts: the properties that every number of a report rests on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfport.measure.intervals import CONFIDENCE, Verdict, median_ranks, speedup, summarise, verdict
from perfport.model.record import Interval

seconds = st.floats(1e-9, 1e3, allow_nan=False)
samples = st.lists(seconds, min_size=1, max_size=60)
DISTRIBUTIONS = {
    "normal": (lambda rng, shape: rng.normal(10, 1, shape), 10.0),
    "lognormal": (lambda rng, shape: rng.lognormal(0, 1.5, shape), 1.0),
    "exponential": (lambda rng, shape: rng.exponential(1, shape), math.log(2)),
    "cauchy": (lambda rng, shape: rng.standard_cauchy(shape), 0.0),
    "bimodal": (lambda rng, shape: rng.normal(0, 1, shape) + np.where(rng.random(shape) < 0.5, -3, 3), 0.0),
}


def exact_coverage(n: int) -> float:
    """Probability that the interval of the ranks holds the median of a continuous distribution."""
    low, high = median_ranks(n)
    return sum(math.comb(n, k) for k in range(low + 1, high + 1)) / 2**n


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [7, 15, 50])
def test_interval_covers_the_median_of_any_distribution(name: str, n: int) -> None:
    draw, median = DISTRIBUTIONS[name]
    values = np.sort(draw(np.random.default_rng(n), (4000, n)), axis=1)
    low, high = median_ranks(n)
    covered = np.mean((values[:, low] <= median) & (median <= values[:, high]))
    assert covered >= CONFIDENCE - 0.015
    assert covered == pytest.approx(exact_coverage(n), abs=0.02)


@given(st.integers(6, 400))
def test_ranks_reach_the_confidence_and_no_narrower_pair_does(n: int) -> None:
    low, high = median_ranks(n)
    assert low + high == n - 1 and 0 <= low <= high
    assert exact_coverage(n) >= CONFIDENCE
    narrower = sum(math.comb(n, k) for k in range(low + 2, high)) / 2**n
    assert narrower < CONFIDENCE


@pytest.mark.parametrize("n", [6, 7, 8, 15, 16, 50, 199, 400])
def test_interval_against_scipy(n: int) -> None:
    values = np.random.default_rng(n).lognormal(size=n)
    expected = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
    made = summarise(values.tolist())
    assert (made.ci_low, made.ci_high) == (expected.low, expected.high)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_samples_give_the_extremes(n: int) -> None:
    assert median_ranks(n) == (0, n - 1)


@given(samples)
def test_summary_is_ordered_and_holds_the_median(values: list[float]) -> None:
    s = summarise(values)
    assert s.minimum <= s.ci_low <= s.median <= s.ci_high <= s.maximum
    assert s.minimum <= s.q1 <= s.median <= s.q3 <= s.maximum
    assert (s.n, s.minimum, s.maximum) == (len(values), min(values), max(values))
    assert s.median == pytest.approx(np.median(values)) and 0 <= s.outliers < max(1, len(values))


@given(samples, st.integers(-8, 8), st.randoms())
def test_summary_scales_and_ignores_the_order(values: list[float], power: int, random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summarise(shuffled) == summarise(values)
    a, b = summarise(values), summarise([v * 2.0**power for v in values])
    assert (b.median, b.ci_low, b.ci_high) == tuple(x * 2.0**power for x in (a.median, a.ci_low, a.ci_high))


def test_outliers_are_counted_and_kept() -> None:
    s = summarise([1.0] * 10 + [1.1] * 10 + [50.0])
    assert (s.outliers, s.maximum, s.n) == (1, 50.0, 21)


def test_outliers_lie_beyond_one_and_a_half_interquartile_ranges() -> None:
    values = [float(value) for value in range(20, 41)]  # quartiles 25 and 35: fences at 10 and 50
    assert [summarise([*values[:-1], 49.0]).outliers, summarise([11.0, *values[1:]]).outliers] == [0, 0]
    assert [summarise([*values[:-1], 51.0]).outliers, summarise([9.0, *values[1:]]).outliers] == [1, 1]


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


@given(st.lists(st.tuples(seconds, seconds), min_size=1, max_size=40))
def test_speedup_and_its_inverse(pairs: list[tuple[float, float]]) -> None:
    a = {i: pair[0] for i, pair in enumerate(pairs)}
    b = {i: pair[1] for i, pair in enumerate(pairs)}
    forth, back = speedup(a, b), speedup(b, a)
    assert forth.low <= forth.value * (1 + 1e-12) and forth.value <= forth.high * (1 + 1e-12)
    assert forth.low == pytest.approx(1 / back.high) and forth.high == pytest.approx(1 / back.low)


@given(st.lists(seconds, min_size=6, max_size=40), st.floats(0.1, 10))
def test_pairing_cancels_a_drift_that_both_share(values: list[float], factor: float) -> None:
    base = {i: factor * v for i, v in enumerate(values)}
    ratio = speedup(base, dict(enumerate(values)))
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((factor,) * 3)


def test_rounds_that_only_one_side_has_are_not_paired() -> None:
    base, other = dict.fromkeys(range(10), 2.0), dict.fromkeys(range(4, 20), 1.0)
    base[3] = 1e9
    assert speedup(base, other).high == 2.0
    assert speedup(dict.fromkeys(range(5), 2.0), dict.fromkeys(range(100, 105), 1.0)).value == 2.0


@pytest.mark.parametrize(("rounds", "paired"), [(5, False), (6, True)])
def test_six_common_rounds_make_pairs(rounds: int, paired: bool) -> None:
    """Five pairs have no interval at 95 %: medians and their intervals are divided, and a drift counts as spread."""
    drift = [2.0**number for number in range(rounds)]
    ratio = speedup({i: 3 * value for i, value in enumerate(drift)}, dict(enumerate(drift)))
    assert ratio.value == pytest.approx(3) and (ratio.high == pytest.approx(3)) is paired


intervals = st.tuples(*[st.floats(0.01, 100)] * 3).map(sorted).map(lambda v: Interval(low=v[0], value=v[1], high=v[2]))


@given(intervals, st.floats(0.001, 0.2))
def test_verdicts(ratio: Interval, within: float) -> None:
    found = verdict(ratio, within)
    inside = 1 - within <= ratio.low and ratio.high <= 1 + within
    assert (found is Verdict.SAME) == inside
    if found is Verdict.FASTER:
        assert ratio.low > 1
    if found is Verdict.SLOWER:
        assert ratio.high < 1
    if found is Verdict.AMBIGUOUS:
        assert ratio.low <= 1 <= ratio.high


@given(intervals)
def test_verdict_is_antisymmetric(ratio: Interval) -> None:
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    found = verdict(ratio, 1e-9)
    inverse = verdict(Interval(low=1 / ratio.high, value=1 / ratio.value, high=1 / ratio.low), 1e-9)
    if not {found, inverse} & {Verdict.SAME}:
        assert inverse is opposite.get(found, found) or 1.0 in (ratio.low, ratio.high)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.99, 1.01, "same"),
        (1.01, 1.05, "faster"),
        (0.9, 0.97, "slower"),
        (0.97, 1.2, "ambiguous"),
        (1.0, 1.5, "ambiguous"),
    ],
)
def test_verdict_examples(low: float, high: float, expected: str) -> None:
    assert verdict(Interval(low=low, value=(low + high) / 2, high=high)) == expected


@pytest.mark.parametrize(("low", "high"), [(0.975, 1.0), (1.0, 1.025)])
def test_two_and_a_half_percent_are_not_the_same(low: float, high: float) -> None:
    assert verdict(Interval(low=low, value=1.0, high=high)) is not Verdict.SAME
