"""Scores over several sizes, what becomes the best, and what no other size can save."""

from __future__ import annotations

import math
from typing import Any

import pytest

from perfport.model.record import Interval, Status
from perfport.tune.log import Trial
from perfport.tune.space import name_of
from perfport.tune.standing import Standing

BOTH = {"small": 1.0, "large": 3.0}


def trial(n: int, preset: str, relative: float | None = 1.0, spread: float = 0.01, **more: Any) -> Trial:
    ratio = None
    if relative is not None and n:
        ratio = Interval(value=relative, low=relative * (1 - spread), high=relative * (1 + spread))
    status = Status.OK if relative is not None else Status.WRONG
    return Trial(
        device="opencl:pocl:0", variant="w/p/v", preset=preset, config={"n": n}, status=status, relative=relative,
        ratio=ratio, seconds=relative, **more,
    )  # fmt: skip


def standing(*trials: Trial, objective: Any = "mean", presets: Any = BOTH) -> Standing:
    made = Standing(presets, objective)
    for each in trials:
        made.add(each)
    return made


NAME = [name_of({"n": n}) for n in range(9)]
DEFAULT = trial(0, "small", share=0.5), trial(0, "large", share=0.5)


def test_the_mean_is_geometric_and_weighted() -> None:
    known = standing(*DEFAULT, trial(1, "small", 2.0), trial(1, "large", 0.5))
    assert known.score(NAME[1]) == pytest.approx((math.log(2) - 3 * math.log(2)) / 4)
    assert known.best == NAME[1] and known.ranked() == [NAME[1], NAME[0]]


def test_the_worst_is_against_the_best_of_each_size() -> None:
    known = standing(*DEFAULT, trial(1, "small", 0.5), trial(1, "large", 1.5), objective="worst")
    assert known.score(NAME[0]) == pytest.approx(math.log(2)) and known.score(NAME[1]) == pytest.approx(math.log(1.5))
    assert known.best == NAME[1]


def test_what_is_faster_within_its_interval_is_ranked_and_not_the_best() -> None:
    known = standing(*DEFAULT, trial(1, "small", 0.99, 0.05), trial(1, "large", 0.99, 0.05))
    assert known.best == NAME[0] and known.ranked()[0] == NAME[1]


def test_a_failure_has_no_score_and_no_place() -> None:
    known = standing(*DEFAULT, trial(1, "small", 0.1), trial(1, "large", None))
    assert known.failed(NAME[1]) and known.score(NAME[1]) is None and known.ranked() == [NAME[0]]


def test_what_was_not_timed_is_scored_and_not_ranked() -> None:
    known = standing(*DEFAULT, trial(1, "small", 3.0, hopeless=True))
    assert known.score(NAME[1]) == pytest.approx(math.log(3)) and known.ranked() == [NAME[0]]
    whole = standing(*DEFAULT, *(trial(1, preset, 0.5, hopeless=True) for preset in BOTH))
    assert whole.ranked() == [NAME[0]] and whole.best == NAME[0]


def test_other_sizes_may_make_up_for_one_as_far_as_the_bound_allows() -> None:
    """The best is at half of the bound at the large size, which weighs three times: a factor of 8 at the small one."""
    assert not standing(*DEFAULT, trial(1, "small", 7.0)).cannot_win(NAME[1])
    assert standing(*DEFAULT, trial(1, "small", 8.5)).cannot_win(NAME[1])
    assert not standing(*DEFAULT, trial(1, "small", 8.5, 0.2)).cannot_win(NAME[1])


def test_without_a_bound_nothing_is_given_up() -> None:
    assert not standing(trial(0, "small"), trial(0, "large"), trial(1, "small", 1e6)).cannot_win(NAME[1])


def test_by_the_worst_one_size_is_enough() -> None:
    assert standing(*DEFAULT, trial(1, "small", 1.1), objective="worst").cannot_win(NAME[1])
    assert not standing(*DEFAULT, trial(1, "small", 1.1, 0.2), objective="worst").cannot_win(NAME[1])


def test_the_best_itself_and_a_first_one_can_win() -> None:
    assert not standing(*DEFAULT).cannot_win(NAME[0])
    assert not standing(trial(0, "small", None)).cannot_win(NAME[0])


def one(n: int, relative: float, spread: float = 0.001) -> Trial:
    return trial(n, "quick", relative, spread)


def test_others_are_measured_beside_the_same_one_until_the_best_is_much_faster() -> None:
    known = standing(one(0, 1.0), presets={"quick": 1.0})
    seen = []
    for n, relative in enumerate((0.9, 0.85, 0.81, 0.79, 0.7, 0.64, 0.63), 1):
        known.add(one(n, relative))
        seen.append((known.best, known.anchor))
    anchors = [0, 0, 0, 4, 4, 4, 7]  # 1 / 0.79 and 0.79 / 0.63 are more than 1.25, 0.79 / 0.64 is not
    assert seen == [(NAME[n], NAME[anchor]) for n, anchor in enumerate(anchors, 1)]
    assert known.reference == NAME[0] and known.lead("quick") == 1.0
    known.add(trial(8, "quick", 0.6, 0.001))
    assert known.anchor == NAME[7] and known.lead("quick") == pytest.approx(0.6 / 0.63)


def test_what_is_not_faster_than_the_best_beyond_doubt_is_not_the_best() -> None:
    known = standing(one(0, 1.0), one(1, 0.9), one(2, 0.895, 0.02), presets={"quick": 1.0})
    assert known.best == NAME[1] and known.ranked()[0] == NAME[2]
    known.add(one(3, 0.895))
    assert known.best == NAME[3]


def test_the_place_is_what_the_reference_is_worth_beside_itself() -> None:
    apart = trial(0, "quick").model_copy(update={"ratio": Interval(value=0.96, low=0.95, high=0.97)})
    assert standing(apart, presets={"quick": 1.0}).place("quick") == 0.96
    noise = apart.model_copy(update={"ratio": Interval(value=0.98, low=0.95, high=1.01)})
    assert standing(noise, presets={"quick": 1.0}).place("quick") == 1.0
    assert standing(one(0, 1.0), presets={"quick": 1.0}).place("quick") == 1.0
    assert standing(presets={"quick": 1.0}).place("quick") == 1.0
