"""Dot plots: their scale, and marks that are told apart."""

from __future__ import annotations

import pytest

from perfport.report.parts.plots import Plot
from perfport.report.parts.points import Series, dots, look, shifts


def test_shares_far_below_the_bound_are_drawn_on_a_logarithmic_axis() -> None:
    def drawn(share: float) -> Plot:
        return dots("n", "t", "c.", {"a": {"site": Series(share, 0.9 * share, 1.1 * share)}}, ["site"])

    near, far = drawn(0.8), drawn(0.01)
    assert near.caption == far.caption == "c. Line: the bound."
    assert b">100</text>" in near.content and b">100</text>" in far.content
    assert b">20</text>" in near.content and b">20</text>" not in far.content, "a logarithmic axis names powers of ten"


@pytest.mark.parametrize("number", [1, 2, 6, 20])
def test_marks_stay_in_their_row_and_no_two_devices_look_alike(number: int) -> None:
    found = shifts(number)
    assert len(set(found)) == number and all(-0.45 < shift < 0.45 for shift in found)
    assert len({look(device) for device in range(number)}) == number
