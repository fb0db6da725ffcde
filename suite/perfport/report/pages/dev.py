"""The verdict of one save on one screen: the answer of ``perfport dev``."""

from __future__ import annotations

from collections.abc import Iterator

from ...judge.explain import explain_record
from ...measure.intervals import Ratio, verdict
from ...model.names import setting
from ...model.record import Record, Status
from ...model.untrusted import indented, line, opening, printable
from ...untimed.bench import Report
from ...untimed.dev import Round
from ..parts.labels import label
from ..parts.quantities import interval, percent, share, time_interval
from .show import kernels

#: What fits a terminal: lines, and characters of each.
ROWS, WIDTH = 24, 100
#: Lines of a compiler or a traceback for each device.
MOST_LOG = 10
VERDICTS = {
    Status.OK: "RIGHT", Status.WRONG: "WRONG", Status.COMPILE_ERROR: "DOES NOT COMPILE", Status.TIMEOUT: "HANGS",
    Status.CRASHED: "CRASHES", Status.OUT_OF_MEMORY: "OUT OF MEMORY", Status.UNSUPPORTED: "not here",
    Status.UNAVAILABLE: "not installed",
}  # fmt: skip


def screen(done: Round) -> str:
    """Return a round in at most `ROWS` lines of at most `WIDTH` characters."""
    rows = [row for part in _parts(done) for row in part.split("\n")]
    if len(rows) > ROWS:
        rows = [*rows[: ROWS - 1], f"... {len(rows) - ROWS + 1} more lines"]
    return "\n".join(row if len(row) <= WIDTH else f"{row[: WIDTH - 1]}…" for row in map(_plain, rows))


def _plain(row: str) -> str:
    return printable(row).expandtabs(1).rstrip()


def _parts(done: Round) -> Iterator[str]:
    identity = done.identity
    size = setting(identity.preset, identity.parameters)
    yield f"{identity.workload}/{identity.problem}/{identity.variant}, {size}"
    saved = f"saved: {', '.join(done.changed)}" if done.changed else "as it is"
    yield f"round {done.number}, {saved}; {done.seconds:.1f} s to the verdict"
    for device, report in done.reports.items():
        yield from _device(device, report)


def _device(device: str, report: Report) -> Iterator[str]:
    told = VERDICTS.get(report.status, report.status.value)
    if report.status is Status.OK:
        sizes = f" at {report.sizes} sizes" if report.sizes else ": compiles (not run here)"
        yield f"{device:<22} {told}{sizes}"
    elif report.status in (Status.UNSUPPORTED, Status.UNAVAILABLE):
        yield f"{device:<22} {told}: {line(report.reason, WIDTH)}"
    else:
        yield f"{device:<22} {told}" + indented(*_folded(line(report.reason, 6 * WIDTH)), _log(report), limit=WIDTH - 4)
    if report.record:
        yield from _measured(report, report.record)


def _folded(text: str) -> Iterator[str]:
    """Yield a line in pieces that fit."""
    while text:
        at = len(text) if len(text) <= WIDTH - 4 else max(text.rfind(" ", 0, WIDTH - 4), 1)
        yield text[:at]
        text = text[at:].strip()


def _log(report: Report) -> str:
    """Return what a compiler says of each place, or the end of what a process left."""
    if report.status is Status.COMPILE_ERROR:
        return opening(report.log, MOST_LOG)
    return "\n".join(report.log.strip().splitlines()[-MOST_LOG:])


def _measured(report: Report, record: Record) -> Iterator[str]:
    assert record.timing
    summary = record.timing.summary[record.timing.rank]
    yield f"  time      {time_interval(record.timing.ranked)}, {record.timing.rank}, n = {summary.n}"
    if report.before:
        yield f"  before    {_compared(report.before, 'the version before this save')}"
    if report.rival:
        yield f"  best      {_compared(report.rival, f'{report.rival_name}, the best other variant')}"
    if bound := record.problem_bound:
        yield f"  bound     {share(bound)} of the problem bound ({label(bound.binding)})"
    found = explain_record(record)
    if found.terms:
        yield "  binds     " + ", ".join(f"{label(term.name)} {percent(term.share)}" for term in found.terms[:3])
    elif found.unknown:
        yield f"  binds     not known: {found.unknown[0]}"
    for row in kernels(record.resources, record.timing.kernels):
        yield f"  {row.replace('kernel        ', 'kernel    ')}"
    if report.disturbed:
        yield f"  contended: {report.disturbed}"


def _compared(ratio: Ratio, what: str) -> str:
    return f"{verdict(ratio).value}: {interval(ratio, confidence=ratio.confidence)} × as fast as {what}"
