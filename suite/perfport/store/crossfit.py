"""The ratio of the best of several records, chosen by other samples than those that the ratio is formed of.

Whoever takes the fastest of several forms its ratio here: ladders, portability, comparisons, claims, quotations.

The fastest of many equal variants was lucky in its samples: its ratio to anything, formed of the same samples, is too
good. So the samples are split into parts. What stands for "the best" in one part is chosen by all the others, and the
ratio is formed of what was so chosen, over all parts (cross-fitting: V. Chernozhukov et al., "Double/debiased machine
learning for treatment and structural parameters", The Econometrics Journal 21, 2018). Where every part chooses alike,
this is the ratio of the two records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..measure.intervals import Series, Verdict, speedup
from ..measure.repeats import workers_of
from ..model.record import Record
from .ratios import Clock, Comparison, common_clock, compare, side_by_side, time_of


def compare_best(bases: Sequence[Record], others: Sequence[Record]) -> Comparison | None:
    """Return how many times faster the best of ``others`` is than the best of ``bases``.

    Where the fastest of ``others`` has no clock in common with these, the fastest result of the same variant that has
    one stands for it: in a run where all have device events no wall times are taken.

    Parts are the workers, where several measured every record: what a process was lucky with it keeps for all of its
    samples. Else they are an earlier and a later half.

    Parameters
    ----------
    bases, others : sequence of Record
        At least one each. Where there are several, they are measured ones of one subject on one site.

    Returns
    -------
    Comparison or None
        ``None`` as of `compare`, of what stands for each side. Where samples of several records cannot be split, that
        of the fastest, which is ``ambiguous``.
    """
    if len(bases) == len(others) == 1:
        return compare(bases[0], others[0])
    best = [fastest_record(side) for side in (bases, others)]
    whole = compare(*best)
    if whole is None:
        variant = best[1].identity.variant
        timed = [each for each in others if each.identity.variant == variant and common_clock([*bases, each])]
        return compare_best(bases, timed) if timed and len(timed) < len(others) else None
    sides = [[record for record in side if _splits(record, whole.clock)] for side in (bases, others)]
    every = [record for side in sides for record in side]
    if not all(any(record is each for each in every) for record in best):
        return replace(whole, verdict=Verdict.AMBIGUOUS)
    parts = _parts(every)
    chosen = [
        _chosen(side, of_side)
        for side, of_side in zip(sides, (parts[: len(sides[0])], parts[len(sides[0]) :]), strict=True)
    ]
    taking = [record for side in chosen for record, _ in side]
    beside = all(side_by_side(*two) for two in itertools.pairwise(taking))
    apart = None if beside else itertools.count()
    base, other = (_joined(side, whole.clock, apart) for side in chosen)
    ratio = speedup(base, other)
    alike = all(record is side[0][0] for side in chosen for record, _ in side)
    return Comparison.of(ratio if alike else ratio.widened(_widening(every)), whole.clock, whole.mixed)


def fastest_record(records: Sequence[Record]) -> Record:
    """Return the fastest of measured records, on a clock that they have in common where there is one."""
    clock = common_clock(records)
    return min(records, key=lambda record: time_of(record, clock))


def _splits(record: Record, clock: Clock) -> bool:
    """Whether samples can be split: several rounds, to which those of a clock belong as those that rank do."""
    assert record.timing
    return len(getattr(record.timing, clock)) == len(record.timing.rounds) > 1


def _parts(records: Sequence[Record]) -> list[np.ndarray]:
    """Return the part of each sample of each record."""
    timings = [record.timing for record in records if record.timing]
    number = min(len(set(timing.workers)) for timing in timings)
    if number > 1:
        return [np.unique(timing.workers, return_inverse=True)[1] % number for timing in timings]
    half = min(len(timing.rounds) for timing in timings) // 2  # of rounds that all took part in
    return [(np.arange(len(timing.rounds)) >= half).astype(int) for timing in timings]


def _widening(records: Sequence[Record]) -> float:
    """Return by how much an interval over workers is too narrow where they do not agree on what is the fastest.

    What stands in each of W parts is chosen by W - 1 of the same workers, so that parts are correlated: as folds of a
    cross-validation, by 1 / W. The variance of their mean is 1 / W + 1 / (W - 1) of theirs (C. Nadeau and Y. Bengio,
    "Inference for the generalization error", Machine Learning 52, 2003). The intervals of halves have room enough.
    """
    workers = min(workers_of(record) for record in records)
    return math.sqrt(1 + workers / (workers - 1)) if workers > 1 else 1.0


def _chosen(records: Sequence[Record], parts: Sequence[np.ndarray]) -> list[tuple[Record, np.ndarray]]:
    """Return, part by part, the record that is the fastest by the samples of all others, and its samples' places."""
    clock = common_clock(records)
    chosen = []
    for part in np.unique(np.concatenate(parts)):
        rest = [np.median(_samples(record, clock)[own != part]) for record, own in zip(records, parts, strict=True)]
        best = int(np.argmin(rest))
        chosen.append((records[best], np.flatnonzero(parts[best] == part)))
    return chosen


def _joined(chosen: Sequence[tuple[Record, np.ndarray]], clock: Clock, apart: Iterator[int] | None) -> Series:
    """Return the samples that were chosen, by round, or by numbers that no other side has.

    Workers are told apart where several took every record.
    """
    seconds: dict[int, float] = {}
    workers: dict[int, int] = {}
    told_apart = all(record.timing and record.timing.workers for record, _ in chosen)
    for record, places in chosen:
        timing, values = record.timing, _samples(record, clock)
        assert timing
        for index in places:
            number = timing.rounds[index] if apart is None else next(apart)
            seconds[number] = float(values[index])
            if told_apart:
                workers[number] = timing.workers[index]
    return Series(seconds, workers)


def _samples(record: Record, clock: Clock | None) -> np.ndarray:
    assert record.timing
    return np.asarray(getattr(record.timing, clock or record.timing.rank), dtype=float)
