"""Crossovers: known ones are found, and none where the intervals decide nothing."""

from __future__ import annotations

import pytest

from perfport.model.record import Interval
from perfport.report.parts.crossovers import Crossover, crossovers, order


def curve(*values: tuple[float, float], width: float = 0.01) -> dict[float, Interval]:
    """Return a curve whose intervals are so wide on either side."""
    return {x: Interval(value=v, low=v * (1 - width), high=v * (1 + width)) for x, v in values}


EVEN = curve((100, 1), (1000, 1), (4000, 1), (40000, 1))
RISES = curve((100, 0.25), (1000, 0.5), (4000, 2), (40000, 4))


def test_a_known_crossover_is_interpolated_on_the_axis_that_is_asked_for() -> None:
    (found,) = crossovers(RISES, EVEN, higher=True, log=True)
    assert (found.first, found.low, found.high) == (True, 1000, 4000)
    assert found.at == pytest.approx(2000)  # halfway between 0.5 and 2, and between 1000 and 4000
    (linear,) = crossovers(RISES, EVEN, higher=True, log=False)
    assert linear.at == pytest.approx(2500)


def test_where_less_is_better_the_other_curve_is_ahead() -> None:
    (found,) = crossovers(RISES, EVEN, higher=False, log=True)
    assert not found.first
    assert crossovers(EVEN, RISES, higher=False, log=True)[0].first


def test_places_where_intervals_overlap_widen_the_range() -> None:
    close = {**RISES, **curve((1000, 0.99), (4000, 1.01), width=0.05)}
    (found,) = crossovers(close, EVEN, higher=True, log=True)
    assert (found.low, found.high) == (100, 40000)
    assert found.at == pytest.approx(2000, rel=0.01)


def test_an_order_that_is_never_decided_the_other_way_is_no_crossover() -> None:
    assert crossovers(curve((1, 0.5), (2, 1.01), (3, 1.02), width=0.05), EVEN, higher=True, log=False) == []
    unsure = curve((1, 0.5), (2, 1.01), width=0.05)
    assert crossovers(unsure, curve((1, 1), (2, 1)), higher=True, log=False) == []
    assert crossovers(curve((1, 2)), curve((2, 1)), higher=True, log=False) == []


def test_curves_that_pass_each_other_several_times_between_decided_places_have_no_one_place() -> None:
    wavers = {**curve((1, 0.5), (5, 2)), **curve((2, 1.02), (3, 0.98), (4, 1.02), width=0.1)}
    (found,) = crossovers(wavers, curve(*((x, 1) for x in range(1, 6))), higher=True, log=False)
    assert found == Crossover(True, 1, 5, None)


def test_there_and_back_are_two_crossovers() -> None:
    hill = curve((1, 0.5), (2, 2), (3, 0.5))
    found = crossovers(hill, curve((1, 1), (2, 1), (3, 1)), higher=True, log=False)
    assert [each.first for each in found] == [True, False]
    assert [each.at for each in found] == pytest.approx([1.5, 2.5])


def test_only_intervals_that_are_apart_have_an_order() -> None:
    one, near, far = (Interval(value=v, low=v - 1, high=v + 1) for v in (10, 11, 20))
    assert (order(one, near, True), order(one, far, True), order(one, far, False)) == (0, -1, 1)
