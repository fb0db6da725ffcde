"""The ratio of the best of several records, chosen by other samples than those that the ratio is formed of.

The fastest of many equal variants was lucky in its samples: its ratio to anything, formed of the same samples, is too
good. So the samples are split into parts. What stands for "the best" in one part is chosen by all the others, and the
ratio is formed of what was so chosen, over all parts (cross-fitting: V. Chernozhukov et al., "Double/debiased machine
learning for treatment and structural parameters", The Econometrics Journal 21, 2018). Where every part chooses alike,
this is the ratio of the two records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..measure.intervals import Series
from ..model.record import Record
from .ratios import Clock, Comparison, common_clock, compare, side_by_side, time_of


def compare_best(bases: Sequence[Record], others: Sequence[Record]) -> Comparison | None:
    """Return how many times faster the best of ``others`` is than the best of ``bases``.

    Parts are the workers, where several measured every record: what a process was lucky with it keeps for all of its
    samples. Else they are an earlier and a later half.

    Parameters
    ----------
    bases, others : sequence of Record
        Ranked records of one subject on one site; at least one each.

    Returns
    -------
    Comparison or None
        ``None`` as of `compare`, of the fastest of each side.
    """
    fastest = [_fastest(side) for side in (bases, others)]
    whole = compare(*fastest)
    if whole is None or len(bases) == len(others) == 1:
        return whole
    sides = [[record for record in side if _by_round(record, whole.clock)] for side in (bases, others)]
    every = [record for side in sides for record in side]
    if any(record not in every for record in fastest):
        return whole
    parts = _parts(every)
    beside = all(side_by_side(every[0], record) for record in every)
    base, other = (
        _chosen(side, [parts[record.key] for record in side], whole.clock, None if beside else number)
        for number, side in enumerate(sides)
    )
    return Comparison.of(base, other, whole.clock, whole.mixed)


def _fastest(records: Sequence[Record]) -> Record:
    clock = common_clock(records)
    return min(records, key=lambda record: time_of(record, clock))


def _by_round(record: Record, clock: Clock) -> bool:
    """Whether each sample of a clock, and of the clock that ranks the record, belongs to a round."""
    timing = record.timing
    assert timing
    return all(len(getattr(timing, name)) == len(timing.rounds) for name in (clock, timing.rank))


def _parts(records: Sequence[Record]) -> dict[str, np.ndarray]:
    """Return the part of each sample of each record, by the record's key."""
    timings = {record.key: record.timing for record in records if record.timing}
    number = min(len(set(timing.workers)) for timing in timings.values())
    if number > 1:
        return {key: np.asarray(timing.workers) % number for key, timing in timings.items()}
    half = min(len(timing.rounds) for timing in timings.values()) // 2  # of rounds that all took part in
    return {key: (np.arange(len(timing.rounds)) >= half).astype(int) for key, timing in timings.items()}


def _chosen(records: Sequence[Record], parts: Sequence[np.ndarray], clock: Clock, alone: int | None) -> Series:
    """Return the samples, part by part, of the record that is the fastest by the samples of all other parts.

    Those of a side that is ``alone`` get rounds that the other side does not have.
    """
    choice = common_clock(records)
    seconds: dict[int, float] = {}
    workers: dict[int, int] = {}
    for part in range(int(max(each.max() for each in parts)) + 1):
        rest = [
            np.median(taken[own != part]) if (own != part).any() else np.inf
            for own, taken in ((own, _samples(record, choice)) for record, own in zip(records, parts, strict=True))
        ]
        best = int(np.argmin(rest))
        timing, held = records[best].timing, np.flatnonzero(parts[best] == part)
        assert timing
        values = _samples(records[best], clock)
        for index in held:
            number = timing.rounds[index] if alone is None else -1 - 2 * len(seconds) - alone
            seconds[number] = float(values[index])
            if timing.workers:
                workers[number] = timing.workers[index]
    return Series(seconds, workers)


def _samples(record: Record, clock: Clock | None) -> np.ndarray:
    assert record.timing
    return np.asarray(getattr(record.timing, clock or record.timing.rank), dtype=float)
