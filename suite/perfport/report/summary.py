"""The top of a report: what ran, what came of it, the best variant everywhere."""

from __future__ import annotations

from collections import Counter

from ..comparison import Comparison
from ..completeness import incomplete
from ..record import Status
from ..results import Run
from ..statistics import Verdict
from .failures import ORDER
from .ladder import Ladder, run_labels
from .machines import run_title
from .markdown import NONE, code, join, line, table, text
from .marks import best_marks, marks, noted
from .quantities import interval, share, significant


def ratio(found: Comparison | None, digits: int = 3) -> str:
    """Return a speed-up with its interval and verdict; ``wall`` is named where it is not what ranks both sides."""
    if found is None:
        return NONE
    return f"{interval(found.ratio, digits)} {found.verdict.value}{' (wall)' if found.mixed else ''}"


def title(runs: list[Run]) -> str:
    """Return the heading of the report."""
    names = []
    for run in runs:
        experiment = run.environment.get("experiment") or {}
        names.append(text(experiment.get("title") or experiment.get("name") or run.name))
    return f"# Performance report: {', '.join(dict.fromkeys(names)) or 'no runs'}"


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


def alarms(found: list[Ladder]) -> str:
    """Return what a reader must know before any number: impossible times, wrong results."""
    notes = []
    above = [(ladder, row) for ladder in found for row in ladder.rows if row.record.status == Status.IMPOSSIBLE]
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
    wrong = sum(row.record.status == Status.WRONG for ladder in found for row in ladder.rows)
    if wrong:
        notes.append(
            f"> **{wrong} case(s) gave wrong results.** They are listed under Failures and enter no ranking or ratio."
        )
    return "\n>\n".join(notes)


def short_settings(found: list[Ladder]) -> dict[tuple[str, str, str, str], str]:
    """Return how each subject's parameters are named in tables: by preset where that is enough."""
    subjects = {ladder.subject: ladder for ladder in found}
    counts = Counter({(ladder.workload, ladder.problem, ladder.preset, ladder.setting) for ladder in found})
    presets = Counter(key[:3] for key in counts)
    return {
        subject: ladder.preset
        if ladder.preset and presets[(ladder.workload, ladder.problem, ladder.preset)] == 1
        else line(ladder.setting, 60)
        for subject, ladder in subjects.items()
    }


def best_tables(found: list[Ladder], peers: bool = True) -> str:
    """Return per device and problem the best variant with its share and speed-up, and how it does against peers."""
    settings = short_settings(found)
    rows, rivals = [], []
    for ladder in found:
        own = [row.record for row in ladder.rows if row.record.identity.role != "peer"]
        if all(record.status in NOT_HERE for record in own):
            continue  # a precision class that only peers have here: shown in its own table further down
        where = [
            code(f"{ladder.workload}/{ladder.problem}"), text(settings[ladder.subject]), code(ladder.site),
            text(ladder.precision),
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
