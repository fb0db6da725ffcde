"""The view of `perfport diff`: a table for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...nightly.diff import Difference
from ...nightly.finding import ALARMS, Finding, Outcome
from ..parts.markdown import NONE, code, details, join, middle, table, text
from ..parts.quantities import interval, seconds
from ..parts.view import View
from .check import headline

#: Outcomes whose rows are folded away.
_CALM = (Outcome.SAME, Outcome.NO_RESULT)
#: Rows of a table that a comment has room for.
MOST = 100


def title(difference: Difference) -> str:
    """Return the verdict in one sentence, as plain text."""
    if difference.judgement is None:
        return f"Green: of {difference.same} cases nothing differs in the code"
    return headline(difference.judgement)


def view(difference: Difference) -> View:
    """Return the table: what is slower first, what is the same folded."""
    findings = difference.judgement.findings if difference.judgement else []
    loud = [found for found in findings if found.outcome not in _CALM]
    calm = [found for found in findings if found.outcome in _CALM]
    rest = f"{difference.same} more cases were not measured: of their code nothing differs."
    blocks = [
        f"## {text(title(difference), 2000)}",
        f"Base: {code(difference.base)}, head: {code(difference.head)}, measured in turn on one device in "
        f"{difference.seconds:.0f} s.",
        f"Only {difference.judgement.undecided}." if difference.judgement and difference.judgement.undecided else "",
        _table(loud),
        details(f"The same, or no result: {len(calm)}", _table(calm)) if calm else "",
        rest if difference.same and findings else "",
        "Ratio: how many times faster the head is, with its 95 % interval; below 1 it is slower (measured)."
        if findings
        else "",
    ]
    return View(title(difference), join(blocks), [_row(found) for found in findings])


def _table(findings: Sequence[Finding]) -> str:
    rows = [
        [
            code(middle(found.place.title, 90)), code(found.place.site), seconds(found.before), seconds(found.now),
            interval(found.ratio, 3) if found.ratio else NONE, _verdict(found),
        ]
        for found in findings[:MOST]
    ]  # fmt: skip
    shown = table(["case", "device", "base", "head", "ratio", "verdict"], rows, "llrrrl") if rows else ""
    left = len(findings) - MOST
    return shown + (f"\n\n{left} more are not listed." if left > 0 else "")


def _verdict(found: Finding) -> str:
    """Return the outcome, with its reason where it is no verdict on two times."""
    told = found.outcome in (*ALARMS[:3], Outcome.CANNOT_TELL, Outcome.NEW, Outcome.NO_RESULT)
    name = f"**{found.outcome.value}**" if found.outcome in ALARMS else text(found.outcome.value)
    return f"{name}: {text(found.why, 160)}" if told and found.why else name


def _row(found: Finding) -> dict[str, Any]:
    ratio = found.ratio
    return {
        "case": found.place.title, "device": found.place.site, "base": found.before, "head": found.now,
        "ratio": ratio.value if ratio else None, "low": ratio.low if ratio else None,
        "high": ratio.high if ratio else None, "outcome": found.outcome.value, "threshold": found.threshold,
        "rounds": found.again, "why": found.why,
    }  # fmt: skip
