"""Medians, their intervals, ratios and verdicts: the properties that every number of a report rests on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfport.measure.intervals import (
    Ratio,
    Series,
    Verdict,
    divided_confidence,
    median_ranks,
    speedup,
    summarise,
    verdict,
    welch_interval,
)
from perfport.model.record import CONFIDENCE, Interval

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
    values = independent(np.random.default_rng(n).lognormal(size=n))
    expected = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
    made = summarise(values.tolist())
    assert made.effective == n and (made.ci_low, made.ci_high) == (expected.low, expected.high)


def independent(values: np.ndarray) -> np.ndarray:
    """Return values in an order that shows no autocorrelation."""
    orders = (np.random.default_rng(seed).permutation(values) for seed in itertools.count())
    return next(order for order in orders if summarise(order).effective == values.size)


def test_samples_that_follow_each_other_widen_the_interval_by_the_root_of_their_inefficiency() -> None:
    alike, apart = np.linspace(1.0, 1.2, 40), independent(np.linspace(1.0, 1.2, 40))
    wide, narrow = summarise(alike.tolist()), summarise(apart.tolist())
    assert wide.median == narrow.median and wide.effective and wide.autocorrelation and narrow.effective == 40
    factor = math.sqrt(40 / wide.effective)
    assert factor > 3 and wide.autocorrelation > 0.9
    assert wide.ci_high - wide.median == pytest.approx(factor * (narrow.ci_high - narrow.median), rel=1e-3)
    below, least = (1 / s.ci_low - 1 / s.median for s in (wide, narrow))
    assert below == pytest.approx(factor * least, rel=1e-3), "below the median inverses are as far apart"


def test_ends_stay_positive_and_a_median_of_zero_has_its_extremes() -> None:
    drifting = [1e-6 * 1.5**i for i in range(30)]
    assert 0 < summarise(drifting).ci_low < 0.1 * np.median(drifting)
    idle = summarise([0.0] * 20 + [1.0] * 5)
    assert (idle.median, idle.ci_low, idle.ci_high) == (0.0, 0.0, 0.0) and idle.effective and idle.effective < 25
    assert summarise([0.0] * 5 + [float(i) for i in range(1, 20)]).ci_low >= 0


@pytest.mark.parametrize(("n", "level"), [(1, 0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.95), (40, 0.95)])
def test_few_samples_claim_the_confidence_that_they_have(n: int, level: float) -> None:
    s = summarise([1.0 + 1e-9 * i for i in range(n)])
    assert s.confidence == level and (n > 5 or s.confidence == pytest.approx(exact_coverage(n)))
    assert s.within(0.02) == (n > 5), "a target for an interval of 95 % is not met by another"
    assert (s.effective is None) == (s.autocorrelation is None) == (n < 6)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_samples_give_the_extremes(n: int) -> None:
    assert median_ranks(n) == (0, n - 1)


@given(samples)
def test_summary_is_ordered_and_holds_the_median(values: list[float]) -> None:
    s = summarise(values)
    assert 0 < s.ci_low <= s.median <= s.ci_high
    assert s.minimum <= s.q1 <= s.median <= s.q3 <= s.maximum
    assert (s.n, s.minimum, s.maximum) == (len(values), min(values), max(values))
    assert s.median == pytest.approx(np.median(values)) and 0 <= s.outliers < max(1, len(values))


@given(samples, st.integers(-8, 8), st.randoms())
def test_summary_scales_and_only_the_interval_heeds_the_order(values: list[float], power: int, random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ordered = {"ci_low", "ci_high", "autocorrelation", "effective"}
    assert summarise(shuffled).model_dump(exclude=ordered) == summarise(values).model_dump(exclude=ordered)
    a, b = summarise(values), summarise([v * 2.0**power for v in values])
    scaled = [x * 2.0**power for x in (a.median, a.ci_low, a.ci_high)]
    assert [b.median, b.ci_low, b.ci_high] == pytest.approx(scaled) and b.effective == a.effective


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
    a = Series({i: pair[0] for i, pair in enumerate(pairs)})
    b = Series({i: pair[1] for i, pair in enumerate(pairs)})
    forth, back = speedup(a, b), speedup(b, a)
    assert forth.low <= forth.value * (1 + 1e-12) and forth.value <= forth.high * (1 + 1e-12)
    assert forth.low == pytest.approx(1 / back.high) and forth.high == pytest.approx(1 / back.low)


@given(st.lists(seconds, min_size=6, max_size=40), st.floats(0.1, 10))
def test_pairing_cancels_a_drift_that_both_share(values: list[float], factor: float) -> None:
    base = Series({i: factor * v for i, v in enumerate(values)})
    ratio = speedup(base, Series(dict(enumerate(values))))
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((factor,) * 3)


def test_rounds_that_only_one_side_has_are_not_paired() -> None:
    base, other = dict.fromkeys(range(10), 2.0), dict.fromkeys(range(4, 20), 1.0)
    base[3] = 1e9
    assert speedup(Series(base), Series(other)).high == 2.0
    assert speedup(Series(dict.fromkeys(range(5), 2.0)), Series(dict.fromkeys(range(100, 105), 1.0))).value == 2.0


@pytest.mark.parametrize("paired", [True, False])
def test_a_ratio_holds_the_spread_between_workers(paired: bool) -> None:
    """Three workers between which the ratio differs by 10 % and within which it does by 0.1 %."""
    rng = np.random.default_rng(3)
    workers = {i: i // 9 for i in range(27)}
    base = {i: float(v) for i, v in enumerate(rng.normal(1.0, 1e-3, 27) * np.repeat([1.0, 1.05, 1.1], 9))}
    other = {i if paired else i + 100: float(v) for i, v in enumerate(rng.normal(0.5, 5e-4, 27))}
    known = speedup(Series(base, workers), Series(other, {i: workers[i % 100] for i in other}))
    logs = np.log([1.0, 1.05, 1.1])
    reach = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    assert known.high / known.low == pytest.approx(math.exp(2 * reach), rel=0.02)


def _run(rng: np.random.Generator, first: int, spread: float, level: float = 1.0) -> Series:
    """Three workers of 9 samples of 1 %, whose levels differ by ``spread``."""
    workers = {first + i: i // 9 for i in range(27)}
    logs = np.repeat(rng.normal(0, spread, 3), 9) + rng.normal(0, 0.01, 27)
    return Series({i: level * math.exp(log) for i, log in zip(workers, logs, strict=True)}, workers)


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05])
def test_two_runs_of_equal_code_are_called_different_as_seldom_as_stated_and_others_are_seen(spread: float) -> None:
    """Dividing intervals of both sides would see 25 % in 5 of 10 where workers differ by 5 %, Welch's in 9."""
    rng = np.random.default_rng(17)
    equal = [speedup(_run(rng, 0, spread), _run(rng, 100, spread)) for _ in range(400)]
    assert sum(verdict(ratio) in (Verdict.FASTER, Verdict.SLOWER) for ratio in equal) <= 0.06 * 400
    slower = [speedup(_run(rng, 0, spread), _run(rng, 100, spread, 1.25)) for _ in range(100)]
    assert sum(verdict(ratio) is Verdict.SLOWER for ratio in slower) >= 88


def test_welch_against_scipy() -> None:
    rng = np.random.default_rng(5)
    one, other = rng.normal(3, 1, 3), rng.normal(1, 4, 5)
    reference = stats.ttest_ind(one, other, equal_var=False).confidence_interval(CONFIDENCE)
    known = welch_interval(one, other)
    assert (known.low, known.high) == pytest.approx((reference.low, reference.high))
    assert welch_interval([2.0, 2.0], [1.0, 1.0]) == Interval(value=1, low=1, high=1)


@pytest.mark.parametrize(("a", "b"), [(2, 2), (3, 3), (3, 4), (4, 4), (3, 20), (6, 9), (7, 60), (20, 20)])
def test_the_confidence_of_divided_medians_is_what_a_simulation_gives(a: int, b: int) -> None:
    rng = np.random.default_rng(a + 100 * b)
    (low_a, high_a), (low_b, high_b) = median_ranks(a), median_ranks(b)
    one, two = np.sort(rng.lognormal(size=(20_000, a)), axis=1), np.sort(rng.lognormal(size=(20_000, b)), axis=1)
    held = (one[:, low_a] <= two[:, high_b]) & (one[:, high_a] >= two[:, low_b])
    assert (
        divided_confidence(a, b)
        == pytest.approx(held.mean(), abs=0.007)
        == pytest.approx(divided_confidence(b, a), abs=0.007)
    )
    ratio = speedup(Series(dict.fromkeys(range(a), 1.0)), Series({-1 - i: 1.0 for i in range(b)}))
    assert ratio.confidence == min(CONFIDENCE, divided_confidence(a, b))


def test_from_six_samples_on_divided_medians_reach_the_confidence() -> None:
    assert all(divided_confidence(a, b) >= CONFIDENCE for a in range(6, 201) for b in range(6, 201, 7))
    assert divided_confidence(3, 3) == pytest.approx(0.9) and divided_confidence(4, 4) > CONFIDENCE
    assert isinstance(speedup(Series({1: 1.0}), Series({2: 1.0})), Ratio)


@pytest.mark.parametrize(("rounds", "paired"), [(5, False), (6, True)])
def test_six_common_rounds_make_pairs(rounds: int, paired: bool) -> None:
    """Five pairs have no interval at 95 %: medians and their intervals are divided, and a drift counts as spread."""
    drift = [2.0**number for number in range(rounds)]
    ratio = speedup(Series({i: 3 * value for i, value in enumerate(drift)}), Series(dict(enumerate(drift))))
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


def test_a_widened_ratio_keeps_its_value_and_its_confidence() -> None:
    wide = Ratio(value=2.0, low=1.0, high=2.2, confidence=0.9).widened(2.0)
    assert (wide.value, wide.low, wide.confidence) == (2.0, pytest.approx(0.5), 0.9)
    assert wide.high == pytest.approx(2 * 1.1**2)
