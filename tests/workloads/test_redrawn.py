"""Problems on other values in the buffers of their inputs: what is an argument, code or a size stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perfport.workload import discover

#: Those of whose inputs no part can change alone: labels are tables of variants, the host steers the build.
BUILT_ANEW = {"smo_train", "tree_build"}
PROBLEMS = {name: problem for folder in discover().values() for name, problem in folder.problems.items()}

#: By problem what stays, and what changes.
PARTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "rbf_rows": (lambda p: (p.high, p.low), lambda p: p.matrix),
    "kmeans_fragments": (lambda p: p.node_sizes, lambda p: p.points),
    "tree_query": (lambda p: (p.tables.centres, p.tables.children), lambda p: p.queries),
    "sparse_conv": (lambda p: p.layer.weights, lambda p: p.x),
    "pruned_network": (lambda p: [layer.weights for layer in p.layers], lambda p: p.x),
}


def same(one: Any, other: Any) -> bool:
    """Whether two arrays, or sequences of arrays or numbers, are equal."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", PARTS)
def test_values_change_and_nothing_else(name: str) -> None:
    cls = PROBLEMS[name]
    problem = cls(cls.Parameters(**cls.check_sizes[0]), 3)
    other: Any = problem.redrawn(11)
    stays, changes = PARTS[name]
    assert type(other) is cls and other.seed == 11
    assert same(stays(other), stays(problem)) and not np.array_equal(changes(other), changes(problem))
    anew = cls(cls.Parameters(**cls.check_sizes[0]), 11)
    assert not (len(stays(anew)) == len(stays(other)) and same(stays(anew), stays(other)))
    assert changes(other).shape == changes(problem).shape


def test_every_problem_has_one_of_the_ways() -> None:
    assert PARTS.keys() | BUILT_ANEW == {name for name, cls in PROBLEMS.items() if not cls.inputs_by_buffers}
    for name in BUILT_ANEW:
        cls = PROBLEMS[name]
        assert cls(cls.Parameters(**cls.check_sizes[0]), 3).redrawn(11) is None
