"""Moderated variances, control of false discoveries, and what `perfport check` makes of 500 noisy cases with both."""

from __future__ import annotations

import numpy as np
import pytest

from perfport.nightly.base import Before, in_line
from perfport.nightly.finding import Finding, Outcome
from perfport.nightly.significance import LEAST_SPREAD, Prior, discoveries, usual
from perfport.nightly.trials import Trial, settle

CASES = 500
KEYS = [
    f'["nightly","w","p",{{"n":{case}}},"v",{{}},["cuda:nvidia:0"],["H200"],"cuda",null,"fp32"]'
    for case in range(CASES)
]


def test_the_usual_variance_is_recovered() -> None:
    rng = np.random.default_rng(1)
    freedom, prior, own = 2, 8.0, 4e-6
    true = own * prior / rng.chisquare(prior, 20000)  # each case's own variance scatters about the usual one
    found = usual(list(true * rng.chisquare(freedom, true.size) / freedom), [freedom] * true.size)
    assert found.variance == pytest.approx(own, rel=0.05)
    assert found.freedom == pytest.approx(prior, rel=0.15)


def test_equal_variances_are_taken_for_equal() -> None:
    rng = np.random.default_rng(2)
    found = usual(list(1e-6 * rng.chisquare(4, 400) / 4), [4] * 400)
    assert found.freedom > 20
    moderated, freedom = found.moderated(1e-8, 4)
    assert moderated == pytest.approx(1e-6, rel=0.3) and freedom > 20


def test_few_cases_stand_for_themselves() -> None:
    assert usual([1e-6] * 4, [2] * 4).moderated(9e-6, 2) == (9e-6, 2)


def test_a_clock_that_never_varies_has_the_spread_of_its_resolution() -> None:
    assert Prior(1e-6, 0.0).moderated(0.0, 4) == (LEAST_SPREAD**2, 4)


def test_discoveries_follow_the_step_up_rule() -> None:
    # Benjamini and Hochberg 1995, section 3.2: 15 p-values, 4 of which are rejected at 0.05.
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1,
    ]
    assert discoveries(p, 0.05) == [True] * 4 + [False] * 11
    shuffled = np.random.default_rng(3).permutation(15)
    assert [discoveries([p[i] for i in shuffled], 0.05)[list(shuffled).index(i)] for i in range(5)] == [True] * 4 + [
        False
    ]
    assert discoveries([], 0.05) == [] and discoveries([0.04, 0.04], 0.05) == [True, True]


def noise(rng: np.random.Generator, spread: float, workers: int) -> np.ndarray:
    """Logarithms of medians of fresh workers: normal, with one in twenty three times as far off."""
    return rng.standard_normal(workers) * np.where(rng.random(workers) < 0.05, 3.0, 1.0) * spread


def night(rng: np.random.Generator, spread: float, slowed: int, nights: int) -> tuple[int, int]:
    """Judge a simulated night with re-measurement; returns false alarms and detections.

    Spreads between workers differ by case around ``spread``. The base is a run, or so many nights that scatter by
    0.3 % more; the first ``slowed`` cases take 5 % longer.
    """
    spreads = spread * np.exp(0.5 * rng.standard_normal(CASES))
    shifts = np.where(np.arange(CASES) < slowed, np.log(1.05), 0.0)
    if nights:
        shifts = shifts + 0.003 * rng.standard_normal(CASES)
        bases = [
            Before(
                "nights",
                in_line([noise(rng, s, 3).mean() + 0.003 * rng.standard_normal() for _ in range(nights)], 0.02),
                True,
            )
            for s in spreads
        ]
    else:
        bases = [Before("run", list(noise(rng, s, 3))) for s in spreads]
    now = [shift + noise(rng, s, 3) for shift, s in zip(shifts, spreads, strict=True)]
    findings = judged(bases, now)
    for case, found in enumerate(findings):
        if found.suspected:
            now[case] = np.append(now[case], shifts[case] + noise(rng, spreads[case], 5))
    slower = [found.outcome is Outcome.SLOWER for found in judged(bases, now)]
    return sum(slower[slowed:]), sum(slower[:slowed])


def judged(bases: list[Before], now: list[np.ndarray]) -> list[Finding]:
    """Return the findings of a night."""
    findings = [Finding(key, Outcome.CANNOT_TELL, threshold=0.02) for key in KEYS]
    settle([Trial.of(*each) for each in zip(findings, bases, [list(logs) for logs in now], strict=True)])
    return findings


@pytest.mark.parametrize(("spread", "nights"), [(0.003, 0), (0.01, 0), (0.02, 7)])
def test_at_most_one_red_night_in_twenty_is_false(spread: float, nights: int) -> None:
    rng = np.random.default_rng(4)
    red = sum(night(rng, spread, 0, nights)[0] > 0 for _ in range(25))
    assert red <= 4, "five or more have a probability of 0.7 % where one has 5 %"


@pytest.mark.parametrize("nights", [0, 7])
def test_five_percent_are_found(nights: int) -> None:
    rng = np.random.default_rng(5)
    found = [night(rng, 0.003, 50, nights) for _ in range(4)]
    assert sum(hits for _, hits in found) >= 0.95 * 4 * 50
    assert sum(false for false, _ in found) <= 10  # one in twenty of what is reported may be false
