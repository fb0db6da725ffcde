"""Wrong elements, as records hold them and as lines tell them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from perfport.model.mismatch import Element, Mismatch

FIRST = Element(index=[3], got="nan", expected="1.5")


def test_a_mismatch_is_told_in_one_line_and_keeps_through_json() -> None:
    worst = Element(index=[1, 7], got="2")
    found = Mismatch(off=2, compared=9, first=FIRST, worst=worst, pattern="whole rows: 2 of 3")
    assert (
        str(found) == "2 of 9 elements off (whole rows: 2 of 3); first [3]: got nan, expected 1.5; worst [1, 7]: got 2"
    )
    assert Mismatch.model_validate_json(found.model_dump_json()) == found


def test_one_element_is_told_once() -> None:
    assert str(Mismatch(off=1, compared=9, first=FIRST, worst=FIRST)) == (
        "1 of 9 elements off; first [3]: got nan, expected 1.5"
    )
    with pytest.raises(ValidationError, match="off"):
        Mismatch(off=0, compared=9, first=FIRST, worst=FIRST)
