"""What `perfport check` makes of 500 noisy cases, with moderated variances and false discoveries under control."""

from __future__ import annotations

import numpy as np
import pytest

from perfport.nightly.base import Before, in_line
from perfport.nightly.finding import Finding, Outcome
from perfport.nightly.trials import Trial, settle

CASES = 500
KEYS = [
    f'["nightly","w","p",{{"n":{case}}},"v",{{}},["cuda:nvidia:0"],["H200"],"cuda",null,"fp32"]'
    for case in range(CASES)
]


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
