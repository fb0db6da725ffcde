"""The view of `perfport check`: a summary for a pull request or a job's page, and rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from ...nightly.finding import Colour, Finding, Judgement, Outcome
from ...nightly.significance import LEAST_CASES
from ..parts.markdown import NONE, code, details, join, middle, table, text
from ..parts.quantities import interval, seconds
from ..parts.view import View

_MEANING = {
    Outcome.WRONG: "the result is wrong or impossible",
    Outcome.VANISHED: "measured before, missing now",
    Outcome.FAILED: "measured before, fails now",
    Outcome.SLOWER: "slower by more than its threshold; chance is excluded",
    Outcome.SUSPECTED: "slower by more than its threshold, but chance is not excluded",
    Outcome.FASTER: "faster by more than its threshold; chance is excluded",
    Outcome.SAME: "the whole interval is within the threshold",
    Outcome.CANNOT_TELL: "too noisy or too few measurements for a verdict",
    Outcome.NEW: "nothing to compare with yet",
    Outcome.CHANGED: "inputs, default tunables or chip changed: other work, not compared",
    Outcome.ACCEPTED: "its new level is accepted, and has too few nights to hold it to",
    Outcome.NO_RESULT: "unsupported, unavailable, failed before too, or no longer in the experiment",
}
#: Different events that a headline names; of more, their number.
MOST_EVENTS = 3
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
        f"# {text(headline(judgement), 2000)}",
        _inconclusive(judgement),
        f"{', '.join(filter(None, where))}; compared with {text(judgement.against)}.",
        _machine(judgement),
        _one_sided(judgement.one_sided),
        _left_out(judgement.left_out),
        table(["outcome", "cases", "meaning"], listed, "lrl"),
    ]
    red = [found for found in judgement.findings if found.colour is Colour.RED]
    yellow = [found for found in judgement.findings if found.colour is Colour.YELLOW]
    told = [found for found in judgement.of(Outcome.SLOWER, Outcome.SUSPECTED) if found.colour is Colour.GREEN]
    for title, found, folded in (
        ("Alarms", red, False),
        ("Yellow: suspected, or slower since what the project did not change", yellow, False),
        ("Slower or suspected, and no alarm by the experiment", told, False),
        ("Faster", judgement.of(Outcome.FASTER), False),
        ("Other work: new series", judgement.of(Outcome.CHANGED), False),
        ("No verdict", judgement.of(Outcome.CANNOT_TELL), True),
        ("New, accepted, without result, or removed",
         judgement.of(Outcome.NEW, Outcome.ACCEPTED, Outcome.NO_RESULT), True),
        ("Same", judgement.of(Outcome.SAME), True),
    ):  # fmt: skip
        if found:
            body = _cases(found)
            blocks.append(details(f"{title}: {len(found)}", body) if folded else f"## {title}\n\n{body}")
    note = (
        "Ratio: how many times faster the case is now, apart from its device's common change, with its 95 % interval; "
        "below 1 it is slower. Times are "
        "measured; false discoveries are controlled over all cases (docs/nightly.md)."
    )
    return View(headline(judgement), join([*blocks, note]), [_row(found) for found in judgement.findings])


def headline(judgement: Judgement) -> str:
    """Return the verdict on the run in one sentence, as plain text."""
    red, yellow = (_counted(judgement, colour) for colour in (Colour.RED, Colour.YELLOW))
    total = len(judgement.findings)
    if red:
        return f"Red: {', '.join(red)}, of {total} cases" + (f"; besides {', '.join(yellow)}" if yellow else "")
    if yellow:
        return f"Yellow: {', '.join(yellow)}, of {total} cases"
    if judgement.undecided:
        return f"Yellow: no regression found, but only {judgement.undecided}"
    judged = len(judgement.of(Outcome.SAME, Outcome.FASTER))
    accepted = len(judgement.of(Outcome.ACCEPTED))
    beside = f", {accepted} at a level that is accepted" if accepted else ""
    return f"Green: no regression found; {judged} of {total} cases are the same or faster{beside}"


def _counted(judgement: Judgement, colour: Colour) -> list[str]:
    """Return how many findings of a colour there are of each kind; of slower ones, by what changed."""
    verbs = {Outcome.FAILED: "newly failing", Outcome.SUSPECTED: "suspected and not cleared"}
    counts: Counter[str] = Counter()
    order = list(Outcome)
    for found in sorted(judgement.findings, key=lambda each: order.index(each.outcome)):
        if found.colour is colour:
            since = ", ".join(map(str, found.events)) if found.outcome is Outcome.SLOWER else ""
            counts[verbs.get(found.outcome, found.outcome.value) + (f" since {since}" if since else "")] += 1
    return [f"{number} {what}" for what, number in _shortened(counts).items()]


def _shortened(counts: Counter[str]) -> Counter[str]:
    """Return counts in which more than `MOST_EVENTS` different events are told by their number."""
    since = [what for what in counts if " since " in what]
    if len(since) <= MOST_EVENTS:
        return counts
    short: Counter[str] = Counter()
    for what, number in counts.items():
        short[f"slower since {len(since)} different events" if what in since else what] += number
    return short


def _inconclusive(judgement: Judgement) -> str:
    if not judgement.undecided or headline(judgement).endswith(judgement.undecided):
        return ""
    return f"Only {judgement.undecided}."


def _machine(judgement: Judgement) -> str:
    told = [
        f"On {code(site)} all cases together take {100 * math.expm1(shift):+.1f} % time: a change of the machine, "
        "which is left out of the ratios and of every verdict."
        for site, shift in judgement.shifts.items()
        if shift
    ]
    for site in dict.fromkeys(found.place.site for found in judgement.findings):
        compared = [(found, found.ratio) for found in judgement.findings if found.ratio and found.place.site == site]
        if judgement.shifts.get(site) or len(compared) < LEAST_CASES:
            continue
        middle_ratio = median(ratio.value for _, ratio in compared)
        changed = 100 * (1 / middle_ratio - 1)
        told.append(f"On {code(site)} the median of {len(compared)} cases takes {changed:+.1f} % time.")
        if abs(math.log(middle_ratio)) > math.log(1.02):
            told.append(_common(found for found, _ in compared))
    return " ".join(told)


def _common(findings: Iterable[Finding]) -> str:
    """Say what cases that changed together have in common; that it is the machine, only where no source changed."""
    found = list(findings)
    changes = Counter(change for each in found for change in each.events)
    if shared := [f"{text(str(change), 200)} ({number} cases)" for change, number in changes.most_common(3)]:
        return f"**What changed since: {', '.join(shared)}.**"
    return "**So large a change of all cases together is more likely the machine than the code.**"


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
        "outcome": found.outcome.value, "colour": found.colour.value,
        "case": found.place.title, "device": found.place.site,
        "seconds before": found.before, "seconds": found.now, "ratio": ratio.value if ratio else None,
        "low": ratio.low if ratio else None, "high": ratio.high if ratio else None, "threshold": found.threshold,
        "p slower": found.p_slower if ratio else None, "measured again": found.again,
        "since": ", ".join(map(str, found.events)), "why": found.why,
        "record": found.record.key if found.record else None,
    }  # fmt: skip
