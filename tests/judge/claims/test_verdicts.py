"""Verdicts begin where the documentation says, for one interval and for several."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from claim_data import (
    ALIKE,
    BARE,
    CLAIMS,
    ENDS,
    GAIN,
    HALF,
    HIGH,
    LESS,
    LOW,
    RATE,
    SOME,
    between,
    claim,
    judge,
    record,
)
from hypothesis import given
from hypothesis import strategies as st

from perfport.judge.claims import (
    MISSED,
    Claim,
    Verdict,
    combined,
    judged,
)


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict", "reason"),
    [
        (2.0, 0.01, Verdict.HOLDS, "is claimed"),
        (1.2, 0.01, Verdict.SMALLER, "smaller than claimed: 1."),
        (1.0, 0.001, Verdict.ABSENT, "no effect: "),
        (1.0, 0.1, Verdict.ABSENT, "no effect: "),
        (0.5, 0.01, Verdict.OPPOSITE, "the opposite: 0."),
        (1.5, 0.2, Verdict.CANNOT_TELL, "contains the threshold"),
    ],
)
def test_speedup_is_judged_by_its_whole_interval(
    tmp_path: Path, ratio: float, noise: float, verdict: Verdict, reason: str
) -> None:
    found = judge(tmp_path, claim(), record("slow", 0.02 * ratio, noise=noise), record("fast", 0.02, noise=noise))
    assert found.verdict is verdict and reason in found.reason
    (evidence,) = found.evidence
    assert [number.what for number in evidence.numbers] == ["fast", "slow"]
    assert evidence.numbers[1].value / evidence.numbers[0].value == pytest.approx(evidence.interval.value, rel=0.2)


@pytest.mark.parametrize(
    ("one", "low", "high", "verdict"),
    [
        (GAIN, 1.5, 1.6, Verdict.HOLDS), (GAIN, 1.49, 1.5, Verdict.CANNOT_TELL), (GAIN, 0.5, 1.5, Verdict.CANNOT_TELL),
        (GAIN, 1.01, 1.499, Verdict.SMALLER), (GAIN, 1.0, 1.499, Verdict.ABSENT), (GAIN, 0.5, 1.0, Verdict.ABSENT),
        (GAIN, 1.001, 1.02, Verdict.ABSENT), (GAIN, 1.001, 1.021, Verdict.SMALLER),
        (GAIN, 0.98, 0.999, Verdict.ABSENT), (GAIN, 0.979, 0.999, Verdict.OPPOSITE), (GAIN, 0.2, 0.3, Verdict.OPPOSITE),
        (SOME, 1.02, 9, Verdict.HOLDS), (SOME, 1.001, 1.019, Verdict.ABSENT), (SOME, 1.01, 1.03, Verdict.CANNOT_TELL),
        (SOME, 0.9, 0.95, Verdict.OPPOSITE), (SOME, 0.9, 1.01, Verdict.ABSENT),
        (LESS, 0.1, 0.8, Verdict.HOLDS), (LESS, 0.81, 0.97, Verdict.SMALLER), (LESS, 0.99, 1.3, Verdict.ABSENT),
        (LESS, 1.1, 1.2, Verdict.OPPOSITE), (LESS, 0.7, 0.9, Verdict.CANNOT_TELL),
        (ALIKE, 0.9, 1.1, Verdict.HOLDS), (ALIKE, 0.8, 0.89, Verdict.OPPOSITE), (ALIKE, 1.2, 1.3, Verdict.OPPOSITE),
        (ALIKE, 0.8, 0.95, Verdict.CANNOT_TELL), (ALIKE, 0.8, 1.2, Verdict.CANNOT_TELL),
        (HIGH, 0.8, 0.9, Verdict.HOLDS), (HIGH, 0.01, 0.7, Verdict.SMALLER), (HIGH, 0.0, 0.0, Verdict.ABSENT),
        (LOW, 0.1, 0.15, Verdict.HOLDS), (LOW, 0.2, 0.9, Verdict.SMALLER), (LOW, 0.985, 1.0, Verdict.ABSENT),
        (LOW, 1.1, 1.2, Verdict.OPPOSITE),
        (HALF, 0.2, 0.3, Verdict.SMALLER), (HALF, 0.495, 0.505, Verdict.ABSENT), (HALF, 0.7, 0.8, Verdict.OPPOSITE),
        (BARE, 700, 700, Verdict.HOLDS), (BARE, 701, 701, Verdict.OPPOSITE),
        (RATE, 0.02, 0.03, Verdict.HOLDS), (RATE, 0.5, 9, Verdict.SMALLER),
    ],
)  # fmt: skip
def test_each_verdict_begins_where_the_documentation_says(
    one: Claim, low: float, high: float, verdict: Verdict
) -> None:
    assert judged(one, between(low, high)) is verdict is combined(one, [between(low, high)])


@given(CLAIMS, ENDS)
def test_a_claim_holds_where_its_whole_interval_does_and_is_open_where_a_part_does(
    one: Claim, ends: list[float]
) -> None:
    (low, high), (least, most) = ends, one.bounds
    verdict = judged(one, between(low, high))
    assert (verdict is Verdict.HOLDS) == (low >= least and high <= most)
    assert (verdict in MISSED) == (high < least or low > most)
    assert verdict in (*MISSED, Verdict.HOLDS, Verdict.CANNOT_TELL)


@given(st.sampled_from([GAIN, SOME, HIGH]), ENDS, st.floats(1, 3))
def test_more_of_an_effect_is_never_a_worse_verdict(one: Claim, ends: list[float], more: float) -> None:
    order = [Verdict.OPPOSITE, Verdict.ABSENT, Verdict.SMALLER, Verdict.CANNOT_TELL, Verdict.HOLDS]
    before, after = (judged(one, between(ends[0] * factor, ends[1] * factor)) for factor in (1, more))
    assert order.index(after) >= order.index(before)


@given(CLAIMS, st.lists(ENDS, min_size=1, max_size=5), st.randoms())
def test_settings_amount_to_what_they_have_in_common(one: Claim, ends: list[list[float]], random: Random) -> None:
    found = [between(*each) for each in ends]
    verdict, verdicts = combined(one, found), [judged(one, each) for each in found]
    shuffled = random.sample(found, len(found)) + found[:1]
    assert combined(one, shuffled) is verdict
    assert (verdict is Verdict.HOLDS) == (set(verdicts) == {Verdict.HOLDS})
    assert (verdict is Verdict.OPPOSITE) == (set(verdicts) == {Verdict.OPPOSITE})
    if verdict is Verdict.SMALLER:
        assert Verdict.SMALLER in verdicts and not {Verdict.ABSENT, Verdict.OPPOSITE} & set(verdicts)
    if verdict is Verdict.ABSENT:
        assert set(verdicts) <= MISSED


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ([(2, 3), (1.2, 1.3)], Verdict.SMALLER),  # faster everywhere, in one setting by less
        ([(2, 3), (1.2, 1.3), (1.4, 1.6)], Verdict.SMALLER),
        ([(2, 3), (1.2, 1.3), (0.9, 1.6)], Verdict.CANNOT_TELL),  # the last may be slower
        ([(2, 3), (0.5, 0.6)], Verdict.CANNOT_TELL), ([(2, 3), (1.2, 1.3), (0.5, 0.6)], Verdict.CANNOT_TELL),
        ([(2, 3), (0.9, 1.1)], Verdict.CANNOT_TELL),
        ([(1.2, 1.3), (0.5, 0.6)], Verdict.ABSENT),  # faster here, slower there, nowhere as claimed
        ([(1.2, 1.3), (0.99, 1.01)], Verdict.ABSENT),
        ([(0.5, 0.6), (0.99, 1.01)], Verdict.ABSENT),
        ([(2, 3), (1.4, 1.6)], Verdict.CANNOT_TELL),
    ],
)  # fmt: skip
def test_settings_that_differ(ends: list[tuple[float, float]], verdict: Verdict) -> None:
    assert combined(GAIN, [between(*each) for each in ends]) is verdict
