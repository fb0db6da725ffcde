"""Samples of several fresh workers in one record.

Samples of one process share its memory layout, its clocks and its luck: between processes times differ by more than
within one. Whoever compares runs needs that difference, so a case is measured by several workers and each sample knows
its own.
"""

from __future__ import annotations

from ..model.record import Record, Summary, Timing
from .intervals import block_medians, summarise


def workers_of(record: Record | None) -> int:
    """Return how many workers measured a case."""
    if record is None or record.timing is None:
        return 0
    return len(set(record.timing.workers)) or 1


def worker_medians(record: Record) -> list[float]:
    """Return the median that each worker measured, in seconds of the clock that ranks the record."""
    assert record.timing
    samples = getattr(record.timing, record.timing.rank)
    return block_medians(samples, record.timing.workers)


def joined(earlier: Timing, later: Timing) -> Timing:
    """Return the timing of one more worker joined to what was measured before; its rounds are other numbers."""
    before = earlier.workers or [0] * len(earlier.rounds)
    number = max(before, default=-1) + 1
    workers = [*before, *[number] * len(later.rounds)]
    held = {clock: [*getattr(earlier, clock), *getattr(later, clock)] for clock in ("span", "busy", "wall")}
    summary: dict[str, Summary] = {
        # Busy time may have other samples than the clocks that rank: it is not split by worker.
        clock: summarise(samples, workers if len(samples) == len(workers) else ())
        for clock, samples in held.items()
        if samples
    }
    apart = {}
    for name, instance in later.instances.items():
        samples = [*earlier.instances[name].samples, *instance.samples]
        apart[name] = {"samples": samples, "summary": summarise(samples, workers).model_dump()}
    return Timing.model_validate({
        **later.model_dump(), **held, "summary": {clock: made.model_dump() for clock, made in summary.items()},
        "rounds": [*earlier.rounds, *later.rounds], "workers": workers,
        "instances": apart, "target_met": earlier.target_met and later.target_met,
    })  # fmt: skip
