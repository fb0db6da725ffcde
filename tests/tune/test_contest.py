"""When a configuration is given up: not before its rounds say so, nor for a single slow one."""

from __future__ import annotations

import pytest

from perfport.measure.sampling import Execution, Targets
from perfport.tune.contest import Contender, Incumbent, cannot_win

TARGETS = Targets(min_samples=7, max_samples=9, max_noise=0.001)


@pytest.mark.parametrize(
    ("ratios", "given_up"),
    [
        ([], False),
        ([1.4], False),
        ([1.6], True),
        ([1.6, 1.2], False),
        ([1.3, 1.3], True),
        ([1.01] * 4, False),
        ([1.01] * 5, True),
        ([1.01] * 4 + [0.999], False),
        ([9.0] * 6 + [1.0], False),
    ],
)
def test_it_is_dropped_when_rounds_show_it(ratios: list[float], given_up: bool) -> None:
    assert cannot_win(ratios) is given_up


def beside(mine: list[float], theirs: list[float]) -> Contender:
    best = Incumbent("best", {"a": Execution(lambda: None, span=theirs)}, rounds=list(range(len(theirs))))
    own = {"a": Execution(lambda: None, span=mine)}
    return Contender("new", own, rounds=list(range(len(mine))), rival=best)


def test_a_slow_one_ends_early_and_a_fast_one_is_sampled_on() -> None:
    assert beside([2.0], [1.0]).done(TARGETS)
    assert not beside([0.9, 1.1, 0.9], [1.0, 1.0, 1.0]).done(TARGETS)
    assert beside([0.9] * 9, [1.0] * 9).done(TARGETS)
    assert not Contender("first", {"a": Execution(lambda: None, span=[9.0])}, rounds=[0]).done(TARGETS)


def test_it_must_win_against_the_best_and_not_only_against_its_rival() -> None:
    close = beside([0.9, 0.9, 0.9, 0.9, 0.9], [1.0] * 5)
    assert not close.done(TARGETS)
    close.lead = 0.5
    assert close.done(TARGETS)


def test_the_ratio_is_its_time_over_that_of_the_best_by_round() -> None:
    contender = beside([2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    ratio = contender.ratio()
    assert ratio and (ratio.low, ratio.value, ratio.high) == (2.0, 2.0, 2.0)
    assert contender.rival and not contender.rival.done(TARGETS)
