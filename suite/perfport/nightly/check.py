"""Regressions: a run judged case by case against another run, or against the nights of a history.

docs/nightly.md describes the statistics. In short: logarithms of times; the difference between fresh workers, or
between nights, is the noise; a case is slower if its time has grown by more than its threshold and a test, whose false
discoveries are controlled over all cases of the run, excludes chance; what all cases of a device have in common is the
machine, and is said once; what looks slower is measured again before it counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..machine import discovery
from ..measure.repeats import worker_medians
from ..model.errors import InfrastructureError, PerfportError
from ..model.names import seeds
from ..model.record import Identity, Record, Status
from ..run.experiment import Experiment, load
from ..store.ratios import is_measured
from ..store.results import EXPERIMENT, Run
from .base import Base, Before
from .finding import Finding, Judgement, Outcome
from .inturn import Turns, measure_in_turn
from .inturn import stored as stored_turns
from .levels import LEAST_NIGHTS
from .night import night
from .place import Place, series_key
from .remeasure import CONTROLS, WORKERS, measure_again, stored
from .significance import LEAST_CASES
from .trials import PairedTrial, Trial, freedom_of, settle

LEAST_WORKERS = 3


def check_run(
    run: Run, base: Base, *, remeasure: bool = False, workloads: Sequence[str] = (), command: Sequence[str] = ()
) -> Judgement:
    """Judge a run, with what was measured again of it before; on demand measure what looks slower again, now.

    That is done in turn with the base's code, where that is what differs and it can be had; else the base stands as it
    is stored, and the judgement says why.

    Parameters
    ----------
    run : Run
    base : AgainstRun or AgainstNights
    remeasure : bool
        Whether suspected cases are measured again.
    workloads : sequence of str
        Further workload folders.
    command : sequence of str
        The command line, for the environment file of what is measured.

    Raises
    ------
    InfrastructureError
        If a case can no longer be measured as it was.
    """
    again = stored(run)
    judgement = judge(run, base, again, stored_turns(run))
    if not remeasure or not (wanted := suspects(judgement, WORKERS)):
        return judgement
    here = discovery.discover()
    rest: list[Record] = []
    reasons = []
    for code in base.codes(judgement.findings, wanted, here):
        try:
            if not code.commit:
                raise InfrastructureError(code.why)
            in_turn = [*code.records, *controls(judgement, code.records)]
            measure_in_turn(run, code.commit, in_turn, here, workloads)
        except PerfportError as error:
            rest += code.records
            reasons.append(str(error))
    if rest:
        again = measure_again(run, [*rest, *controls(judgement, rest)], here, list(workloads), list(command))
    return replace(
        judge(run, base, again, stored_turns(run)), one_sided="; ".join(dict.fromkeys(filter(None, reasons)))
    )


def judge(run: Run, base: Base, again: Mapping[str, Record] | None = None, turns: Turns | None = None) -> Judgement:
    """Judge every case of a run.

    Parameters
    ----------
    run : Run
    base : AgainstRun or AgainstNights
    again : mapping
        Records of suspected cases that were measured again, by key; their workers count beside the first ones.
    turns : Turns
        Suspected cases that were measured in turn with the base's code; that alone decides what the source does.
    """
    experiment = load(run.folder / EXPERIMENT)
    now = night(run)
    records = {series_key(run, record): record for record in run.records}
    again, turns = again or {}, turns or Turns()
    findings, trials = [], []
    for row, series in enumerate(now.series):
        first = records[series]
        held = experiment.checked(first.identity)
        finding = Finding(series, Outcome.CANNOT_TELL, first, threshold=held.threshold, colours=held.events)
        findings.append(finding)
        before = base.before(now, row, finding.threshold)
        finding.commit = before.commit if before else ""
        in_turn = turns.now(finding.commit, first.key)
        measurements = [first, *([again[first.key]] if first.key in again else []), *in_turn]
        if _has_result(finding, measurements, before) and _is_comparable(finding, measurements, before, base.what):
            assert before
            logs = [_logs([record]) for record in measurements]
            level = base.steps(now, row, float(np.mean(logs[0])), finding.threshold)
            paired = _paired(finding, before, turns)
            trials += paired or _trials(finding, logs, _told(before, turns, first.key), level)
    shifts = settle(trials)
    findings += _missing(findings, base, experiment)
    order = list(Outcome)
    findings.sort(key=lambda each: (order.index(each.outcome), each.ratio.value if each.ratio else 1, each.series))
    return Judgement(
        run, base.what, findings, any(found.again for found in findings), base.left_out, shifts,
        min_judged=experiment.check.min_judged,
    )  # fmt: skip


def _has_result(finding: Finding, measurements: Sequence[Record], before: Before | None) -> bool:
    """Whether a case was measured, the second time too; the finding says what became of it otherwise."""
    for record in measurements:
        if record.status in (Status.WRONG, Status.IMPOSSIBLE):
            finding.outcome, finding.why = Outcome.WRONG, _reason(record)
            return False
    for record in measurements:
        if not is_measured(record):
            newly = (before is None and record.status.failed) or (before is not None and before.measured)
            finding.outcome = Outcome.FAILED if newly else Outcome.NO_RESULT
            finding.why = _reason(record) + ("" if newly or before is None else " (before, too)")
            return False
    return True


def _is_comparable(finding: Finding, measurements: Sequence[Record], before: Before | None, against: str) -> bool:
    """Whether there is something to compare a measured case with; the finding says why otherwise."""
    finding.again = sum(len(worker_medians(record)) for record in measurements[1:])
    finding.now = math.exp(float(np.mean(_logs(measurements))))
    if before is None:
        finding.outcome, finding.why = Outcome.NEW, f"not in {against}"
        return False
    finding.events = before.events
    if not before.measured:
        finding.outcome, finding.why = Outcome.NEW, f"no result in {before.what}"
        return False
    for record in measurements:
        if record.status is Status.CONTENDED:
            finding.disturbed, finding.why = True, f"contended: {record.failure.reason if record.failure else ''}"
            return False
    return True


def _logs(measurements: Sequence[Record]) -> list[float]:
    return [math.log(median) for record in measurements for median in worker_medians(record)]


def _trials(finding: Finding, logs: Sequence[list[float]], before: Before, level: Before | None) -> list[Trial]:
    """Return the comparison with the base, and that with the level before a change point, where there is enough.

    ``logs`` are those of the run's workers, and of what was measured again.
    """
    finding.disturbed = bool(before.doubt)
    finding.why = before.doubt or _too_little(before, sum(map(len, logs)))
    if finding.why and before.accepted:
        finding.outcome = Outcome.ACCEPTED
    first, again = logs[0], [value for each in logs[1:] for value in each]
    trials = [] if finding.why else [Trial(finding, before, first, again)]
    if level and len(level.logs) >= LEAST_NIGHTS:
        finding.outcome, finding.why = Outcome.CANNOT_TELL, ""
        of_level = replace(finding, events=()) if trials else finding
        trials.append(Trial(of_level, level, first, again, change_point=True))
    return trials


def _paired(finding: Finding, before: Before, turns: Turns) -> list[Trial]:
    """Return the comparison of what was measured in turn; none where too few rounds gave a result on both sides.

    It says what the source does. What else changed since nights is held to their stored times, beside it.
    """
    assert finding.record
    pairs = turns.pairs(before.commit, finding.record.key)
    if len(pairs) < LEAST_WORKERS:
        return []
    base, now = (_logs(side) for side in zip(*pairs, strict=True))
    what = f"its code (commit {before.commit[:12]}), {len(pairs)} times in turn"
    others = [change for change in before.events if change.kind != "source"] if before.nights else []
    source = [change for change in before.events if change not in others]
    finding.events = source
    trials: list[Trial] = [PairedTrial(finding, Before(f"{before.what} by {what}", base, events=source), now)]
    if others and not _too_little(before, len(now)):
        beside = replace(finding, events=others)
        trials.append(Trial(beside, replace(before, events=others), _logs([finding.record])))
    return trials


def _told(before: Before, turns: Turns, key: str) -> Before:
    """Return a base as it is stored; where its code gave too few rounds in turn, it says so."""
    if not (rounds := turns.of(before.commit, key)):
        return before
    failed = next((each.base for each in rounds if each.base and each.base.status is not Status.OK), None)
    why = f": {_reason(failed)}" if failed else ""
    number = len(turns.pairs(before.commit, key))
    return replace(before, what=f"{before.what} as stored ({number} rounds in turn with its code{why})")


def _too_little(before: Before, now: int) -> str:
    if before.nights:
        few = not before.logs or freedom_of(before) < LEAST_NIGHTS - 1
        return f"{before.what} of this series; {LEAST_NIGHTS} are needed" if few else ""
    workers = min(len(before.logs), now)
    if workers >= LEAST_WORKERS:
        return ""
    return f"measured by {workers} fresh workers; {LEAST_WORKERS} on each side are needed (workers: in the experiment)"


def _missing(findings: Sequence[Finding], base: Base, experiment: Experiment) -> list[Finding]:
    """Return what the base has and the run has not."""
    have = {finding.series for finding in findings}
    redrawn = {finding.place.drawn: finding for finding in findings}  # whatever became of it
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.outcome is not Outcome.NO_RESULT:
            alike.setdefault(finding.place.loose, []).append(finding)
    lost = []
    for series, preset in base.expected().items():
        if series in have:
            continue
        place = Place.of(series)
        if successor := redrawn.get(place.drawn):
            if successor.outcome is Outcome.NEW:
                before = seeds(place.inputs) if place.inputs else "a seed that nobody recorded"
                successor.outcome = Outcome.CHANGED
                successor.why = f"inputs of {seeds(successor.place.inputs)}, before of {before}: not compared"
        elif others := [each for each in alike.get(place.loose, ()) if not base.together(series, each.series)]:
            for successor in others:  # the same case by another default, or on another chip, since some nights perhaps
                if successor.outcome is Outcome.NEW:
                    successor.outcome, successor.why = Outcome.CHANGED, f"was {place.title} on {place.site}"
        elif experiment.study(_identity(place, preset)) is None:
            lost.append(Finding(series, Outcome.NO_RESULT, why="no longer in the experiment"))
        else:
            lost.append(Finding(series, Outcome.VANISHED, why=f"no such case in this run; it ran on {place.site}"))
    return lost


def _identity(place: Place, preset: str) -> Identity:
    return Identity(
        workload=place.workload, problem=place.problem, preset=preset or None, parameters=place.parameters,
        variant=place.variant, tunables=place.tunables, devices=place.devices, backend=place.backend,
        profile=place.profile, precision=place.precision, inputs=place.inputs,
    )  # fmt: skip


def _reason(record: Record) -> str:
    reason = record.failure.reason.splitlines()[0] if record.failure and record.failure.reason else "no reason recorded"
    return f"{record.status.value}: {reason}"


def suspects(judgement: Judgement, workers: int) -> list[Record]:
    """Return the records that are worth measuring again: what looks slower, unless so many workers did so already."""
    return [
        finding.record
        for finding in judgement.findings
        if finding.record and finding.suspected and finding.again < workers
    ]


def controls(judgement: Judgement, wanted: Sequence[Record]) -> list[Record]:
    """Return what is measured again beside the suspects, to tell how their machine has shifted since.

    Of each device up to `CONTROLS` cases that do not look slower, those nearest to the common shift; none where they
    are too few to tell.
    """
    keys = {record.key for record in wanted}
    sites = dict.fromkeys(f.place.site for f in judgement.findings if f.record and f.record.key in keys)
    chosen: list[Record] = []
    for site in sites:
        steady = {
            finding.record.key: (abs(math.log(finding.ratio.value)), finding.record)
            for finding in judgement.findings
            if finding.place.site == site and finding.record and finding.ratio and not finding.suspected
        }
        nearest = [record for _, record in sorted(steady.values(), key=lambda each: each[0])[:CONTROLS]]
        chosen += nearest if len(nearest) >= LEAST_CASES else []
    return chosen
