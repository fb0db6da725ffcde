"""Rounding up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfport.model.arithmetic import ceil_div, round_up


@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_the_least_that_holds_it(n: int, divisor: int) -> None:
    assert (ceil_div(n, divisor) - 1) * divisor < n <= ceil_div(n, divisor) * divisor == round_up(n, divisor)


def test_arrays() -> None:
    assert ceil_div(np.array([0, 1, 8, 9]), 8).tolist() == [0, 1, 1, 2]
