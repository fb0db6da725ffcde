"""Comparisons of records: which times may be compared, on which clock, and what the ratio amounts to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..measure.intervals import Verdict, speedup, verdict
from ..model.record import Interval, Record, Status

Clock = Literal["span", "wall"]


def is_measured(record: Record) -> bool:
    """Whether the record's times are results of a measurement (``contended`` ones carry a mark)."""
    return record.status.measured and record.provenance == "measured" and record.timing is not None


def is_ranked(record: Record) -> bool:
    """Whether the record may be called best: measured, right, and not contended."""
    return record.status == Status.OK and is_measured(record)


def time_of(record: Record, clock: Clock | None = None) -> float:
    """Return the median time on a clock, the one that ranks the record by default."""
    assert record.timing
    return record.timing.summary[clock or record.timing.rank].median


def _samples(record: Record, clock: Clock) -> list[float]:
    return list(getattr(record.timing, clock))


def common_clock(records: Iterable[Record]) -> Clock | None:
    """Return the clock on which records can be compared: ``span`` if it ranks all of them, else ``wall``, else none."""
    records = list(records)
    if all(r.timing and r.timing.rank == "span" and r.timing.span for r in records):
        return "span"
    return "wall" if all(r.timing and r.timing.wall for r in records) else None


@dataclass(frozen=True)
class Comparison:
    """How many times faster one record is than another, on which clock, and what that amounts to."""

    ratio: Interval
    verdict: Verdict
    clock: Clock
    mixed: bool


def compare(base: Record, other: Record) -> Comparison | None:
    """Return the speed-up of ``other`` over ``base``; ``None`` where there is nothing to judge.

    That is so where a side has no result, no clock is common, or the inputs are others. Samples that were taken side by
    side are compared round by round; of others the medians and their intervals.
    """
    if not (is_measured(base) and is_measured(other)) or base.inputs != other.inputs:
        return None
    clock = common_clock([base, other])
    if clock is None:
        return None
    beside = _side_by_side(base, other)
    sides = []
    for number, record in enumerate((base, other)):
        assert record.timing
        values = _samples(record, clock)
        paired = beside and len(values) == len(record.timing.rounds)
        # Samples without a round of their own get numbers that nothing else has: they are never paired.
        rounds = record.timing.rounds if paired else [-1 - 2 * i - number for i in range(len(values))]
        sides.append(dict(zip(rounds, values, strict=True)))
    ratio = speedup(*sides)
    mixed = clock == "wall" and any(r.timing and r.timing.rank == "span" for r in (base, other))
    return Comparison(ratio, verdict(ratio), clock, mixed)


def _side_by_side(base: Record, other: Record) -> bool:
    """Whether the samples of two records were taken in turn: in one group of one run."""
    one, two = base.identity, other.identity
    where = (base.run, one.devices, one.workload, one.problem, one.parameters)
    return where == (other.run, two.devices, two.workload, two.problem, two.parameters)
