"""Rounding up, and geometric means."""

from __future__ import annotations

import math
import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfport.model.arithmetic import ceil_div, geometric_mean, round_up


@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_the_least_that_holds_it(n: int, divisor: int) -> None:
    assert (ceil_div(n, divisor) - 1) * divisor < n <= ceil_div(n, divisor) * divisor == round_up(n, divisor)


def test_arrays() -> None:
    assert ceil_div(np.array([0, 1, 8, 9]), 8).tolist() == [0, 1, 1, 2]


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=9))
def test_the_geometric_mean_is_that_of_the_standard_library(values: list[float]) -> None:
    assert math.isclose(geometric_mean(values), statistics.geometric_mean(values), rel_tol=1e-12)
    assert geometric_mean([*values, 0.0]) == 0.0, "a clock too coarse"
