"""Sizes that parameters were found at: how far they are from the one that they are wanted for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfport.machine.tuned import Size, Tuned, by_distance, nearest_size
from perfport.model.record import Interval

PRESETS = {
    "small": {"n": 1000, "kind": "random", "deep": True},
    "large": {"n": 1_000_000, "kind": "random", "deep": True},
    "wide": {"n": 1000, "kind": "photograph", "deep": True},
}


def entry(*presets: str) -> Tuned:
    return Tuned(
        parameters={"of": ",".join(presets)}, date="2026-11-30", driver="1", commit="x",
        presets=dict.fromkeys(presets, 1.0), tried=1, of=2, seed=1, gain=Interval(value=1.1, low=1.05, high=1.2),
    )  # fmt: skip


def nearest(entries: list[Tuned], **changed: object) -> str:
    found = nearest_size(entries, Size({**PRESETS["small"], **changed}, PRESETS))
    assert found
    return str(found.parameters["of"])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "small"),
        ({"n": 31_000}, "small"),  # 4.95 doublings of 1000, 5.01 of a million
        ({"n": 32_000}, "large"),
        ({"n": 0}, "small"),  # no logarithm: as any other difference
        ({"kind": "photograph"}, "wide"),
        ({"kind": "drawing", "n": 1999}, "small"),  # as far from "wide": the first
        ({"kind": "photograph", "n": 700_000}, "large"),
        ({"kind": "photograph", "n": 52_000}, "large"),  # 5.7 doublings, against 4.3 and the other kind: one more
        ({"kind": "photograph", "n": 42_000}, "wide"),  # 5.4, against 4.6 and one more
        ({"deep": False}, "small"),
    ],
)
def test_the_nearest_by_doublings(changed: dict[str, object], expected: str) -> None:
    assert nearest([entry("small"), entry("large"), entry("wide")], **changed) == expected


def test_of_an_entry_for_several_sizes_the_nearest_counts() -> None:
    assert nearest([entry("large"), entry("wide", "small")]) == "wide,small"
    assert nearest([entry("small", "gone"), entry("large")], n=900_000) == "large"


def test_what_no_problem_knows_is_farther_than_any() -> None:
    assert nearest([entry("gone"), entry("large")]) == "large"
    assert nearest([entry("gone"), entry("lost")]) == "gone"
    assert nearest_size([], Size(PRESETS["small"], PRESETS)) is None


@given(
    st.lists(st.sampled_from(sorted(PRESETS)), min_size=1, max_size=6),
    st.integers(-5, 10**12) | st.floats(allow_nan=False) | st.booleans() | st.none() | st.text(max_size=3),
)
def test_any_value_has_a_distance(names: list[str], n: object) -> None:
    entries = [entry(name) for name in names]
    ranked = by_distance(entries, Size({**PRESETS["small"], "n": n}, PRESETS))
    assert sorted(map(id, ranked)) == sorted(map(id, entries))


@given(st.sampled_from(sorted(PRESETS)), st.permutations(sorted(PRESETS)))
def test_the_size_itself_is_nearest(name: str, order: list[str]) -> None:
    found = nearest_size([entry(each) for each in order], Size(PRESETS[name], PRESETS))
    assert found and found.presets == {name: 1.0}
