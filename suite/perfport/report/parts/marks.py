"""Marks: what a reader must know of a number, as a sign beside it and a note below the table."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.record import Status
from ...run.sources import Age
from ...store.ratios import time_of
from .ladder import Ladder, Row
from .markdown import join

ABOVE, CONTENDED, UNMET, CHANGED, FAILED, BESIDE, ELSEWHERE = " †", " ‡", " §", " ◊", " ¶", " ¤", " ○"
NOTES = {
    ABOVE: "† above the measured bound within its uncertainty: the ceilings were stale or the probes moved.",
    CONTENDED: "‡ contended: other load or throttling was seen on the device, or in how its clocks agree. Not ranked.",
    UNMET: "§ the noise target was not met within the time budget.",
    CHANGED: "◊ measured with code that has changed since (`perfport stale` says what).",
    FAILED: "¶ the same case failed in a later run; see what failed.",
    BESIDE: "¤ a variant that took less time was contended, and is not ranked.",
    ELSEWHERE: "○ not the headline size, at which there is no result here: the largest setting that ran.",
    "(wall)": "(wall): compared by wall time, because one side has no device events or reads back in its loop; by a "
    "variant's next result where the fastest has no wall time.",
}


def marks(row: Row) -> str:
    """Return the marks of a result, but for that of its bound, which stands at the share."""
    record = row.record
    symbols = CONTENDED if record.status == Status.CONTENDED else ""
    symbols += UNMET if record.timing and not record.timing.target_met else ""
    symbols += CHANGED if row.age is Age.STALE else ""
    return symbols + (FAILED if row.later else "")


def best_marks(ladder: Ladder) -> str:
    """Return the marks of a ladder's best variant: its own, and whether a contended one would be ahead of it."""
    best = ladder.best
    if best is None:
        return ""
    contended = [row.record for row in ladder.variants if row.record.status == Status.CONTENDED]
    ahead = any(record.timing and time_of(record) < time_of(best.record) for record in contended)
    return marks(best) + (BESIDE if ahead else "")


def notes(content: str) -> str:
    """Return the notes on the marks that some tables hold."""
    return "  \n".join(note for mark, note in NOTES.items() if mark in content)


def noted(blocks: Iterable[str]) -> str:
    """Return blocks of markdown with the notes that they need."""
    content = join(blocks)
    return join([content, notes(content)])
