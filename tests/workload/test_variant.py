"""Variants: made of steps, able to run or not, with defaults of their tunables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfport.backend.offline import cuda_info
from perfport.model.errors import UnavailableError, UnsupportedError
from perfport.model.work import Traffic
from perfport.workload import Enqueue, Tunable, Variant, Workload, discover

DATA = Path(__file__).parents[1] / "data"


class Stepped(Variant):
    """Steps that are given to it."""

    name = "stepped"

    def __init__(self, *steps: Any) -> None:
        self.steps = steps


class Unknown:
    """A step of which nobody knows what it causes."""

    def launch(self) -> None:
        """Do nothing."""

    def traffic(self) -> None:
        """Nobody knows."""


def test_steps_run_in_turn_and_their_traffic_is_added() -> None:
    order: list[str] = []
    a = Enqueue(lambda: order.append("a"), Traffic(flops=1, global_read=4))
    b = Enqueue(lambda: order.append("b"), Traffic(flops=2, local_read=8))
    variant = Stepped(a, b, a)
    variant.launch()
    assert order == ["a", "b", "a"]
    assert variant.traffic() == Traffic(flops=4, global_read=8, local_read=8)


def test_the_traffic_of_a_single_step_keeps_what_a_sum_leaves_unknown() -> None:
    step = Enqueue(int, Traffic(flops=1, l2_bytes=8))
    assert Stepped(step).traffic() == step.causes
    total = Stepped(step, step).traffic()
    assert total is not None and total.l2_bytes is None


@pytest.mark.parametrize("steps", [(), (Unknown(),), (Enqueue(int, Traffic(flops=1)), Unknown())])
def test_traffic_is_unknown_where_that_of_a_step_is(steps: tuple[Any, ...]) -> None:
    assert Stepped(*steps).traffic() is None


class Nothing(Variant):
    """Neither steps nor a method of its own."""

    name = "nothing"

    def __init__(self, setup: Any) -> None:
        self.setup = setup


class Derived(Stepped):
    """Takes the steps of its base."""


class Own(Nothing):
    """A method of its own."""

    def launch(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("cls", "missing"), [(Nothing, True), (Stepped, False), (Derived, False), (Own, False)])
def test_a_variant_that_does_nothing_is_a_mistake(cls: type[Variant], missing: bool) -> None:
    assert any(mistake.startswith("launch: expected") for mistake in cls.mistakes()) == missing


@pytest.fixture
def faulty() -> Workload:
    return discover([DATA / "faulty"])["faulty"]


def test_require(faulty: Workload) -> None:
    gpu = cuda_info("sm_90")
    cpu = gpu.model_copy(update={"capabilities": ["opencl"], "kind": "cpu"})
    cuda, module = faulty.variant("double", "needs_cuda"), faulty.variant("double", "missing_module")
    cuda.require(gpu)
    with pytest.raises(UnsupportedError, match="needs cuda, which cuda:offline"):
        cuda.require(cpu)
    with pytest.raises(UnavailableError, match="'no_such_module_anywhere' cannot be imported"):
        module.require(gpu)


def test_tunable_defaults() -> None:
    gpu = cuda_info("sm_90")
    assert Tunable({"cpu": 1, "gpu": 2}, (1, 2)).default_for(gpu) == 2
    assert Tunable({"cpu": 1, "gpu": 2}, (1, 2)).default_for(gpu.model_copy(update={"kind": "cpu"})) == 1
    assert Tunable(7, (7,)).default_for(gpu) == 7
