"""What a claim compares: a number with its interval, from the records of its sides."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ConfigDict

from ...model.record import Interval, Record
from ...store.crossfit import compare_best
from ...store.ratios import common_clock, time_of
from .ledger import Claim


class Missing(Exception):
    """A side has no result; the text says why."""


class OpenInterval(Interval):
    """The number of a claim, without an end where the data set none; nothing of the kind is stored."""

    model_config = ConfigDict(allow_inf_nan=True)


class Number(NamedTuple):
    """A number of a comparison: what it is, its value and unit (empty for a pure number)."""

    what: str
    value: float
    unit: str = ""


def _time(record: Record, others: Iterable[Record]) -> Number:
    return Number(record.identity.variant, time_of(record, common_clock([record, *others])), "s")


def _speedup(subjects: list[Record], references: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    subject, reference = subjects[0], references[0]
    compared = compare_best(references, subjects)
    if compared is None:
        raise Missing(f"{subject.identity.variant} and {reference.identity.variant} have no clock in common")
    return compared.ratio, (_time(subject, [reference]), _time(reference, [subject]))


def _share(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    record = records[0]
    name, without = _BOUNDS[claim.share_of]
    bound = getattr(record, claim.share_of)
    if bound is None:
        raise Missing(f"{record.identity.variant} has no {name}: {without}")
    numbers = [_time(record, []), Number(name, bound.seconds, "s")]
    if record.problem_bound is not None and bound is not record.problem_bound:
        numbers.append(Number("share of the problem bound", record.problem_bound.share.value))
    return bound.share, tuple(numbers)


#: What a bound is called, and why a record has none, by ``share_of``.
_BOUNDS = {
    "problem_bound": ("problem bound", "no ceilings were measured"),
    "datasheet_bound": ("datasheet bound", "no device profile has figures of the datasheet"),
}


def _overhead(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    """What the reference adds to the base over what the subject adds; the ends from the ends of the three medians."""
    clock = common_clock(records)
    if clock is None:
        raise Missing("the sides have no clock in common")
    subject, reference, base = (record.timing.summary[clock] for record in records if record.timing)
    small = (subject.median - base.median, subject.ci_low - base.ci_high, subject.ci_high - base.ci_low)
    large = (reference.median - base.median, reference.ci_low - base.ci_high, reference.ci_high - base.ci_low)
    names = [record.identity.variant for record in records]
    numbers = (Number(f"{names[0]} - {names[2]}", small[0], "s"), Number(f"{names[1]} - {names[2]}", large[0], "s"))
    value = large[0] / small[0] if small[0] else math.inf
    if small[1] > 0:
        ends = [above / below for above in large[1:] for below in small[1:]]
        return Interval(value=value, low=min(ends), high=max(ends)), numbers
    low = large[1] / small[2] if large[1] > 0 and small[2] > 0 else -math.inf  # overheads are not negative
    return OpenInterval(value=value, low=low, high=math.inf), numbers


def _number(record: Record, path: str) -> float:
    value: Any = record.model_dump()
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Missing(f"{record.identity.variant} has no number {path!r}")
    return float(value)


def _figure(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    assert claim.figure
    subject = records[0]
    value, what = _number(subject, claim.figure), subject.identity.variant
    if claim.base:
        base = records[-1]
        value, what = value - _number(base, claim.figure), f"{what} - {base.identity.variant}"
    numbers = [Number(f"{what} {claim.figure}", value)]
    if claim.reference_figure or claim.reference:
        other, path = records[1] if claim.reference else subject, claim.reference_figure or claim.figure
        under = _number(other, path)
        numbers.append(Number(f"{other.identity.variant} {path}", under))
        if not under:
            raise Missing(f"{other.identity.variant}: {path} is 0")
        value /= under
    return Interval(value=value, low=value, high=value), tuple(numbers)


def _kernel_share(claim: Claim, records: list[Record]) -> tuple[Interval, tuple[Number, ...]]:
    timing = records[-1].timing  # the reference's, where there is one
    kernels = timing.kernels if timing else {}
    total = sum(kernels.values())
    if not total:
        raise Missing(f"{records[-1].identity.variant} has no time by kernel")
    some = sum(seconds for name, seconds in kernels.items() if name in claim.kernels)
    named = Number(", ".join(claim.kernels), some, "s")
    if not claim.reference:
        value = some / total
        return Interval(value=value, low=value, high=value), (named, Number("all kernels", total, "s"))
    subject = records[0]
    if common_clock(records) != "span":
        raise Missing(f"{subject.identity.variant} and {records[-1].identity.variant} have no device times in common")
    assert subject.timing
    whole = subject.timing.summary["span"]
    share = Interval(value=some / whole.median, low=some / whole.ci_high, high=some / whole.ci_low)
    return share, (named, Number(subject.identity.variant, whole.median, "s"))


_OF_FASTEST = {"share": _share, "overhead": _overhead, "figure": _figure, "kernel_share": _kernel_share}


def measure(claim: Claim, sides: list[list[Record]]) -> tuple[Interval, tuple[Number, ...]]:
    """Return the number that a claim compares, with its interval and the numbers that it is made of.

    Parameters
    ----------
    claim : Claim
    sides : list of list of Record
        Of each side the records that may stand for it, the fastest first.

    Raises
    ------
    Missing
        If a record lacks what is compared.
    """
    if claim.compare == "speedup":
        return _speedup(sides[0], sides[1])
    return _OF_FASTEST[claim.compare](claim, [side[0] for side in sides])
