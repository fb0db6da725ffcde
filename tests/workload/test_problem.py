"""What the author of a problem got wrong is named: member, what is expected, what is there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

from perfport.workload import Metric, Output, Problem, compare


class Size(BaseModel):
    """One parameter."""

    n: int = Field(gt=0)


class Right(Problem):
    """A problem without mistakes."""

    name = "right"
    metric = Metric("t", "s", "lower", "d")
    presets = {"tiny": {"n": 9}}
    check_sizes = ({"n": 3}, {"n": 5})
    Parameters = Size

    def work(self) -> Any: ...

    def metric_value(self, seconds: float) -> Any: ...

    def outputs(self, *which: str) -> Any: ...

    def check(self, outputs: Any, *which: str) -> Any: ...


def test_a_problem_without_mistakes() -> None:
    assert not list(Right.mistakes()) and not Right.data_decide_time(Size(n=1))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": ""}, "name: expected a text, got ''"),
        ({"metric": "GB/s"}, "metric: expected a Metric, got 'GB/s'"),
        ({"metric": Metric("t", "s", "up", "d")}, "metric: direction: expected 'higher' or 'lower', got 'up'"),  # type: ignore[arg-type]
        ({"Parameters": dict}, "Parameters: expected a pydantic model, got <class 'dict'>"),
        ({"presets": {}}, "presets: expected parameters by the name of a preset, got none"),
        ({"presets": {"tiny": {"n": 0}}}, "presets['tiny']: n: Input should be greater than 0, got 0"),
        (
            {"headline": {"cpu": "tiny", "gpu": "tyni"}},
            "headline['gpu']: expected a preset (tiny), got 'tyni' (did you mean 'tiny'?)",
        ),
        ({"headline": {"cpu": ["tiny"], "gpu": "tiny"}}, "headline['cpu']: expected a preset (tiny), got ['tiny']"),
        (
            {"headline": {"cpu": "tiny", "gpu": "tiny", "fpga": "tiny"}},
            "headline: expected presets for 'cpu' and 'gpu', got one for 'fpga'",
        ),
        ({"headline": {"cpu": "tiny"}}, "headline: expected a preset for 'gpu', too, got {'cpu': 'tiny'}"),
        ({"headline": {"gpu": "tiny"}}, "headline: expected a preset for 'cpu', too, got {'gpu': 'tiny'}"),
        ({"headline": "tiny"}, "headline: expected a preset for each class of device, got 'tiny'"),
        ({"check_sizes": ({"n": 3}, {"n": "x"})}, "check_sizes[1]: n: Input should be a valid integer"),
        ({"check_sizes": ({"n": 3}, {"n": 3})}, "check_sizes: expected at least two different ones"),
    ],
)  # fmt: skip
def test_mistakes_are_named(change: dict[str, Any], expected: str) -> None:
    (mistake,) = type("Wrong", (Right,), change).mistakes()
    assert mistake.startswith(expected)


class Shape(BaseModel):
    """Parameters with defaults of every kind."""

    n: int
    classes: tuple[int, ...] = (3, 8)
    scale: float = float("inf")
    names: list[str] = Field(default_factory=lambda: ["a"])


def test_headline_sizes_are_complete_and_as_json_has_them() -> None:
    """So that parameters of a stored run are told to be of that size, whether or not they state the defaults."""
    assert Right.sizes() == {"headline": {}, "defaults": {}}
    presets = {"small": {"n": 1}, "big": {"n": 9, "classes": (1,)}}
    members = {"Parameters": Shape, "presets": presets, "headline": {"cpu": "small", "gpu": "big"}}
    made = type("Sized", (Right,), members)
    defaults = {"classes": [3, 8], "scale": "Infinity", "names": ["a"]}
    sizes = made.sizes()
    assert sizes["defaults"] == defaults
    assert sizes["headline"] == {"cpu": {"n": 1, **defaults}, "gpu": {**defaults, "n": 9, "classes": [1]}}
    assert json.loads(json.dumps(sizes, allow_nan=False)) == sizes


def test_methods_that_are_missing() -> None:
    made = type("Empty", (Problem,), {"name": "empty", "metric": Right.metric, "Parameters": Size})
    mistakes = list(made.mistakes())
    assert [text.split(":")[0] for text in mistakes[:4]] == ["check", "metric_value", "outputs", "work"]


class Declared(Right):
    """Two outputs; the second's tolerance depends on the precision class."""

    results = {"": ("fp32", "tf32"), "half": ("fp32",)}

    def outputs(self, computes: str = "", *which: str) -> dict[str, Output]:
        both = {"a": Output(np.float32, (2,)), "b": Output(np.float32, (2,))}
        return {"a": both["a"]} if computes == "half" else both

    def check(self, outputs: Any, computes: str = "", precision: str = "fp32", /) -> Any:
        limit = 0.1 if precision == "tf32" else 1e-6
        return {name: compare(value, np.ones(2), 2, max_abs=limit) for name, value in outputs.items()}


def test_everything_declared_is_verified_by_the_tolerance_of_its_class() -> None:
    problem, right, rough = Declared(None, 7), np.ones(2, np.float32), np.full(2, 1.01, np.float32)
    assert problem.verify({"a": right, "b": right}).passed and problem.verify({"a": right}, "half").passed
    assert not problem.verify({"a": right}).passed and not problem.verify({"a": right, "b": right}, "half").passed
    assert not problem.verify({"a": right, "b": rough}).passed
    assert problem.verify({"a": right, "b": rough}, "", "tf32").passed
    assert problem.verify({"a": right}).seed == 7
    empty = type("Empty", (Declared,), {"outputs": lambda self, *which: {}})(None, 1)
    assert not empty.verify({}).passed, "no output is no result"


def test_what_is_expected_is_told_of_outputs_that_are_not_finite_too() -> None:
    problem, hole = Declared(None, 7), np.array([1, np.nan], np.float32)
    verified = problem.verify({"a": np.ones(2, np.float32), "b": hole})
    assert not verified.passed and verified.outputs["b"].mismatch
    assert (verified.outputs["b"].mismatch.first.index, verified.outputs["b"].mismatch.first.expected) == ([1], "1")
    other = problem.verify({"a": np.ones(2, np.float32), "b": np.full(2, 1.01)})
    assert "float64" in (other.outputs["b"].detail or "") and not other.outputs["b"].mismatch, "values of another dtype"
    mute = type("Mute", (Declared,), {"check": lambda self, *which: 1 / 0})(None, 7)
    found = mute.verify({"a": np.ones(2, np.float32), "b": hole}).outputs["b"].mismatch
    assert found and found.first.expected is None, "that a check cannot take such values changes nothing"
