"""Change points of a series, found by Apache Otava (the extra ``otava``).

Otava's method is E-divisive with Student's test in sliding windows: M. Fleming, P. Kołaczkowski, I. Kumar, S. Das,
S. McCarthy, P. Pattabhiraman, H. Ingo, "Hunter: Using Change Point Detection to Hunt for Performance Regressions",
ICPE 2023; after D. S. Matteson, N. A. James, "A Nonparametric Approach for Multiple Change Point Analysis of
Multivariate Data", Journal of the American Statistical Association 109(505), 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..model.errors import UnavailableError

#: Fewer values than this have no change points.
LEAST_VALUES = 10
#: The test that splits a series sees the best of all places to split it: its p-values are too small for 0.05.
MOST_P = 0.001


def change_points(logs: Sequence[float], threshold: float) -> list[int]:
    """Return the indices at which a series begins a new level, in order.

    Parameters
    ----------
    logs : sequence of float
        Logarithms of seconds, oldest first.
    threshold : float
        Levels must differ by more than this, relative.

    Raises
    ------
    UnavailableError
        Without Otava.
    """
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        raise UnavailableError("change points need Apache Otava: pip install 'perfport[otava]'") from None
    if len(logs) < LEAST_VALUES:
        return []
    points, _ = compute_change_points(
        [math.exp(value) for value in logs], max_pvalue=MOST_P, min_magnitude=threshold, window_len=50
    )
    return sorted(int(point.index) for point in points)
