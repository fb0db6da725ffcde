"""The view of `perfport check`: a summary for a pull request or a job's page, and rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from ...nightly.finding import ALARMS, Finding, Judgement, Outcome
from ...nightly.significance import LEAST_CASES
from ..parts.markdown import NONE, code, details, join, middle, table, text
from ..parts.quantities import interval, seconds
from ..parts.view import View

_MEANING = {
    Outcome.WRONG: "the result is wrong or impossible",
    Outcome.VANISHED: "measured before, missing now",
    Outcome.FAILED: "measured before, fails now",
    Outcome.SLOWER: "slower by more than its threshold; chance is excluded",
    Outcome.FASTER: "faster by more than its threshold; chance is excluded",
    Outcome.SAME: "the whole interval is within the threshold",
    Outcome.CANNOT_TELL: "too noisy or too few measurements for a verdict",
    Outcome.NEW: "nothing to compare with yet",
    Outcome.CHANGED: "driver, source, settings or software changed: a new series begins, no alarm",
    Outcome.NO_RESULT: "unsupported, unavailable, failed before too, or no longer in the experiment",
}
#: Cases of one outcome that a summary lists at most.
MOST = 200


def view(judgement: Judgement) -> View:
    """Return the summary: one sentence first, alarms, changes, everything else folded."""
    counts = Counter(finding.outcome for finding in judgement.findings)
    listed = [[text(o.value), str(counts[o]), text(_MEANING[o])] for o in Outcome if counts[o]]
    environment = judgement.run.environment
    commit = (environment.get("commit") or {}).get("hash")
    where = [f"Run {code(judgement.run.name)}", f"commit {code(commit[:12])}" if commit else ""]
    where += [f"started {text(environment['started'])}"] if environment.get("started") else []
    blocks = [
        f"# {headline(judgement)}",
        f"{', '.join(filter(None, where))}; compared with {text(judgement.against)}.",
        _machine(judgement),
        _one_sided(judgement.one_sided),
        _left_out(judgement.left_out),
        table(["outcome", "cases", "meaning"], listed, "lrl"),
    ]
    for title, outcomes, folded in (
        ("Alarms", ALARMS, False),
        ("Changes: new series, no alarm", (Outcome.CHANGED,), False),
        ("Faster", (Outcome.FASTER,), False),
        ("No verdict", (Outcome.CANNOT_TELL,), True),
        ("New, without result, or removed", (Outcome.NEW, Outcome.NO_RESULT), True),
        ("Same", (Outcome.SAME,), True),
    ):
        if found := judgement.of(*outcomes):
            body = _cases(found)
            blocks.append(details(f"{title}: {len(found)}", body) if folded else f"## {title}\n\n{body}")
    note = (
        "Ratio: how many times faster the case is now, apart from its device's common change, with its 95 % interval; "
        "below 1 it is slower. Times are "
        "measured; false discoveries are controlled over all cases (docs/nightly.md)."
    )
    return View(headline(judgement), join([*blocks, note]), [_row(found) for found in judgement.findings])


def headline(judgement: Judgement) -> str:
    """Return the verdict on the run in one sentence."""
    parts = []
    for outcome in ALARMS:
        if found := judgement.of(outcome):
            verb = {Outcome.WRONG: "wrong", Outcome.VANISHED: "vanished", Outcome.FAILED: "newly failing"}
            parts.append(f"{len(found)} {verb.get(outcome, 'slower')}")
    total = len(judgement.findings)
    if parts:
        return f"Red: {', '.join(parts)}, of {total} cases"
    judged = len(judgement.of(Outcome.SAME, Outcome.FASTER))
    return f"Green: no regression found; {judged} of {total} cases are the same or faster"


def _machine(judgement: Judgement) -> str:
    told = [
        f"On {code(site)} all cases together take {100 * math.expm1(shift):+.1f} % time: a change of the machine, "
        "which is left out of the ratios and of every verdict."
        for site, shift in judgement.shifts.items()
        if shift
    ]
    for site in dict.fromkeys(found.place.site for found in judgement.findings):
        if judgement.shifts.get(site):
            continue
        ratios = [found.ratio.value for found in judgement.findings if found.ratio and found.place.site == site]
        if len(ratios) < LEAST_CASES:
            continue
        middle_ratio = median(ratios)
        told.append(
            f"On {code(site)} the median of {len(ratios)} cases takes {100 * (1 / middle_ratio - 1):+.1f} % time."
        )
        if abs(math.log(middle_ratio)) > math.log(1.02):
            told.append("**So large a change of all cases together is more likely the machine than the code.**")
    return " ".join(told)


def _one_sided(why: str) -> str:
    return (
        f"Suspects were measured again by the run's code alone, and not in turn with the base's: {text(why)}."
        if why
        else ""
    )


def _left_out(files: Sequence[str]) -> str:
    return (
        "\n".join(["Files of the history that were left out:", "", *(f"- {text(one)}" for one in files)])
        if files
        else ""
    )


def _cases(findings: Sequence[Finding]) -> str:
    rows = [
        [
            text(found.outcome.value), code(middle(found.place.title, 90)), code(found.place.site),
            seconds(found.before), seconds(found.now), interval(found.ratio, 3) if found.ratio else NONE,
            text(found.why, 240),
        ]
        for found in findings[:MOST]
    ]  # fmt: skip
    shown = table(["outcome", "case", "device", "before", "now", "ratio", "why"], rows, "lllrrrl")
    left = len(findings) - MOST
    return shown + (f"\n\n{left} more are not listed." if left > 0 else "")


def _row(found: Finding) -> dict[str, Any]:
    ratio = found.ratio
    return {
        "outcome": found.outcome.value, "case": found.place.title, "device": found.place.site,
        "seconds before": found.before, "seconds": found.now, "ratio": ratio.value if ratio else None,
        "low": ratio.low if ratio else None, "high": ratio.high if ratio else None, "threshold": found.threshold,
        "p slower": found.p_slower if ratio else None, "measured again": found.again, "why": found.why,
        "record": found.record.key if found.record else None,
    }  # fmt: skip
