"""Which of its earlier nights a case is held to, where source, driver, software or settings changed between them.

An event (`perfport.nightly.night.Change`) parts the nights of a case into stretches. What became slower with an event
is held to the nights before it, night after night, until somebody accepts the new level, or it is undone. What an event
left as it was, or made faster, is part of the base from then on: no harm is done by a change that nobody can measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .night import Change

#: Nights that make a level.
LEAST_NIGHTS = 3


@dataclass(frozen=True)
class Stretch:
    """Nights of a case in a row, between two events.

    Attributes
    ----------
    logs : mapping of float
        Logarithms of seconds, by number of the night, oldest first.
    events : sequence of Change
        What changed before the first of them.
    """

    logs: Mapping[int, float]
    events: Sequence[Change] = ()


@dataclass(frozen=True)
class Level:
    """What a case is held to.

    Attributes
    ----------
    nights : sequence of int
        Numbers of the nights, oldest first.
    logs : sequence of float
        Their times, as logarithms of seconds.
    apart : sequence of sequence of float
        Times of nights at other levels, a sequence for each: they tell how nights scatter.
    events : sequence of Change
        With which the case left the level; where it has not, what changed tonight.
    """

    nights: Sequence[int] = ()
    logs: Sequence[float] = ()
    apart: Sequence[Sequence[float]] = ()
    events: Sequence[Change] = ()


@dataclass
class _Walk:
    """The level of a case as the nights go by: ``highest`` is that of the stretches that are slower than it."""

    least: float
    last: int
    logs: dict[int, float] = field(default_factory=dict)
    apart: list[list[float]] = field(default_factory=list)
    events: list[Change] = field(default_factory=list)
    highest: float = -math.inf

    def slower(self, value: float) -> bool:
        return bool(self.logs) and value - self.middle > self.least

    @property
    def middle(self) -> float:
        return float(np.median(list(self.logs.values())[-self.last :]))

    def leave(self, level: float, events: Sequence[Change]) -> None:
        """Note what made a case slower: events with which it became so, not those that changed nothing more."""
        if level - self.highest > self.least:
            self.events += events
            self.highest = level

    def pass_by(self, stretch: Stretch) -> None:
        values = list(stretch.logs.values())
        level = float(np.median(values))
        if self.slower(level):
            self.leave(level, stretch.events)
            self.apart.append(values)
            return
        faster = bool(self.logs) and self.middle - level > self.least
        if faster and len(values) < LEAST_NIGHTS:  # held to what was before until the new level is known
            self.apart.append(values)
            return
        if faster:
            self.apart.append(list(self.logs.values())[-self.last :])
            self.logs = {}
        self.logs |= stretch.logs
        self.events, self.highest = [], -math.inf


def held_to(
    stretches: Sequence[Stretch], tonight: float, changes: Sequence[Change], threshold: float, last: int
) -> Level:
    """Return the nights that a case is held to tonight: all that are at its level, oldest first.

    Parameters
    ----------
    stretches : sequence of Stretch
        Its nights before, oldest first.
    tonight : float
        Logarithm of its time tonight.
    changes : sequence of Change
        Since the last of the stretches.
    threshold : float
        Change of time, relative, that is too small to matter.
    last : int
        So many nights tell a level.
    """
    walk = _Walk(math.log1p(threshold), last)
    for stretch in stretches:
        walk.pass_by(stretch)
    if walk.slower(tonight) or not walk.events:
        walk.leave(tonight, changes)
    return Level(tuple(walk.logs), tuple(walk.logs.values()), tuple(walk.apart), tuple(walk.events))
