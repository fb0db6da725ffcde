"""Which elements are off, and what they have in common."""

from __future__ import annotations

import numpy as np
import pytest

from perfport.workload.mismatch import located, not_finite, pattern


def off(shape: tuple[int, ...], *where: object) -> np.ndarray:
    """An array that is off at some places."""
    made = np.zeros(shape, bool)
    for each in where:
        made[each] = True  # type: ignore[index]
    return made


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (off((9,), slice(None)), "every element"),
        (off((9,), 8), "the last element"),
        (off((9,), 0), "one element"),
        (off((9,), slice(6, 9)), "the last 3 elements"),
        (off((9,), slice(0, 2)), "the first 2 elements"),
        (off((9,), slice(3, 5)), "elements 3 to 4"),
        (off((60,), slice(3, None, 7)), "every 7th element from 3"),
        (off((60,), slice(10, 40, 3)), "every 3rd element from 10 to 37"),
        (off((60,), 2, 9), ""),
        (off((60,), 2, 9, 11), ""),
        (off((4, 5), 1), "elements 5 to 9"),
        (off((4, 5), 1, 3), "whole rows: 2 of 4"),
        (off((9, 5), slice(1, None, 2)), "whole rows: every 2nd row from 1"),
        (off((4, 5), (slice(None), slice(3, 5))), "in every row: the last 2 columns"),
        (off((3, 4, 5), (slice(None), slice(None), [0, 3])), "in every row: 2 of 5 columns"),
        (off((64,), slice(2, None, 8), slice(3, None, 8)), "every index i with i % 8 in {2, 3}"),
        (off((64,), slice(0, None, 2), slice(1, None, 8)), ""),
    ],
)
def test_patterns(array: np.ndarray, told: str) -> None:
    assert pattern(array) == told


def test_what_is_not_finite_is_the_worst() -> None:
    value, expected = np.array([1.0, 9.0, np.nan, 4.0, np.inf]), np.arange(1.0, 6.0)
    found = located(value, expected, 0.5)
    assert found and (found.off, found.first.index, found.worst.index) == (3, [1], [2])
    assert str(found) == "3 of 5 elements off; first [1]: got 9, expected 2; worst [2]: got nan, expected 3"
    assert located(expected, expected, 0.0) is None and located(value[:0], expected[:0], 0.0) is None


def test_what_blocks_find_is_the_same_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    expected = rng.normal(size=(20, 30))
    value = expected + 1e-3 * rng.normal(size=expected.shape)
    whole = located(value, expected, 1e-3)
    monkeypatch.setattr("perfport.workload.mismatch.BLOCK", 37)
    assert located(value, expected, 1e-3) == whole
    assert whole and tuple(whole.worst.index) == np.unravel_index(np.abs(value - expected).argmax(), expected.shape)


def test_integers_are_told_whole() -> None:
    found = located(np.array([2**32 - 1], np.uint32), np.array([7]), 0.0)
    assert found and (found.worst.got, found.worst.expected) == ("4294967295", "7")


def test_holes_have_no_reference() -> None:
    value = np.ones((3, 4), np.float32)
    assert not_finite(value) is None
    value[2] = np.nan
    found = not_finite(value)
    assert found and str(found) == "4 of 12 elements off (the last 4 elements); first [2, 0]: got nan"
