"""Cases without a result: what happened, the log, and how to run each again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ...measure.roofline import IMPOSSIBLE_SHARE
from ...model.record import Record, Status
from ...store.results import Run
from .ladder import Ladder, Row
from .markdown import code, details, excerpt, fence, join, table, text
from .quantities import percent, significant

#: Worst first: a time that cannot be puts the suite itself in doubt, and a wrong result is worse than none.
ORDER = (
    Status.IMPOSSIBLE, Status.WRONG, Status.CRASHED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.COMPILE_ERROR,
    Status.UNSUPPORTED, Status.UNAVAILABLE,
)  # fmt: skip


IMPOSSIBLE = (
    "> **ERROR: faster than the problem bound allows**, the whole interval of the share above "
    f"{percent(IMPOSSIBLE_SHARE)}. The declared work, the clock or a ceiling is wrong, and so is every figure that "
    "follows from it. Do not quote these numbers."
)


def reason(record: Record) -> str:
    """Return in one line why a case has no result."""
    if record.failure and record.failure.reason.strip():
        return record.failure.reason
    if record.verification and not record.verification.passed:
        failed = [
            f"{name}: relative L2 {significant(out.relative_l2, 2)}, max abs {significant(out.max_abs, 2)}"
            + (f" ({out.detail})" if out.detail else "")
            for name, out in record.verification.outputs.items()
            if not out.passed
        ]
        return "verification failed: " + "; ".join(failed)
    return "no reason recorded"


def rerun(record: Record, run: Run) -> str:
    """Return the command that runs one case again."""
    return f"perfport show {shlex.quote(record.key)} --rerun --results {shlex.quote(str(run.folder))}"


def failures_section(ladders: list[Ladder]) -> str:
    """Return every case that is neither ``ok`` nor ``contended``, worst status first."""
    blocks = []
    for status in ORDER:
        cases = [(ladder, row) for ladder in ladders for row in ladder.rows if row.record.status == status]
        if cases:
            blocks.append(f"### {status.value} ({len(cases)})")
            if status == Status.IMPOSSIBLE:
                blocks.append(IMPOSSIBLE)
            blocks.append("\n".join(_case(ladder, row) for ladder, row in cases))
    return join(blocks) or "None: every case has a result."


def _case(ladder: Ladder, row: Row) -> str:
    record = row.record
    where = f"{code(ladder.site)}, {text(ladder.setting)}, {text(ladder.precision)}"
    name = f"{ladder.workload}/{ladder.problem} {row.label}"
    rows = [f"- **{code(name)}** on {where}: {text(reason(record))}  "]
    rows.append(f"  run again: {code(rerun(record, ladder.run), 2000)}")
    if record.failure and record.failure.log.strip():
        block = details("log", fence(excerpt(record.failure.log)))
        rows += ["", *("  " + inner if inner else "" for inner in block.splitlines()), ""]
    return "\n".join(rows)


def failures_table(records: Iterable[Record]) -> str:
    """Return how cases without a result ended, worst first: by status and reason, with how many and which."""
    groups: dict[tuple[int, str], list[str]] = {}
    for record in records:
        if record.status in ORDER:
            name = f"{record.identity.workload}/{record.identity.problem} {record.identity.variant}"
            groups.setdefault((ORDER.index(record.status), reason(record)), []).append(name)
    if not groups:
        return "Nothing: every case has a result."
    listed = []
    for (rank, why), cases in sorted(groups.items()):
        names = list(dict.fromkeys(cases))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        status = ORDER[rank]
        loud = status in (Status.IMPOSSIBLE, Status.WRONG)
        which = ", ".join(map(code, names[:3])) + more
        listed.append([f"**{status.value}**" if loud else status.value, str(len(cases)), text(why, 160), which])
    return table(["status", "cases", "reason", "which"], listed, "lrll")
