"""Where one curve overtakes another along an axis, as far as their intervals decide it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...model.record import Interval


@dataclass(frozen=True)
class Crossover:
    """Between two places where the intervals lie apart, in the one order and then in the other.

    Attributes
    ----------
    first : bool
        Whether it is the first curve that is ahead from there on.
    low, high : float
        The last place of the old order and the first of the new.
    at : float or None
        Where the interpolated values pass each other; None where they do so several times in between.
    """

    first: bool
    low: float
    high: float
    at: float | None


def order(one: Interval, other: Interval, higher: bool) -> int:
    """Return 1 where the first is ahead with its whole interval, -1 where the other is, 0 where they overlap."""
    above = (one.low > other.high) - (one.high < other.low)
    return above if higher else -above


def crossovers(
    one: Mapping[float, Interval], other: Mapping[float, Interval], higher: bool, log: bool
) -> list[Crossover]:
    """Return where two curves change their order.

    Places at which the intervals overlap decide nothing: a crossover lies between the decided ones around them.

    Parameters
    ----------
    one, other : mapping of float to Interval
        Positive values along the axis; where both have one they are compared.
    higher : bool
        Whether more is better.
    log : bool
        Whether to interpolate along the logarithm of the axis. That of the ratio is taken in any case.
    """
    xs = sorted(one.keys() & other.keys())
    decided = [(x, way) for x in xs if (way := order(one[x], other[x], higher))]
    ratios = {x: one[x].value / other[x].value for x in xs}
    found = []
    for (low, before), (high, after) in pairwise(decided):
        if before != after:
            roots = list(_roots([x for x in xs if low <= x <= high], ratios, log))
            found.append(Crossover(after > 0, low, high, roots[0] if len(roots) == 1 else None))
    return found


def _roots(xs: Sequence[float], ratios: Mapping[float, float], log: bool) -> Iterator[float]:
    """Yield where ratios pass 1, by linear interpolation of their logarithms."""
    for left, right in pairwise(xs):
        a, b = math.log(ratios[left]), math.log(ratios[right])
        if (a < 0) != (b < 0):
            share = a / (a - b)
            yield left * (right / left) ** share if log else left + (right - left) * share
