"""Comparisons of records: which times may be compared, on which clock, and what the ratio amounts to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..measure.intervals import CONFIDENCE, Ratio, Series, Verdict, speedup, verdict
from ..model.record import Record, Status

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


def common_clock(records: Iterable[Record]) -> Clock | None:
    """Return the clock on which records can be compared: ``span`` if it ranks all of them, else ``wall``, else none."""
    records = list(records)
    if all(r.timing and r.timing.rank == "span" and r.timing.span for r in records):
        return "span"
    return "wall" if all(r.timing and r.timing.wall for r in records) else None


@dataclass(frozen=True)
class Comparison:
    """How many times faster one record is than another, on which clock, and what that amounts to."""

    ratio: Ratio
    verdict: Verdict
    clock: Clock
    mixed: bool

    @classmethod
    def of(cls, ratio: Ratio, clock: Clock, mixed: bool) -> Comparison:
        """Return what a ratio amounts to; ``ambiguous`` where samples are too few for an interval of 95 %."""
        return cls(ratio, verdict(ratio) if ratio.confidence >= CONFIDENCE else Verdict.AMBIGUOUS, clock, mixed)


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
    beside = side_by_side(base, other)
    mixed = clock == "wall" and any(r.timing and r.timing.rank == "span" for r in (base, other))
    first, second = (_series(record, clock, None if beside else side) for side, record in enumerate((base, other)))
    return Comparison.of(speedup(first, second), clock, mixed)


def _series(record: Record, clock: Clock, alone: int | None) -> Series:
    """Return a record's samples by round; of a side that is ``alone`` by numbers that the other side does not have."""
    timing = record.timing
    assert timing
    values = getattr(timing, clock)
    rounds, workers = timing.rounds, timing.workers
    if len(values) != len(rounds):  # executions of their own: nothing says which worker's
        alone, workers = alone or 0, []
    if alone is not None:
        rounds = [-1 - 2 * i - alone for i in range(len(values))]
    return Series(dict(zip(rounds, values, strict=True)), dict(zip(rounds, workers, strict=True)) if workers else {})


def side_by_side(base: Record, other: Record) -> bool:
    """Whether the samples of two records were taken in turn: in one group of one run."""
    one, two = base.identity, other.identity
    where = (base.run, one.devices, one.workload, one.problem, one.parameters)
    return where == (other.run, two.devices, two.workload, two.problem, two.parameters)
