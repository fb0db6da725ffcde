"""Verdicts: what the interval of the number compared says of a claim, and what several settings amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from ...measure.intervals import SAME_WITHIN
from ...model.record import Interval
from .ledger import Claim


class Verdict(StrEnum):
    """Outcome of a claim on one site."""

    HOLDS = "holds"
    SMALLER = "smaller"
    ABSENT = "absent"
    OPPOSITE = "opposite"
    CANNOT_TELL = "cannot tell"
    BY_CONSTRUCTION = "by construction"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


#: Verdicts of a threshold that is surely missed.
MISSED = frozenset({Verdict.SMALLER, Verdict.ABSENT, Verdict.OPPOSITE})
#: Verdicts that say how a claim came out.
DECIDED = MISSED | {Verdict.HOLDS}
#: Verdicts that say nothing of a claim: no numbers, or none of a device that it is about.
SILENT = frozenset({Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE})


def judged(claim: Claim, interval: Interval) -> Verdict:
    """Return the verdict of one interval."""
    low, high = claim.bounds
    if low <= interval.low and interval.high <= high:
        return Verdict.HOLDS
    if interval.high >= low and interval.low <= high:
        return Verdict.CANNOT_TELL
    neutral = claim.neutral
    if neutral is None or low <= neutral <= high:  # no effect would meet the threshold: this is one, the other way
        return Verdict.OPPOSITE
    reach = SAME_WITHIN * abs(neutral)
    same = neutral - reach <= interval.low and interval.high <= neutral + reach
    if same or interval.low <= neutral <= interval.high:
        return Verdict.ABSENT
    return Verdict.SMALLER if _there(claim, interval) else Verdict.OPPOSITE


def combined(claim: Claim, intervals: Sequence[Interval]) -> Verdict:
    """Return what the settings of a claim amount to.

    A verdict that all settings have stands. Where all miss the threshold, each in its way, there is no effect that they
    share: ``absent``. Where some miss it and others do not, the effect is ``smaller`` if it is there in all of them.
    Else settings disagree: ``cannot tell``.
    """
    verdicts = [judged(claim, each) for each in intervals]
    kinds = set(verdicts)
    if len(kinds) == 1:
        return verdicts[0]
    if kinds <= MISSED:
        return Verdict.ABSENT
    unsure = [each for each, verdict in zip(intervals, verdicts, strict=True) if verdict is Verdict.CANNOT_TELL]
    there = Verdict.SMALLER in kinds and not kinds & {Verdict.ABSENT, Verdict.OPPOSITE}
    return Verdict.SMALLER if there and all(_there(claim, each) for each in unsure) else Verdict.CANNOT_TELL


def settled(claim: Claim, kind: str, verdict: Verdict) -> Verdict:
    """Return what a verdict of the numbers counts as on a kind of device (``cpu``, ``gpu``)."""
    if claim.applies_to and kind not in claim.applies_to:
        return Verdict.NOT_APPLICABLE
    return Verdict.BY_CONSTRUCTION if claim.by_construction and verdict is Verdict.HOLDS else verdict


def _there(claim: Claim, interval: Interval) -> bool:
    """Whether an interval lies wholly on the claimed side of no effect."""
    neutral = claim.neutral
    return neutral is not None and (interval.low > neutral if claim.bounds[0] > neutral else interval.high < neutral)


def reason(claim: Claim, intervals: Sequence[Interval], verdict: Verdict) -> str:
    """Return why, in words and numbers."""
    if len(intervals) == 1:
        number = f"{_short(intervals[0].value)} ({_short(intervals[0].low)} to {_short(intervals[0].high)})"
    else:
        values = sorted(each.value for each in intervals)
        number = f"{_short(values[0])} to {_short(values[-1])} in {len(intervals)} settings"
    if verdict is Verdict.NOT_APPLICABLE:
        return f"{claim.about}; the number here is {number}"
    if verdict is Verdict.BY_CONSTRUCTION:
        return f"{number}; {claim.by_construction}"
    counts = Counter(judged(claim, each) for each in intervals)
    differ = ", ".join(f"{counts[v]} {v.value}" for v in Verdict if counts[v]) if len(counts) > 1 else ""
    if verdict is Verdict.CANNOT_TELL and not differ:
        return f"{number}: the interval contains the threshold, {claim.threshold}"
    if verdict is Verdict.CANNOT_TELL:
        return f"settings disagree ({differ}): {number}; {claim.threshold} is claimed"
    what = _SHARED if verdict is Verdict.ABSENT and differ else _MISS.get(verdict, "")
    return f"{what}{number}{f' ({differ})' if differ else ''}; {claim.threshold} is claimed"


_MISS = {
    Verdict.SMALLER: "the effect is smaller than claimed: ",
    Verdict.ABSENT: "no effect: ",
    Verdict.OPPOSITE: "the opposite: ",
}
_SHARED = "no effect that all settings share: "


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
