"""Configurations: all of a space, its neighbours, what comes nearest to parameters from elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfport.tune.space import Space, name_of

SPACE = Space({"group": [64, 128, 256], "form": ["a", "b"], "on": [0, 1]})


def test_every_configuration_is_there_once() -> None:
    every = list(SPACE.every())
    assert len(every) == SPACE.size == 12 and len({name_of(config) for config in every}) == 12
    odd = Space({"a": [1, 2, 3], "b": [1, 2]}, lambda config: config["a"] != config["b"])
    assert odd.size == 6 and len(list(odd.every())) == 4


def test_the_name_does_not_depend_on_the_order() -> None:
    assert name_of({"a": 1, "b": "x"}) == name_of({"b": "x", "a": 1}) != name_of({"a": 1, "b": 1})


def test_neighbours_differ_in_one_tunable() -> None:
    config = {"group": 64, "form": "a", "on": 1}
    near = list(SPACE.neighbours(config))
    assert len(near) == 2 + 1 + 1
    assert all(sum(other[name] != config[name] for name in config) == 1 for other in near)


def test_draws_are_distinct_and_hold() -> None:
    odd = Space({"a": list(range(9)), "b": list(range(9))}, lambda config: config["a"] < config["b"])
    drawn = odd.draw(np.random.default_rng(1), 20)
    assert len({name_of(config) for config in drawn}) == 20 and all(config["a"] < config["b"] for config in drawn)
    assert len(odd.draw(np.random.default_rng(1), 99)) <= 36


@pytest.mark.parametrize(
    ("given_", "expected"), [(128, 128), (100, 128), (90, 64), (4096, 256), (-1, 64), ("b", 64), (True, 64)]
)
def test_the_nearest_value_is_taken(given_: object, expected: int) -> None:
    base = {"group": 64, "form": "a", "on": 0}
    assert SPACE.nearest({"group": given_}, base) == {**base, "group": expected}
    assert SPACE.nearest({"form": "c", "other": 7}, base) == base


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=8, unique=True), st.integers(1, 10**6))
def test_what_is_nearest_is_allowed(values: list[int], wanted: int) -> None:
    space = Space({"n": values})
    assert space.nearest({"n": wanted}, {"n": values[0]})["n"] in values


def test_rows_are_ranks() -> None:
    rows = SPACE.encoded([{"group": 256, "form": "b", "on": 0}])
    assert rows.tolist() == [[2, 1, 0]] and rows.dtype == np.float32
