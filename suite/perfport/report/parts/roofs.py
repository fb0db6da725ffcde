"""What a roofline is made of: the roofs of a device for a problem, and where each variant stands under them.

After S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009, with a roof and an operational intensity per level of the memory hierarchy as in
C. Yang, T. Kurth, S. Williams, "Hierarchical Roofline analysis for GPUs", Concurrency and Computation: Practice and
Experience 32(20), 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...measure.roofline import INTEGER_UNITS, memory_seconds
from ...model.record import Interval, Record
from ...model.work import Traffic, Work
from ...store.ratios import time_of
from .labels import FLOP_UNITS, ordered
from .ladder import Ladder, Row


@dataclass(frozen=True)
class Level:
    """A memory level: the term of bounds that it gives, its marker, and the bytes that a variant moves there."""

    term: str
    marker: str
    moved: Callable[[Traffic], float]


#: From far to near. Nobody tells how many bytes a third-level cache gives: it has a roof and no points.
LEVELS = (
    Level("dram", "o", lambda traffic: traffic.dram_bytes),
    Level("l3_read", "v", lambda _: 0.0),
    Level("l2_read", "s", lambda traffic: traffic.l2_bytes or 0.0),
    Level("l1_read", "^", lambda traffic: traffic.issued_bytes),
    Level("local_read", "D", lambda traffic: traffic.local_bytes),
)


@dataclass(frozen=True)
class Point:
    """A variant: useful operations per second, and per useful operation the inverse of the bytes of each level."""

    row: Row
    rate: float
    intensities: dict[str, float]


@dataclass(frozen=True)
class Roofs:
    """Bandwidth of each level in B/s, peak of each unit in operations per second."""

    slopes: dict[str, float]
    flats: dict[str, float]

    @property
    def ridges(self) -> list[float]:
        """Where each bandwidth meets the highest peak, in operations per byte."""
        return [max(self.flats.values()) / slope for slope in self.slopes.values()] if self.flats else []


def _bandwidth(ceilings: dict[str, Interval], work: Work) -> dict[str, float]:
    """What DRAM gives for the problem's own mix of reads and writes."""
    moving = memory_seconds(work.read_bytes, work.write_bytes, ceilings)
    return {"dram": work.bytes / moving.value} if moving and moving.value else {}


def measured_roofs(ladder: Ladder, rows: Sequence[Row], work: Work) -> Roofs:
    """The bandwidths and peaks that were measured on the ladder's device and bound this problem."""
    ceilings = ladder.ceilings
    slopes = _bandwidth(ceilings, work)
    used = {level.term for level in LEVELS for row in rows if _moved(row.record, level)}
    for level in LEVELS:
        # On a CPU local memory is ordinary memory, and on a GPU it is a roof only for variants that use it.
        if level.term in ceilings and (level.term != "local_read" or (level.term in used and not ladder.merged)):
            slopes[level.term] = ceilings[level.term].value
    units = FLOP_UNITS if work.flops else INTEGER_UNITS
    bounds = [bound for row in rows for bound in (row.record.problem_bound, row.record.variant_bound) if bound]
    named = ordered(name for bound in bounds for name in bound.terms if name in units and name in ceilings)
    return Roofs(slopes, {name: ceilings[name].value for name in named})


def nominal_roofs(ladder: Ladder, work: Work) -> Roofs:
    """The datasheet's DRAM bandwidth and FP32 peak; it states no other roof."""
    profile = (ladder.run.environment.get("profiles") or {}).get(ladder.devices[0]) or {}
    if len(ladder.devices) != 1:
        return Roofs({}, {})
    bandwidth, peak = profile.get("bandwidth"), profile.get("fp32")
    slopes = {"dram": float(bandwidth)} if bandwidth else {}
    return Roofs(slopes, {"fp32_fma": float(peak)} if peak and work.flops else {})


def _moved(record: Record, level: Level) -> float:
    return level.moved(record.traffic) if record.traffic else 0.0


def placed(row: Row, ladder: Ladder, work: Work, slopes: dict[str, float]) -> Point:
    """Place a variant at every level that has a roof and bounds it: see `roofline.variant_bound`."""
    operations, timing = work.flops or work.integer_ops, row.record.timing
    skipped = {"dram"} if timing and timing.cache == "warm" else set()
    skipped |= {"l1_read", "local_read"} if ladder.merged else set()
    levels = [level for level in LEVELS if level.term in slopes and level.term not in skipped]
    moved = {level.term: _moved(row.record, level) for level in levels}
    intensities = {term: operations / nbytes for term, nbytes in moved.items() if nbytes}
    return Point(row, operations / time_of(row.record), intensities)
