"""Tests of the cases of a run: one trial for each comparison, and the verdicts of all of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ..measure.intervals import CONFIDENCE
from ..model.record import Interval
from .base import Before
from .finding import Finding, Outcome
from .shift import MEDIAN_EFFICIENCY, common_shift, joined_freedom, run_variance
from .significance import discoveries, usual

#: Rate of false discoveries: where nothing has changed, at most one night in 20 is red.
FALSE_RATE = 0.05
#: The same for suspicions: where nothing has changed, at most one night in 5 is yellow for them.
SUSPICION_RATE = 0.2


@dataclass
class Trial:
    """One comparison of a case with what was ``before``: two workers or nights of either at least.

    Attributes
    ----------
    first, again : sequence of float
        Logarithms of seconds, one for each worker: of the run, and of what was measured again.
    change_point : bool
        Whether ``before`` is the level before a change point.
    """

    finding: Finding
    before: Before
    first: Sequence[float]
    again: Sequence[float] = ()
    change_point: bool = False

    @property
    def now(self) -> list[float]:
        """Logarithms of seconds of every worker."""
        return [*self.first, *self.again]

    @property
    def difference(self) -> float:
        """How much longer the case takes, as a logarithm."""
        return float(np.mean(self.now) - np.mean(self.before.logs))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of `variance`."""
        if self.before.nights:
            return freedom_of(self.before)
        return len(self.before.logs) + len(self.now) - 2

    @property
    def variance(self) -> float:
        """Variance between nights, pooled over all levels, or between workers, pooled over both sides."""
        if self.before.nights:
            return _pooled([self.before.logs, *self.before.apart])
        return _pooled([self.before.logs, self.now])

    @property
    def unchanged(self) -> bool:
        """Whether nothing is known to have changed: what differs is the machine, or chance."""
        return not self.before.events and not self.change_point

    @property
    def family(self) -> tuple[type[Trial], bool, str]:
        """Cases of one device vary alike, and nights vary more than workers."""
        return type(self), self.before.nights, self.finding.place.site

    def error(self, variance: float) -> float:
        """Return the variance of the difference, by a moderated variance."""
        n, k = len(self.before.logs), len(self.now)
        if not self.before.nights:
            return variance * (1 / n + 1 / k)
        within = float(np.var(self.now, ddof=1)) / k if k > 1 else 0.0
        return variance / n + max(variance, within)

    def judge(self, error: float, freedom: float) -> None:
        """Fill in ratio, interval and probabilities, by the variance of the difference."""
        deviation = math.sqrt(error)
        reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * deviation
        self.finding.ratio = Interval(
            value=math.exp(-self.difference),
            low=math.exp(-self.difference - reach),
            high=math.exp(-self.difference + reach),
        )
        self.finding.before = math.exp(float(np.mean(self.before.logs)))
        self.finding.p_slower = float(stdtr(freedom, -self.difference / deviation))
        self.finding.p_faster = float(stdtr(freedom, self.difference / deviation))


def freedom_of(before: Before) -> int:
    """Return the degrees of freedom of the variance between nights: those of every level."""
    return sum(len(each) - 1 for each in (before.logs, *before.apart) if each)


def _pooled(samples: Sequence[Sequence[float]]) -> float:
    """Return the variance within samples, by all of them."""
    squares = sum(float(np.var(each)) * len(each) for each in samples if each)
    return squares / sum(len(each) - 1 for each in samples if each)


class PairedTrial(Trial):
    """A comparison of two sides that were measured in turn: worker ``i`` of either side in the same round.

    What all workers of a round share (hour, clocks, neighbours) cancels in its difference; the differences' scatter
    between rounds is all the noise there is.
    """

    @property
    def unchanged(self) -> bool:
        """Never: what differs in the same minutes is neither a shift of the machine nor the effect of a run."""
        return False

    @property
    def freedom(self) -> int:
        """Degrees of freedom of `variance`."""
        return len(self.first) - 1

    @property
    def variance(self) -> float:
        """Variance of the rounds' differences."""
        return float(np.var(np.subtract(self.first, self.before.logs), ddof=1))

    def error(self, variance: float) -> float:
        """Return the variance of the mean difference, by a moderated variance."""
        return variance / len(self.first)

    def judge(self, error: float, freedom: float) -> None:
        """Fill in what `Trial.judge` does, and the seconds of the same minutes."""
        super().judge(error, freedom)
        self.finding.now = math.exp(float(np.mean(self.first)))


def settle(trials: list[Trial]) -> dict[str, float]:
    """Give every tested case its verdict, with false discoveries controlled over all of them.

    Returns
    -------
    dict
        By device, the shift of all of its cases that was taken out of them, as a logarithm.
    """
    families: dict[tuple[type[Trial], bool, str], list[Trial]] = {}
    for trial in trials:
        families.setdefault(trial.family, []).append(trial)
    shifts: dict[str, float] = {}
    for (*_, site), family in families.items():
        shift = _take_shifts_out(family)
        shifts[site] = shifts.get(site) or shift
        _judge(family)
    p_slower = [trial.finding.p_slower for trial in trials]
    slower, suspicious = discoveries(p_slower, FALSE_RATE), discoveries(p_slower, SUSPICION_RATE)
    faster = discoveries([trial.finding.p_faster for trial in trials], FALSE_RATE)
    settled: dict[str, Finding] = {}
    for trial, is_slower, is_suspicious, is_faster in zip(trials, slower, suspicious, faster, strict=True):
        finding = trial.finding
        finding.outcome = _outcome(finding, slower=is_slower, suspicious=is_suspicious, faster=is_faster)
        finding.why = finding.why or _explained(finding, trial.before)
        # A case with two trials: the first one stands, unless the second alone finds it slower.
        first = settled.setdefault(finding.series, finding)
        if first is not finding and finding.outcome is Outcome.SLOWER and first.outcome is not Outcome.SLOWER:
            vars(first).update(vars(finding))
    return shifts


def _judge(family: Sequence[Trial]) -> None:
    """Judge the cases of a device; the run effect is that of the unchanged ones, like the shift."""
    prior = usual([trial.variance for trial in family], [trial.freedom for trial in family])
    moderated = [prior.moderated(trial.variance, trial.freedom) for trial in family]
    errors = [(trial.error(variance), freedom) for trial, (variance, freedom) in zip(family, moderated, strict=True)]
    known = [(trial.difference, *error) for trial, error in zip(family, errors, strict=True) if trial.unchanged]
    added = run_variance(*zip(*known, strict=True)) if known else 0.0
    of_added = MEDIAN_EFFICIENCY * max(len(known), 1)
    for trial, (error, freedom) in zip(family, errors, strict=True):
        trial.judge(error + added, joined_freedom(error, freedom, added, of_added))


def _take_shifts_out(family: Sequence[Trial]) -> float:
    """Take the common shift out of the run's measurements, and that of a later hour out of what was measured again.

    Returns the shift. It is that of the unchanged cases: a new source is what a comparison of runs is to judge.
    """
    unchanged = [trial for trial in family if trial.unchanged]

    def longer(trial: Trial, logs: Sequence[float]) -> float:
        return float(np.mean(logs) - np.mean(trial.before.logs))

    shift = common_shift([longer(trial, trial.first) for trial in unchanged])
    # What was measured again for looking slower says little of the machine; the controls beside it do.
    controls = [t for t in unchanged if t.again and longer(t, t.first) - shift <= math.log1p(t.finding.threshold)]
    later = common_shift([longer(trial, trial.again) for trial in controls], otherwise=shift)
    for trial in family:
        trial.first = [value - shift for value in trial.first]
        trial.again = [value - later for value in trial.again]
    return shift


def _outcome(finding: Finding, *, slower: bool, suspicious: bool, faster: bool) -> Outcome:
    """Return the verdict on a case whose change is significant in one direction, or nearly so, or in none."""
    assert finding.ratio
    if slower and finding.suspected:
        return Outcome.SLOWER
    if faster and finding.gained:
        return Outcome.FASTER
    least = math.log1p(finding.threshold)
    within = math.exp(-least) <= finding.ratio.low and finding.ratio.high <= math.exp(least)
    if suspicious and finding.suspected:
        return Outcome.SUSPECTED
    return Outcome.SAME if within else Outcome.CANNOT_TELL


def _explained(finding: Finding, before: Before) -> str:
    again = f", {finding.again} workers measured it again" if finding.again else ""
    changed = ", ".join(map(str, before.events))
    if finding.outcome is Outcome.SUSPECTED:
        since = f", {changed}" if changed else ""
        return f"slower than {before.what}{since}, but chance is not excluded{again}"
    if changed and finding.outcome in (Outcome.SLOWER, Outcome.FASTER):
        return f"since {changed}; compared with {before.what}{again}"
    return f"compared with {before.what}{again}" + (f"; {changed}" if changed else "")
