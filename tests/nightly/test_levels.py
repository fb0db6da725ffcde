"""Which nights a case is held to across events: slower ones are kept apart until they are accepted or undone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from perfport.nightly.levels import LEAST_NIGHTS, Level, Stretch, held_to
from perfport.nightly.night import Change

SOURCE, DRIVER, OTHER = Change("source", "a", "b"), Change("driver", "580", "590"), Change("source", "b", "c")
FAST, SAME, SLOW, SLOWER = (math.log(0.05 * factor) for factor in (0.9, 1.0, 1.05, 1.12))


def level(
    *parts: tuple[Sequence[Change], Sequence[float]], tonight: float = SAME, since: Sequence[Change] = ()
) -> Level:
    """The level after stretches, each of events and times."""
    stretches, number = [], 0
    for events, logs in parts:
        stretches.append(Stretch({number + i: value for i, value in enumerate(logs)}, events))
        number += len(logs)
    return held_to(stretches, tonight, since, 0.02, 7)


STEADY: tuple[tuple[Change, ...], list[float]] = ((), [SAME] * 5)


def test_without_events_all_nights_are_the_level() -> None:
    assert level(STEADY) == Level((0, 1, 2, 3, 4), (SAME,) * 5)
    assert level() == Level() and level(since=[SOURCE]) == Level(events=(SOURCE,))


@pytest.mark.parametrize("tonight", [SAME, SLOW, FAST])
def test_what_changed_tonight_is_an_event(tonight: float) -> None:
    held = level(STEADY, tonight=tonight, since=[SOURCE])
    assert held.events == (SOURCE,) and len(held.logs) == 5


def test_what_an_event_left_as_it_was_is_part_of_the_base() -> None:
    held = level(STEADY, ([SOURCE], [SAME + 0.019]), tonight=SLOW)
    assert held.nights == (0, 1, 2, 3, 4, 5) and held.events == (), "an innocent event is not blamed"


@pytest.mark.parametrize("nights", [1, 3, 30])
def test_what_became_slower_is_held_to_the_nights_before(nights: int) -> None:
    held = level(STEADY, ([SOURCE], [SLOW] * nights), tonight=SLOW)
    assert held.nights == (0, 1, 2, 3, 4) and held.events == (SOURCE,)
    assert held.apart == ([SLOW] * nights,), "its nights still tell how nights scatter"


def test_the_event_that_made_it_slower_is_blamed_and_not_a_later_one() -> None:
    held = level(STEADY, ([DRIVER], [SLOW] * 2), ([OTHER], [SLOW]), tonight=SLOW, since=[SOURCE])
    assert held.events == (DRIVER,)
    worse = level(STEADY, ([DRIVER], [SLOW] * 2), ([OTHER], [SLOWER]), tonight=SLOWER)
    assert worse.events == (DRIVER, OTHER), "each that made it slower still"
    assert level(STEADY, ([DRIVER], [SLOW] * 2), tonight=SLOWER, since=[SOURCE]).events == (DRIVER, SOURCE)


def test_what_is_undone_is_forgiven() -> None:
    undone = level(STEADY, ([SOURCE], [SLOW] * 4), ([OTHER], [SAME]), tonight=SLOW)
    assert undone.nights == (0, 1, 2, 3, 4, 9) and undone.events == ()
    tonight = level(STEADY, ([SOURCE], [SLOW] * 4), tonight=SAME, since=[OTHER])
    assert tonight.nights == (0, 1, 2, 3, 4)


def test_a_faster_level_counts_when_it_is_known() -> None:
    """A single fast night may be luck, and what follows would look slower."""
    young = level(STEADY, ([SOURCE], [FAST] * (LEAST_NIGHTS - 1)), tonight=FAST)
    assert young.nights == (0, 1, 2, 3, 4) and young.apart == ([FAST] * 2,)
    known = level(STEADY, ([SOURCE], [FAST] * LEAST_NIGHTS), tonight=SAME, since=[OTHER])
    assert known.nights == (5, 6, 7) and known.events == (OTHER,) and known.apart == ([SAME] * 5,)


def test_the_latest_nights_say_where_the_level_is() -> None:
    """A slow drift within the threshold a night is followed, not held against the oldest nights."""
    drift = [SAME + 0.003 * night for night in range(30)]
    held = level(((), drift), ([SOURCE], [drift[-1] + 0.003]), tonight=drift[-1])
    assert len(held.logs) == 31
