"""Regressions: a run judged case by case against another run, or against the nights of a history.

docs/nightly.md describes the statistics. In short: logarithms of times; the difference between fresh workers, or
between nights, is the noise; a case is slower if its time has grown by more than its threshold and a test, whose false
discoveries are controlled over all cases of the run, excludes chance; what looks slower is measured again before it
counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.special import stdtr, stdtrit

from ..measure.intervals import CONFIDENCE
from ..measure.repeats import worker_medians
from ..model.names import seeds
from ..model.record import Identity, Interval, Record, Status
from ..run.experiment import Experiment, load
from ..store.ratios import is_measured
from ..store.results import EXPERIMENT, Run
from .history import History, Night, Place, experiment_name, night, series_key
from .significance import discoveries, usual

#: Rate of false discoveries: where nothing has changed, at most one night in 20 is red.
FALSE_RATE = 0.05
LEAST_WORKERS = 3
LEAST_NIGHTS = 3
#: So many tell which of them is out of line.
ENOUGH_NIGHTS = 5


class Outcome(StrEnum):
    """What became of a case; worst first."""

    WRONG = "wrong"
    VANISHED = "vanished"
    FAILED = "failed"
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    CANNOT_TELL = "cannot tell"
    NEW = "new"
    CHANGED = "new series"
    NO_RESULT = "no result"


ALARMS = (Outcome.WRONG, Outcome.VANISHED, Outcome.FAILED, Outcome.SLOWER)


@dataclass(frozen=True)
class Before:
    """What a case is compared with: logarithms of seconds, one per worker, or one per night.

    ``what`` names it for readers; ``events`` tells what changed since; ``doubt`` why it is no base.
    """

    what: str
    logs: Sequence[float] = ()
    nights: bool = False
    events: Sequence[str] = ()
    measured: bool = True
    doubt: str = ""


@dataclass
class Finding:
    """One case with its verdict.

    Attributes
    ----------
    series : str
        Key (`perfport.nightly.history.Place`).
    record : Record, optional
        ``None`` for a case that vanished.
    why : str
        One line for readers.
    ratio : Interval, optional
        How many times faster the case is than before, with its 95 % interval.
    before, now : float, optional
        Seconds.
    p_slower, p_faster : float
        Of the hypotheses that the case is not slower (faster) at all.
    again : int
        Workers that measured it again.
    """

    series: str
    outcome: Outcome
    record: Record | None = None
    why: str = ""
    ratio: Interval | None = None
    before: float | None = None
    now: float | None = None
    p_slower: float = 1.0
    p_faster: float = 1.0
    again: int = 0
    threshold: float = 0.0
    events: Sequence[str] = ()

    @property
    def place(self) -> Place:
        """What the case is."""
        return Place.of(self.series)

    @property
    def suspected(self) -> bool:
        """Whether it looks slower by more than its threshold, whatever the test says: worth measuring again."""
        return self.ratio is not None and self.ratio.value < 1 / (1 + self.threshold)

    @property
    def gained(self) -> bool:
        """Whether it looks faster by more than its threshold."""
        return self.ratio is not None and self.ratio.value > 1 + self.threshold


@dataclass
class Judgement:
    """All findings, worst first, and what they were judged against.

    ``left_out`` names files of the history that could not be read.
    """

    run: Run
    against: str
    findings: list[Finding]
    remeasured: bool = False
    left_out: Sequence[str] = ()

    def of(self, *outcomes: Outcome) -> list[Finding]:
        """The findings with one of these outcomes."""
        return [finding for finding in self.findings if finding.outcome in outcomes]


class AgainstRun:
    """Another run as the base: the same cases, whatever changed since (changes are named)."""

    def __init__(self, base: Run, run: Run) -> None:
        self.what = f"run {base.name}"
        self.left_out: Sequence[str] = ()
        name = experiment_name(run)
        self._records = {series_key(base, record, name): record for record in base.records}
        self._night = night(base, name)
        self._rows = {key: row for row, key in enumerate(self._night.series)}

    def expected(self) -> dict[str, str]:
        """Preset of every case that the run should have, by series."""
        held = {key: record for key, record in self._records.items() if is_measured(record)}
        return {key: record.identity.preset or "" for key, record in held.items()}

    def before(self, now: Night, row: int, threshold: float) -> Before | None:
        """What a case of the run is compared with; ``None`` where the base does not have it."""
        record = self._records.get(now.series[row])
        if record is None or now.series[row] not in self._rows:
            return None
        if not is_measured(record):
            return Before(self.what, measured=False)
        events = now.changed(row, self._night, self._rows[now.series[row]])
        doubt = f"contended in {self.what}" if record.status is Status.CONTENDED else ""
        return Before(self.what, [math.log(t) for t in worker_medians(record)], events=events, doubt=doubt)

    def steps(self, now: Night, row: int, value: float, threshold: float) -> Before | None:
        """One run has no change points."""
        return None


#: Finds change points: indices at which a series of logarithms of times begins a new level.
Detector = Callable[[Sequence[float], float], Sequence[int]]


class AgainstNights:
    """The last nights of a history as the base, as far back as driver, source and settings are those of the run.

    Parameters
    ----------
    history : History
    run : Run
        Nights later than it, and itself, are left out.
    last : int
        How many nights.
    detector : callable, optional
        Looks for change points in the series (`perfport.nightly.changepoints`).
    """

    def __init__(self, history: History, run: Run, last: int, detector: Detector | None = None) -> None:
        self.history, self.last, self.detector = history, last, detector
        self.left_out = history.left_out
        name, started = experiment_name(run), str(run.environment.get("started") or "")
        earlier = [
            number
            for number, held in enumerate(history.nights)
            if held.experiment == name and held.name != run.name and held.started <= started
        ]
        self._recent = earlier[-last:]
        self.what = f"the last {_nights(len(self._recent))}" if self._recent else "an empty history"

    def expected(self) -> dict[str, str]:
        """Preset of every case that one of the nights measured, by series."""
        found: dict[str, str] = {}
        for number in self._recent:
            held = self.history.nights[number]
            found |= {
                key: held.preset[row]
                for row, key in enumerate(held.series)
                if held.status[row] in (Status.OK.value, Status.CONTENDED.value)
            }
        return found

    def _segment(self, now: Night, row: int) -> list[float]:
        series = self.history.series.get(now.series[row])
        return [math.log(time) for _, time in self.history.segment(series, now, row)] if series else []

    def before(self, now: Night, row: int, threshold: float) -> Before | None:
        """What a case of the run is compared with; ``None`` where the history does not have it."""
        series = self.history.series.get(now.series[row])
        numbers = [n for n in series.nights if n in self._recent] if series else []
        if series is None or not numbers:
            return None
        there = series.rows[series.nights.index(numbers[-1])]
        if all(self.history.nights[n].workers[series.rows[series.nights.index(n)]] == 0 for n in numbers):
            return Before(self.what, measured=False)
        logs = self._segment(now, row)[-self.last :]
        kept = in_line(logs, threshold)
        what = _nights(len(kept)) + (f" ({len(logs) - len(kept)} out of line)" if len(kept) < len(logs) else "")
        events = [] if logs else now.changed(row, self.history.nights[numbers[-1]], there)
        return Before(what, kept, nights=True, events=events)

    def steps(self, now: Night, row: int, value: float, threshold: float) -> Before | None:
        """The level before the latest change point, if that is recent; ``None`` without one."""
        if self.detector is None:
            return None
        logs = self._segment(now, row)
        found = [0, *self.detector([*logs, value], threshold)]
        if len(found) < 2 or found[-1] < len(logs) + 1 - self.last:
            return None
        level = logs[found[-2] : found[-1]]
        return Before(
            f"{_nights(len(level))} before a change point, {_nights(len(logs) - found[-1])} ago", level, nights=True
        )


Base = AgainstRun | AgainstNights


def _nights(number: int) -> str:
    return f"{number} night{'' if number == 1 else 's'}"


def in_line(logs: Sequence[float], threshold: float) -> list[float]:
    """Return the nights that the others bear out: one bad night must neither move the base nor widen its spread.

    A night is out of line if its distance to the median is above the threshold and above four times the scaled median
    absolute deviation. Of fewer than `ENOUGH_NIGHTS` all are kept.
    """
    if len(logs) < ENOUGH_NIGHTS:
        return list(logs)
    values = np.asarray(logs)
    distance = np.abs(values - np.median(values))
    reach = max(4 * 1.4826 * float(np.median(distance)), math.log1p(threshold))
    return [float(value) for value in values[distance <= reach]]


@dataclass
class Trial:
    """One comparison of a case: the difference of logarithms, and the variances behind it."""

    finding: Finding
    before: Before
    difference: float
    variance: float
    freedom: float
    now: Sequence[float]

    @classmethod
    def of(cls, finding: Finding, before: Before, now: Sequence[float]) -> Trial:
        """Return the comparison of a case's workers now with what was before: two of either at least."""
        difference = float(np.mean(now) - np.mean(before.logs))
        n, k = len(before.logs), len(now)
        if before.nights:
            return cls(finding, before, difference, float(np.var(before.logs, ddof=1)), n - 1, now)
        pooled = float(np.var(before.logs, ddof=1)) * (n - 1) + float(np.var(now, ddof=1)) * (k - 1)
        return cls(finding, before, difference, pooled / (n + k - 2), n + k - 2, now)

    @property
    def family(self) -> tuple[bool, str]:
        """Cases of one device vary alike, and nights vary more than workers."""
        return self.before.nights, self.finding.place.site

    def judge(self, variance: float, freedom: float) -> None:
        """Fill in ratio, interval and probabilities, by the moderated variance."""
        n, k = len(self.before.logs), len(self.now)
        if self.before.nights:
            within = float(np.var(self.now, ddof=1)) / k if k > 1 else 0.0
            error = math.sqrt(variance / n + max(variance, within))
        else:
            error = math.sqrt(variance * (1 / n + 1 / k))
        reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
        found = self.finding
        found.ratio = Interval(
            value=math.exp(-self.difference),
            low=math.exp(-self.difference - reach),
            high=math.exp(-self.difference + reach),
        )
        found.before = math.exp(float(np.mean(self.before.logs)))
        found.p_slower = float(stdtr(freedom, -self.difference / error))
        found.p_faster = float(stdtr(freedom, self.difference / error))


def judge(run: Run, base: Base, again: Mapping[str, Record] | None = None) -> Judgement:
    """Judge every case of a run.

    Parameters
    ----------
    run : Run
    base : AgainstRun or AgainstNights
    again : mapping
        Records of suspected cases that were measured again, by key; their workers count beside the first ones.
    """
    experiment = load(run.folder / EXPERIMENT)
    now = night(run)
    records = {series_key(run, record): record for record in run.records}
    again = again or {}
    findings, trials = [], []
    for row, series in enumerate(now.series):
        record = records[series]
        finding = Finding(series, Outcome.CANNOT_TELL, record, threshold=experiment.threshold(record.identity))
        findings.append(finding)
        trials += _compare(finding, record, again.get(record.key), base, now, row)
    settle(trials)
    findings += _missing(findings, base.expected(), experiment)
    order = list(Outcome)
    findings.sort(key=lambda found: (order.index(found.outcome), found.ratio.value if found.ratio else 1, found.series))
    return Judgement(run, base.what, findings, bool(again), base.left_out)


def _compare(finding: Finding, record: Record, second: Record | None, base: Base, now: Night, row: int) -> list[Trial]:
    """Settle what needs no statistics; return the trials of the rest."""
    before = base.before(now, row, finding.threshold)
    last = second or record
    if bad := next((one for one in (record, last) if one.status in (Status.WRONG, Status.IMPOSSIBLE)), None):
        finding.outcome, finding.why = Outcome.WRONG, _reason(bad)
        return []
    if bad := next((one for one in (record, last) if not is_measured(one)), None):
        fresh = (before is None and bad.status.failed) or (before is not None and before.measured)
        finding.outcome = Outcome.FAILED if fresh else Outcome.NO_RESULT
        finding.why = _reason(bad) + ("" if fresh or before is None else " (before, too)")
        return []
    logs = [math.log(t) for t in worker_medians(record)]
    if second:
        finding.again = len(worker_medians(second))
        logs += [math.log(t) for t in worker_medians(second)]
    finding.now = math.exp(float(np.mean(logs)))
    if before is None:
        finding.outcome, finding.why = Outcome.NEW, f"not in {base.what}"
        return []
    finding.events = before.events
    if not before.measured:
        finding.outcome, finding.why = Outcome.NEW, f"no result in {before.what}"
        return []
    if before.events and before.nights:
        finding.outcome, finding.why = Outcome.CHANGED, "; ".join(before.events)
        return []
    if disturbed := next((one for one in (record, last) if one.status is Status.CONTENDED), None):
        finding.why = f"contended: {disturbed.failure.reason if disturbed.failure else ''}"
        return []
    finding.why = before.doubt or _too_little(before, logs)
    trials = [] if finding.why else [Trial.of(finding, before, logs)]
    level = base.steps(now, row, float(np.mean(logs)), finding.threshold)
    if level and len(level.logs) >= LEAST_NIGHTS:
        trials.append(Trial.of(replace(finding) if trials else finding, level, logs))
        finding.why = ""
    return trials


def _too_little(before: Before, logs: Sequence[float]) -> str:
    if before.nights:
        few = len(before.logs) < LEAST_NIGHTS
        return f"{before.what} of this series; {LEAST_NIGHTS} are needed" if few else ""
    workers = min(len(before.logs), len(logs))
    if workers >= LEAST_WORKERS:
        return ""
    return f"measured by {workers} fresh workers; {LEAST_WORKERS} on each side are needed (workers: in the experiment)"


def settle(trials: list[Trial]) -> None:
    """Give every tested case its verdict, with false discoveries controlled over all of them."""
    families: dict[tuple[bool, str], list[Trial]] = {}
    for trial in trials:
        families.setdefault(trial.family, []).append(trial)
    for family in families.values():
        prior = usual([trial.variance for trial in family], [trial.freedom for trial in family])
        for trial in family:
            trial.judge(*prior.moderated(trial.variance, trial.freedom))
    slower = discoveries([trial.finding.p_slower for trial in trials], FALSE_RATE)
    faster = discoveries([trial.finding.p_faster for trial in trials], FALSE_RATE)
    settled: dict[str, Finding] = {}
    for trial, is_slower, is_faster in zip(trials, slower, faster, strict=True):
        found = trial.finding
        least, ratio = math.log1p(found.threshold), found.ratio
        assert ratio
        if is_slower and found.suspected:
            found.outcome = Outcome.SLOWER
        elif is_faster and found.gained:
            found.outcome = Outcome.FASTER
        elif math.exp(-least) <= ratio.low and ratio.high <= math.exp(least):
            found.outcome = Outcome.SAME
        else:
            found.outcome = Outcome.CANNOT_TELL
        found.why = found.why or _explained(found, trial.before)
        # A case with two trials: the first one stands, unless the second alone finds it slower.
        first = settled.setdefault(found.series, found)
        if first is not found and found.outcome is Outcome.SLOWER and first.outcome is not Outcome.SLOWER:
            vars(first).update(vars(found))


def _explained(found: Finding, before: Before) -> str:
    again = f", {found.again} workers measured it again" if found.again else ""
    changed = f"; {', '.join(before.events)}" if before.events else ""
    if found.outcome is Outcome.CANNOT_TELL and found.suspected:
        return f"suspected: slower than {before.what}, but chance is not excluded{again}{changed}"
    return f"compared with {before.what}{again}{changed}"


def _missing(findings: Sequence[Finding], expected: Mapping[str, str], experiment: Experiment) -> list[Finding]:
    """Return what the base has and the run has not."""
    have = {found.series for found in findings}
    new = [found for found in findings if found.outcome is Outcome.NEW]
    redrawn = {found.place.drawn: found for found in findings}  # whatever became of it
    fresh = {found.place.loose: found for found in new}
    lost = []
    for series, preset in expected.items():
        if series in have:
            continue
        place = Place.of(series)
        if successor := redrawn.get(place.drawn):
            if successor.outcome is Outcome.NEW:
                before = seeds(place.inputs) if place.inputs else "a seed that nobody recorded"
                successor.outcome = Outcome.CHANGED
                successor.why = f"inputs of {seeds(successor.place.inputs)}, before of {before}: not compared"
        elif successor := fresh.get(place.loose):  # the same case by another default, or on another chip
            successor.outcome = Outcome.CHANGED
            successor.why = f"was {place.title} on {place.site}"
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
    return [found.record for found in judgement.findings if found.record and found.suspected and found.again < workers]
