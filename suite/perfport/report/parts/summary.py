"""The top of a report: what ran, what came of it, the best variant everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from itertools import groupby

from tabulate import tabulate

from ...measure.intervals import Verdict
from ...model.record import Status
from ...model.untrusted import line
from ...run.completeness import incomplete
from ...store.comparable import is_control, is_peer, leading
from ...store.ratios import Comparison, compare, time_of
from ...store.results import Run
from .failures import ORDER
from .ladder import Ladder, run_labels
from .machines import run_title
from .markdown import NONE, code, join, table, text
from .marks import ELSEWHERE, best_marks, marks, noted, notes
from .quantities import interval, percent, seconds, share, significant


def ratio(found: Comparison | None, digits: int = 3) -> str:
    """Return a speed-up with its interval and verdict; ``wall`` is named where it is not what ranks both sides."""
    if found is None:
        return NONE
    shown = interval(found.ratio, digits, found.ratio.confidence)
    return f"{shown} {found.verdict.value}{' (wall)' if found.mixed else ''}"


def title(runs: list[Run]) -> str:
    """Return the heading of the report."""
    names = []
    for run in runs:
        experiment = run.environment.get("experiment") or {}
        names.append(text(experiment.get("title") or experiment.get("name") or run.name))
    return f"# Performance report: {', '.join(dict.fromkeys(names)) or 'no runs'}"


def _glance(ladders: list[Ladder], first: Container[Ladder]) -> tuple[list[str], list[list[str]]]:
    """Return headers and one row for each workload and device: plain text, for a page and for a terminal.

    Of each problem the ladders in ``first`` stand for the others.
    """
    headers = [
        "workload", "device", "cases", "ladder", "setting", "best variant", "time", "of bound", "over first",
        "over peer",
    ]  # fmt: skip
    settings = short_settings(ladders)
    rows = []
    for (workload, site), same in groupby(
        sorted(ladders, key=lambda ladder: (ladder.workload, ladder.site)), key=lambda lad: (lad.workload, lad.site)
    ):
        group = list(same)
        main = max([ladder for ladder in group if ladder in first] or group, key=_length)
        setting = settings[main.heading]
        rows.append([workload, site, _outcomes(group), main.problem, setting, *_leading(main)])
    if len({row[1] for row in rows}) == 1:
        headers, rows = [headers[0], *headers[2:]], [[row[0], *row[2:]] for row in rows]
    return headers, rows


def _length(ladder: Ladder) -> tuple[int, int]:
    """How many rungs of a ladder have results, and how many variants."""
    rungs = {row.record.identity.rung for row in ladder.measured if row.record.identity.role == "rung"}
    return len(rungs), len(ladder.measured)


def _outcomes(ladders: list[Ladder]) -> str:
    """How many of the cases are ok, and how many are of no use or of little."""
    counts = Counter(row.record.status for ladder in ladders for row in ladder.rows)
    failed = sum(count for status, count in counts.items() if status.failed)
    parts = [f"{counts[Status.OK]}/{counts.total()} ok"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{counts[Status.CONTENDED]} contended"] if counts[Status.CONTENDED] else []
    return ", ".join(parts)


def _leading(ladder: Ladder) -> list[str]:
    """Return the best variant, its time and share, and its speed-up over the first rung and over the best peer."""
    best = ladder.best or leading(ladder.variants)
    if best is None:
        return ["none has a result", *[NONE] * 4]
    peer = ladder.best_peer or leading(ladder.peers)
    marked = best_marks(ladder) if best is ladder.best else marks(best)
    bound = best.record.problem_bound
    first = NONE if ladder.several else "is the first" if best is ladder.first_rung else _times(ladder.over_first(best))
    over_peer = ladder.peer_comparison or (compare(peer.record, best.record) if peer else None)
    against = _times(over_peer) + f" {line(peer.label, 18)}" if peer else NONE
    return [
        line(best.label, 28), seconds(time_of(best.record), 3) + marked,
        percent(bound.share.value) if bound else NONE, first, against,
    ]  # fmt: skip


def _times(comparison: Comparison | None) -> str:
    if comparison is None:
        return NONE
    unsure = " (ambiguous)" if comparison.verdict is Verdict.AMBIGUOUS else ""
    return f"{significant(comparison.ratio.value)} ×{unsure}"


def at_a_glance(ladders: list[Ladder], first: Container[Ladder]) -> str:
    """Return the first thing that a report says: one line for each workload and device; nothing without a case."""
    if not ladders:
        return ""
    headers, rows = _glance(ladders, first)
    names = ("workload", "device", "ladder", "best variant")
    cells = [
        [code(cell) if name in names else text(cell) for name, cell in zip(headers, row, strict=True)] for row in rows
    ]
    align = "".join("r" if name in ("time", "of bound") else "l" for name in headers)
    return noted([
        table(headers, cells, align),
        "Measured. Best variant of the problem with the longest ladder, at its headline size or else the largest "
        "setting that ran: its share of the problem bound, how many times faster than the first rung and than the best "
        "peer. Intervals, and all problems, are below.",
    ])  # fmt: skip


def in_terminal(ladders: list[Ladder], first: Container[Ladder]) -> str:
    """Return the same lines for a terminal."""
    headers, rows = _glance(ladders, first)
    align = ["right" if name in ("time", "of bound") else "left" for name in headers]
    cells = [list(map(line, row)) for row in rows]
    lines = tabulate(cells, headers, colalign=align, disable_numparse=True) if rows else ""
    return "\n".join(filter(None, [lines, notes(lines)]))


def _counts(run: Run) -> str:
    counts = Counter(record.status for record in run.records)
    loud = (Status.IMPOSSIBLE, Status.WRONG)
    parts = [
        f"**{counts[status]} {status.value}**" if status in loud else f"{counts[status]} {status.value}"
        for status in (Status.OK, Status.CONTENDED, *ORDER)
        if counts[status]
    ]
    return f"{len(run.records)} cases: {', '.join(parts)}" if parts else "no cases"


def overview(runs: list[Run]) -> str:
    """Return one paragraph on what ran where and how the cases ended."""
    blocks = []
    for run, label in zip(runs, run_labels(runs), strict=True):
        experiment = run.environment.get("experiment") or {}
        name = f" of experiment {code(experiment['name'])}" if experiment.get("name") else ""
        devices = sorted({device for record in run.records for device in record.identity.devices})
        workloads = sorted({record.identity.workload for record in run.records})
        on = f" on {', '.join(map(code, devices))}" if devices else ""
        what = f" {', '.join(map(code, workloads))} ran{on}." if workloads else ""
        started = text(run.environment.get("started", "at an unknown time"))
        lacks = incomplete(run)
        blocks += [
            f"Run {run_title(run, label)}{name}, started {started}.{what} {_counts(run)}.",
            f"> **Incomplete run:** {text(lacks, 600)}." if lacks else "",
        ]
    return join(blocks)


def alarms(ladders: list[Ladder]) -> str:
    """Return what a reader must know before any number: impossible times, wrong results."""
    notes = []
    above = [(ladder, row) for ladder in ladders for row in ladder.rows if row.record.status == Status.IMPOSSIBLE]
    if above:
        names = ", ".join(
            code(f"{lad.workload}/{lad.problem} {row.label}") + f" on {code(lad.site)}" for lad, row in above[:8]
        )
        more = f" and {len(above) - 8} more" if len(above) > 8 else ""
        notes.append(
            f"> **ERROR: {len(above)} impossible case(s), faster than the problem bound allows** ({names}{more}): the "
            "declared work, the clock or a ceiling is wrong, and with it perhaps other numbers of this report. "
            "Not ranked; see Failures."
        )
    wrong = sum(row.record.status == Status.WRONG for ladder in ladders for row in ladder.rows)
    if wrong:
        notes.append(
            f"> **{wrong} case(s) gave wrong results.** They are listed under Failures and enter no ranking or ratio."
        )
    return "\n>\n".join(notes)


def short_settings(ladders: list[Ladder]) -> dict[tuple[str, str, str, str], str]:
    """Return how each subject's parameters are named in tables: by preset where that is enough."""
    subjects = {ladder.heading: ladder for ladder in ladders}
    counts = Counter({(ladder.workload, ladder.problem, ladder.preset, ladder.setting) for ladder in ladders})
    presets = Counter(key[:3] for key in counts)
    return {
        subject: ladder.preset
        if ladder.preset and presets[(ladder.workload, ladder.problem, ladder.preset)] == 1
        else line(ladder.setting, 60)
        for subject, ladder in subjects.items()
    }


def best_tables(ladders: list[Ladder], peers: bool = True, off: Container[Ladder] = ()) -> str:
    """Return per device and problem the best variant with its share and speed-up, and how it does against peers.

    The setting of those in ``off`` is marked as not the headline size, and stands in full: a preset's name says less.
    """
    settings = short_settings(ladders)
    rows, rivals = [], []
    for ladder in ladders:
        own = [row.record for row in ladder.rows if not (is_peer(row) or is_control(row))]
        if all(record.status in NOT_HERE for record in own):
            continue  # a precision class that only peers or control arms have here: shown in its own table further down
        where = [
            code(f"{ladder.workload}/{ladder.problem}"),
            text(ladder.setting, 60) + ELSEWHERE if ladder in off else text(settings[ladder.heading]),
            code(ladder.site), text(ladder.precision),
        ]  # fmt: skip
        best = ladder.best
        if best is None:
            rows.append([*where, "none is ok", *[NONE] * 3])
            continue
        record = best.record
        metric = f"{significant(record.metric.value)} {text(record.metric.unit)}" if record.metric else NONE
        metric += best_marks(ladder)
        role = "" if record.identity.role == "rung" else f" ({record.identity.role})"
        first = "is the first rung" if best is ladder.first_rung else ratio(ladder.over_first(best))
        first = "see scaling" if ladder.several else first
        rows.append([*where, code(best.label, 40) + role, metric, share(record.problem_bound), first])
        if ladder.best_peer:
            compared = ladder.peer_comparison
            outcome = "no clock in common" if compared is None else _OUTCOME[compared.verdict]
            against = ratio(compared) + marks(ladder.best_peer) if compared else NONE
            rivals.append([*where, code(best.label, 40), code(ladder.best_peer.label, 40), against, outcome])
    headers = ["problem", "setting", "device", "precision", "best variant"]
    measured = [*headers, "metric", "share of problem bound", "speed-up over first rung"]
    beside = [*headers, "best peer", "speed-up over the peer", "beats it?"]
    blocks = ["**Best variant** of each problem and device (measured)", table(measured, rows, "lllllrrr")]
    if peers and rivals:
        blocks += ["**Beside the best peer** (measured)", table(beside, rivals, "llllllrl")]
    return noted(blocks)


NOT_HERE = (Status.UNSUPPORTED, Status.UNAVAILABLE)
_OUTCOME = {
    Verdict.FASTER: "yes",
    Verdict.SLOWER: "**no**",
    Verdict.SAME: "the same",
    Verdict.AMBIGUOUS: "cannot be told",
}
