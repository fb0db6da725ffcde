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
from .significance import discoveries, usual

#: Rate of false discoveries: where nothing has changed, at most one night in 20 is red.
FALSE_RATE = 0.05


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
        self.finding.ratio = Interval(
            value=math.exp(-self.difference),
            low=math.exp(-self.difference - reach),
            high=math.exp(-self.difference + reach),
        )
        self.finding.before = math.exp(float(np.mean(self.before.logs)))
        self.finding.p_slower = float(stdtr(freedom, -self.difference / error))
        self.finding.p_faster = float(stdtr(freedom, self.difference / error))


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
        finding = trial.finding
        finding.outcome = _outcome(finding, bool(is_slower), bool(is_faster))
        finding.why = finding.why or _explained(finding, trial.before)
        # A case with two trials: the first one stands, unless the second alone finds it slower.
        first = settled.setdefault(finding.series, finding)
        if first is not finding and finding.outcome is Outcome.SLOWER and first.outcome is not Outcome.SLOWER:
            vars(first).update(vars(finding))


def _outcome(finding: Finding, slower: bool, faster: bool) -> Outcome:
    """Return the verdict on a case whose change is significant in one direction, or in none."""
    assert finding.ratio
    if slower and finding.suspected:
        return Outcome.SLOWER
    if faster and finding.gained:
        return Outcome.FASTER
    least = math.log1p(finding.threshold)
    within = math.exp(-least) <= finding.ratio.low and finding.ratio.high <= math.exp(least)
    return Outcome.SAME if within else Outcome.CANNOT_TELL


def _explained(finding: Finding, before: Before) -> str:
    again = f", {finding.again} workers measured it again" if finding.again else ""
    changed = f"; {', '.join(before.events)}" if before.events else ""
    if finding.outcome is Outcome.CANNOT_TELL and finding.suspected:
        return f"suspected: slower than {before.what}, but chance is not excluded{again}{changed}"
    return f"compared with {before.what}{again}{changed}"
