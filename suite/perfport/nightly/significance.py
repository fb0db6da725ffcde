"""Tests of many cases at once: variances that borrow from each other, and control of false discoveries.

A run has few measurements of each case and many cases. The variance of a case, estimated from three workers, is often
far too small by chance, and what seems significant then is not. So each variance is drawn towards what is usual for the
cases of the run, as far as the cases are alike (G. K. Smyth, "Linear Models and Empirical Bayes Methods for Assessing
Differential Expression in Microarray Experiments", Statistical Applications in Genetics and Molecular Biology 3(1),
2004: the same problem, thousands of genes with three replicates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma
from scipy.stats import false_discovery_control

#: Relative spread below which a clock shows nothing but its own resolution.
LEAST_SPREAD = 1e-4
#: Cases from which the usual variance is estimated; with fewer, each stands for itself.
LEAST_CASES = 5


@dataclass(frozen=True)
class Prior:
    """What is usual: ``variance``, worth as much as ``freedom`` degrees of freedom of a case's own."""

    variance: float
    freedom: float

    def moderated(self, variance: float, freedom: float) -> tuple[float, float]:
        """Return a case's variance drawn towards the usual one, and its degrees of freedom."""
        variance = max(variance, LEAST_SPREAD**2)
        if np.isinf(self.freedom):
            return self.variance, 1e6
        total = self.freedom + freedom
        return (self.freedom * self.variance + freedom * variance) / total, total


def usual(variances: Sequence[float], freedoms: Sequence[float]) -> Prior:
    """Return the prior that variances of many cases give, by the moments of their logarithms (Smyth 2004, section 6.2).

    Parameters
    ----------
    variances : sequence of float
        Each case's own.
    freedoms : sequence of float
        Their degrees of freedom, at least 1.
    """
    if len(variances) < LEAST_CASES:
        return Prior(LEAST_SPREAD**2, 0.0)
    half = np.asarray(freedoms, dtype=float) / 2
    logs = np.log(np.maximum(np.asarray(variances, dtype=float), LEAST_SPREAD**2))
    centred = logs - digamma(half) + np.log(half)
    mean = float(centred.mean())
    excess = float(centred.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:  # no more scatter than chance gives: all cases have one variance
        return Prior(float(np.exp(mean)), np.inf)
    prior = 2 * _inverse_trigamma(excess)
    return Prior(float(np.exp(mean + digamma(prior / 2) - np.log(prior / 2))), prior)


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on 1 / trigamma, which is nearly a straight line."""
    x = 0.5 + 1 / value
    for _ in range(50):
        slope = float(polygamma(2, x))
        here = float(polygamma(1, x))
        step = here * (1 - here / value) / slope
        x += step
        if -step < 1e-8 * x:
            break
    return x


def discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    """Return which hypotheses are rejected with at most this rate of false discoveries (Benjamini and Hochberg 1995).

    The step-up rule holds for independent tests, and for such as depend on each other positively (Benjamini and
    Yekutieli 2001): cases of one run do, because what disturbs a machine slows all of them. Where nothing has changed
    every discovery is a false one, so the probability of any is at most ``rate``.
    """
    return [bool(adjusted <= rate) for adjusted in false_discovery_control(p_values)] if len(p_values) else []
