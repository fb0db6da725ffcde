"""Comparison with the reference: what is wrong, unwritten or of another shape never passes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfport.workload.mismatch import Sampled
from perfport.workload.outputs import (
    BLOCK,
    SIGNED_LIMIT,
    Output,
    compare,
    compare_exact,
    compare_signed,
    digest_of,
    flaws,
    signs,
)

REFERENCE = np.linspace(1.0, 2.0, 100)
NORM = float(np.linalg.norm(REFERENCE))


@pytest.mark.parametrize(
    ("error", "limits", "passed"),
    [
        (1e-6, {"max_abs": 1e-5}, True),
        (1e-4, {"max_abs": 1e-5}, False),
        (1e-4, {"relative_l2": 1e-4}, True),
        (1e-2, {"relative_l2": 1e-4}, False),
        (1e-4, {"max_abs": 1e-3, "relative_l2": 1e-6}, False),
        (1e-4, {"max_abs": 1e-5, "relative_l2": 1e-2}, False),
        (0.99e-5, {"max_abs": 1e-5}, True),
        (1.01e-5, {"max_abs": 1e-5}, False),
        (0.99e-4 * NORM, {"relative_l2": 1e-4}, True),
        (1.01e-4 * NORM, {"relative_l2": 1e-4}, False),
    ],
)
def test_tolerances_all_hold(error: float, limits: dict[str, float], passed: bool) -> None:
    value = REFERENCE.copy()
    value[13] -= error
    found = compare(value, REFERENCE, 1000, **limits)
    assert (found.passed, found.checked, found.total, found.tolerance) == (passed, 100, 1000, limits)
    assert found.max_abs == pytest.approx(error)
    assert found.relative_l2 == pytest.approx(error / np.linalg.norm(REFERENCE))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_element_that_is_not_finite_fails_all(bad: float) -> None:
    value = REFERENCE.astype(np.float32)
    value[-1] = bad
    found = compare(value, REFERENCE, 100, max_abs=1e30)
    assert not found.passed and found.detail and "1 elements are not finite" in found.detail
    assert json.loads(found.model_dump_json())["max_abs"] > 1e300, "JSON has no infinity"


def test_poison_is_not_finite() -> None:
    poisoned = np.full(400, 0xFF, np.uint8)
    assert not compare(poisoned.view(np.float32), REFERENCE, 100, max_abs=1e30).passed
    assert not compare_exact(poisoned.view(np.uint32)[:1], np.array([7])).passed
    assert not compare_exact(poisoned.view(np.float32)[:1], np.array([7.0])).passed


def test_other_shapes_fail() -> None:
    found = compare(np.zeros(99), REFERENCE, 100, max_abs=10.0)
    assert not found.passed and found.detail == "shape (99,), expected (100,)"
    assert not compare_exact(np.zeros(2), np.zeros(3)).passed
    for value, expected, told in (
        (np.zeros(2), np.zeros(3), "shape (2,), expected (3,); row 2: got none, expected 0.0"),
        (np.array([[1, 2], [4, 3]]), np.array([[1, 2], [3, 4], [5, 6]]), "row 1: got [4, 3], expected [3, 4]"),
        (np.zeros((1, 2)), np.zeros((0, 2)), "row 0: got [0.0, 0.0], expected none"),
        (np.zeros((2, 2)), np.zeros((2, 3)), "shape (2, 2), expected (2, 3)"),
        (np.zeros(()), np.zeros(3), "shape (), expected (3,)"),
    ):
        assert (compare_exact(value, expected).detail or "").endswith(told)
    wide = compare_exact(np.zeros((2, 100_000)), np.zeros((3, 100_000)))
    assert len(wide.detail or "") < 400


def test_a_shape_that_broadcasts_is_another_shape() -> None:
    row = REFERENCE.reshape(1, -1)
    loose = compare(row, REFERENCE, 100, max_abs=10.0)
    assert not loose.passed and loose.detail == "shape (1, 100), expected (100,)" and loose.checked == 0
    exact = compare_exact(row, REFERENCE)
    assert not exact.passed and exact.max_abs > 1e300


def test_a_reference_of_zeros_has_no_relative_scale() -> None:
    assert compare(np.zeros(5), np.zeros(5), 5, relative_l2=0.0).passed
    found = compare(np.full(5, 1e-3), np.zeros(5), 5, relative_l2=1e-4)
    assert not found.passed and found.relative_l2 == pytest.approx(1e-3 * 5**0.5), "the norm of the difference itself"


def test_nothing_is_equal_to_nothing() -> None:
    nothing = np.zeros(0)
    for found in (compare(nothing, nothing, 0, max_abs=0.0), compare_exact(nothing, nothing)):
        assert found.passed and (found.max_abs, found.relative_l2, found.checked, found.total) == (0, 0, 0, 0)


def test_what_differs_is_shown_by_its_first_four_values() -> None:
    found = compare_exact(np.arange(6), np.arange(1, 7))
    assert found.detail == "got [0, 1, 2, 3], expected [1, 2, 3, 4]"
    assert (found.max_abs, found.relative_l2, found.checked, found.total) == (1, 1, 6, 6)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20), st.integers(0, 19), st.integers(1, 9))
def test_exact(values: list[int], at: int, off: int) -> None:
    expected = np.array(values, np.int64)
    assert compare_exact(expected.astype(np.int32), expected).passed
    wrong = expected.copy()
    wrong[at % len(values)] += off
    found = compare_exact(wrong, expected)
    assert not found.passed and found.max_abs == off and found.detail and "expected" in found.detail


@pytest.mark.parametrize(
    ("output", "value", "flaw"),
    [
        (Output(np.float32, (2, 3)), np.ones((2, 3), np.float32), None),
        (Output(np.float32, (2, 3)), np.ones((2, 3)), "dtype float64, expected float32"),
        (Output((np.uint32, np.int64), (1,)), np.ones(1, np.int64), None),
        (Output((np.uint32, np.int64), (1,)), np.ones(1, np.int32), "dtype int32, expected uint32 or int64"),
        (Output(np.float32, (2, 3)), np.ones((3, 2), np.float32), "shape (3, 2), expected (2, 3)"),
        (Output(np.float32, (6,)), np.ones((2, 3), np.float32), "shape (2, 3), expected (6)"),
        (Output(np.int64, (None, 5)), np.ones((7, 5), np.int64), None),
        (Output(np.int64, (None, 5)), np.ones((7, 4), np.int64), "shape (7, 4), expected (any, 5)"),
    ],
)
def test_an_output_has_the_form_that_is_declared(output: Output, value: np.ndarray, flaw: str | None) -> None:
    told = output.flaw(value)
    assert told == flaw if flaw is None else (told or "").startswith(flaw), told


def test_what_is_missing_and_what_nobody_asked_for_is_wrong() -> None:
    declared = {"a": Output(np.float32, (1,)), "b": Output(np.float32, (1,))}
    one = np.ones(1, np.float32)
    assert flaws(declared, {"a": one, "b": one}) == {}
    told = flaws(declared, {"a": one, "b.tf32": one})
    assert {name: error.detail for name, error in told.items()} == {
        "b": "no such output was left", "b.tf32": "not an output of the problem; expected a, b",
    }  # fmt: skip
    assert not any(error.passed for error in told.values())


def test_exact_is_without_a_cast() -> None:
    assert compare_exact(np.array([3.0], np.float32), np.array([3])).passed
    assert not compare_exact(np.array([0], np.uint8), np.array([256])).passed, "256 as a byte is 0"
    assert not compare_exact(np.array([16777216], np.float32), np.array([16777217])).passed


def test_a_digest_is_of_names_forms_and_bytes() -> None:
    first = {"a": np.zeros((2, 3), np.float32)}
    others: list[dict[str, np.ndarray]] = [
        {"b": first["a"]}, {"a": np.zeros((3, 2), np.float32)}, {"a": np.zeros((2, 3), np.int32)},
        {"a": np.full((2, 3), -0.0, np.float32)},
    ]  # fmt: skip
    assert digest_of(first) == digest_of({"a": np.zeros((2, 3), np.float32)})
    assert len({digest_of(first), *map(digest_of, others)}) == 5


def test_equal_outputs_have_one_key() -> None:
    labels = np.arange(6, dtype=np.uint8)
    assert digest_of({"a": labels, "b": labels}) == digest_of({"b": labels.copy(), "a": labels})
    assert digest_of({"a": labels}) != digest_of({"a": labels[::-1]})


@pytest.mark.parametrize("at", [0, BLOCK - 1, BLOCK, 2 * BLOCK])
def test_every_byte_of_a_long_output_enters_its_key(at: int) -> None:
    octets = np.zeros(2 * BLOCK + 1, np.uint8)
    changed = octets.copy()
    changed[at] = 1
    assert digest_of({"a": octets}) != digest_of({"a": changed})


@pytest.mark.parametrize("at", [0, BLOCK, 2 * BLOCK + 6])
def test_every_element_of_a_long_output_is_to_be_finite(at: int) -> None:
    value = np.zeros((2 * BLOCK + 7, 1), np.float32)
    assert Output(np.float32, value.shape).holes(value) is None
    value[at] = np.nan
    found = Output(np.float32, value.shape).holes(value)
    assert found and (found.off, found.first.index) == (1, [at, 0])


def test_signs_are_drawn() -> None:
    drawn = signs(1000, 3)
    assert set(drawn) == {-1.0, 1.0} and abs(drawn.sum()) < 200 and np.array_equal(drawn, signs(1000, 3))
    assert not np.array_equal(drawn, signs(1000, 4))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_sums_are_held_to_the_norm_of_what_is_in_them(scale: float) -> None:
    expected, norms = np.array([0.0, 3.0, -2.0]) * scale, np.array([1.0, 10.0, 1.0]) * scale
    for factor, passed in ((0.99, True), (1.01, False)):
        for at in range(3):
            sums = expected.copy()
            sums[at] += factor * SIGNED_LIMIT * 1e-3 * norms[at]
            assert compare_signed(sums, expected, norms, 300, 1e-3).passed == passed
    assert not compare_signed(expected * np.nan, expected, 1.0, 300, 1e-3).passed


@given(st.integers(0, 2**31))
def test_rounding_passes_and_one_wrong_output_of_a_million_does_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    outputs, drawn, tolerance = rng.normal(size=(200, 500)), signs(200, seed), 1e-3
    norms = np.linalg.norm(outputs, axis=0)
    noisy = outputs + tolerance * rng.normal(size=outputs.shape) * norms / np.sqrt(200)
    assert compare_signed(drawn @ noisy, drawn @ outputs, norms, outputs.size, tolerance).passed
    noisy[17, 333] += norms[333] / 20
    assert not compare_signed(drawn @ noisy, drawn @ outputs, norms, outputs.size, tolerance).passed


def test_elements_that_are_not_finite_are_named_where_an_output_is_written_whole() -> None:
    holes = np.array([1, np.nan, np.inf], np.float32)
    (error,) = flaws({"y": Output(np.float32, (3,))}, {"y": holes}).values()
    assert error.detail and error.detail.startswith("2 of 3 elements are not finite") and error.mismatch
    assert (error.mismatch.first.index, error.mismatch.first.got, error.mismatch.pattern) == (
        [1],
        "nan",
        "the last 2 elements",
    )
    assert not flaws({"y": Output(np.float32, (3,), partial=True)}, {"y": holes})


def test_a_wrong_output_names_its_elements() -> None:
    expected = np.linspace(1.0, 2.0, 20)
    value = expected.astype(np.float32)
    assert compare(value, expected, 20, max_abs=1e-6).mismatch is None
    value[::7] += np.float32([1, 2, 3])
    for tolerances in ({"max_abs": 1e-6}, {"relative_l2": 1e-6}, {"max_abs": 1e-6, "relative_l2": 1.0}):
        found = compare(value, expected, 20, **tolerances).mismatch
        assert found and (found.off, found.compared, found.pattern) == (3, 20, "every 7th element from 0")
        assert (found.first.index, found.worst.index) == ([0], [14]) and found.first.expected == "1"
    found = compare_exact(np.array([1, 2, 3]), np.array([1, 5, 3])).mismatch
    assert found and str(found) == "1 of 3 elements off (one element); first [1]: got 2, expected 5"


def test_what_fails_a_norm_alone_names_an_element() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 100, 10_000):
        expected = rng.normal(size=count)
        value = expected + 1.01e-3 * np.abs(expected).max() * rng.choice([-1, 1], count)
        error = compare(value, expected, count, relative_l2=1e-3)
        assert not error.passed and error.mismatch and error.mismatch.off >= 1


def test_a_sample_names_elements_of_the_whole() -> None:
    expected = np.arange(24.0).reshape(4, 6)
    positions = np.array([5, 7, 23])
    value = expected.reshape(-1)[positions].copy()
    value[1] = np.nan
    found = compare(
        value, expected.reshape(-1)[positions], 24, max_abs=0.1, sampled=Sampled(positions, (4, 6))
    ).mismatch
    assert found and found.first.index == found.worst.index == [1, 1] and found.pattern == ""
