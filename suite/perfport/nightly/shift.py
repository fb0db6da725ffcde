"""What the cases of a device have in common: how far a machine shifts as a whole, and how far cases scatter by run.

Two runs of the same code differ by more than their workers do: a machine is a few percent slower one night (clocks,
temperature, neighbours), and each case falls a little differently in each run (placement of memory, what ran before).
Neither can be told from one case, and a base of one run or of a few nights does not show it. All cases together do:
most of them have not changed, so the middle of their differences is the machine, and the scatter of the differences
about that middle is what chance does. B. Efron, "Large-Scale Simultaneous Hypothesis Testing: The Choice of a Null
Hypothesis", Journal of the American Statistical Association 99(465), 2004, estimates the null distribution so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtrit

from .significance import LEAST_CASES

#: A larger change of all cases is judged case by case: load and throttling that do so much are recorded as such.
MOST_SHIFT = math.log(1.1)
#: What a median of absolute deviations is worth, in observations, where the noise is normal.
MEDIAN_EFFICIENCY = 0.37


def common_shift(differences: Sequence[float], otherwise: float = 0.0) -> float:
    """Return by how much a machine has shifted: the median of its cases' differences.

    Parameters
    ----------
    differences : sequence of float
        Of logarithms of times, one for each case.
    otherwise : float
        The answer where there are fewer than `LEAST_CASES`, or where the median is beyond `MOST_SHIFT`.
    """
    if len(differences) < LEAST_CASES:
        return otherwise
    middle = float(np.median(differences))
    return middle if abs(middle) <= MOST_SHIFT else otherwise


def without_shifts(series: Sequence[Mapping[int, float]]) -> list[dict[int, float]]:
    """Take the common shift of each night out of the cases of one device (one step of Tukey's median polish).

    Parameters
    ----------
    series : sequence of mapping
        For each case, or each of its levels, the logarithm of its time by number of the night.
    """
    deviations: dict[int, list[float]] = defaultdict(list)
    for logs in series:
        level = float(np.median(list(logs.values()))) if logs else 0.0
        for night, value in logs.items():
            deviations[night].append(value - level)
    shifts = {night: common_shift(each) for night, each in deviations.items()}
    return [{night: value - shifts[night] for night, value in logs.items()} for logs in series]


def run_variance(differences: Sequence[float], variances: Sequence[float], freedoms: Sequence[float]) -> float:
    """Return the variance of a run effect: what must be added until half of the differences are as small as they are.

    Parameters
    ----------
    differences : sequence of float
        Of logarithms of times; they scatter about their median.
    variances, freedoms : sequence of float
        Of each difference, as far as workers or nights tell, and its degrees of freedom.
    """
    if len(differences) < LEAST_CASES:
        return 0.0
    values, own, free = (np.asarray(each, dtype=float) for each in (differences, variances, freedoms))
    squares = np.square(values - np.median(values))

    def excess(added: float) -> float:
        half = stdtrit(joined_freedom(own, free, added, math.inf), 0.75)  # half of Student's t is smaller
        return float(np.median(squares / ((own + added) * half**2))) - 1

    most = float(squares.max()) / float(stdtrit(math.inf, 0.75)) ** 2
    return float(brentq(excess, 0.0, most)) if excess(0.0) > 0 else 0.0


Numbers = TypeVar("Numbers", float, np.ndarray)


def joined_freedom(own: Numbers, freedom: Numbers, added: float, of_added: float) -> Numbers:
    """Return the degrees of freedom of a sum of two variances (Welch and Satterthwaite).

    Parameters
    ----------
    own, freedom : float or array
        A case's own variance and its degrees of freedom.
    added, of_added : float
        `run_variance` and its degrees of freedom.
    """
    return (own + added) ** 2 / (own**2 / freedom + added**2 / of_added)
