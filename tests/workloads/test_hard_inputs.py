"""Inputs to verify with: equal, denormal, and of the widest range; a single wrong value of many is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfport.workload import Problem, discover

LARGEST = float(np.finfo(np.float32).max)
DENORMAL = float(np.finfo(np.float32).tiny)


def problem(where: str, **parameters: Any) -> Any:
    workload, _, name = where.partition("/")
    cls: type[Problem] = discover([], workload)[workload].problem(name)
    return cls(cls.Parameters.model_validate(parameters), 7)


def hard(where: str, key: str) -> list[dict[str, Any]]:
    """Sizes that `perfport verify` takes in which a parameter is given."""
    workload, _, name = where.partition("/")
    return [size for size in discover([], workload)[workload].problem(name).check_sizes if key in size]


def test_vectors_are_equal_denormal_and_large() -> None:
    equal, denormal, large = (
        problem("svm_rbf/arg_extrema", **size).vector
        for size in hard("svm_rbf/arg_extrema", "bits")[-2:] + hard("svm_rbf/arg_extrema", "exponent")[-1:]
    )
    assert np.unique(equal).size == 1
    assert 0 < np.abs(denormal).max() < DENORMAL and np.unique(denormal).size > 200
    assert LARGEST / 4 < np.abs(large).max() <= LARGEST


def test_rows_are_denormal_or_their_kernels_are_0_and_1() -> None:
    small, wide = (problem("svm_rbf/rbf_rows", **size) for size in hard("svm_rbf/rbf_rows", "exponent"))
    assert 0 < np.abs(small.matrix).max() < DENORMAL
    kernels = wide._reference["high_kernel"]
    assert kernels[wide.high] == 1 and np.count_nonzero(kernels) == 1


@pytest.mark.parametrize("where", ["gdn/gdn_forward", "gdn/gdn_step", "sparse_conv/sparse_conv"])
def test_maps_are_equal_or_wide(where: str) -> None:
    equal, wide = (problem(where, **size) for size in hard(where, "source"))
    values = [each.w if where.startswith("gdn") else each.x for each in (equal, wide)]
    assert np.unique(values[0]).size == 1
    magnitudes = np.abs(values[1][values[1] != 0])
    assert magnitudes.min() < DENORMAL and magnitudes.max() > 2.0**20 and np.isfinite(magnitudes).all()


@pytest.mark.parametrize("where", ["kmeans_iteration", "kmeans_fragments", "tree_build", "tree_query"])
def test_descriptors_are_equal_or_extreme(where: str) -> None:
    equal, extreme = (problem(f"vocab_tree/{where}", **size) for size in hard(f"vocab_tree/{where}", "source"))
    assert np.unique(equal.points).tolist() == [255] and np.unique(extreme.points).tolist() == [0, 255]


def test_frames_are_equal_or_extreme() -> None:
    equal, extreme = (problem("face_detection/windows", **size) for size in hard("face_detection/windows", "source"))
    assert np.unique(equal.scene.pixels).size == 1 and np.unique(extreme.scene.pixels).tolist() == [0, 255]
    assert not len(equal.reference.windows)


@pytest.mark.parametrize(
    ("where", "parameters"),
    [
        ("vocab_tree/tree_query", {"points": 400, "clusters": 4, "levels": 3, "iterations": 2, "queries": 120_000}),
        ("svm_rbf/rbf_rows", {"points": 41_000, "dims": 1000}),
        ("gdn/gdn_reduction", {"channels": 120, "positions": 3}),
    ],
)
def test_one_wrong_value_of_many_is_seen(where: str, parameters: dict[str, Any]) -> None:
    made = problem(where, **parameters)
    right = made._expected if where.endswith("query") else made._reference
    name = next(iter(made.outputs()))
    value = (right if isinstance(right, np.ndarray) else right[name]).astype(made.outputs()[name].dtype)
    assert made.check({name: value})[name].passed
    for at in (0, value.size // 3, value.size - 1):
        wrong = value.copy()
        wrong[at] += 1
        assert not made.check({name: wrong})[name].passed, at
