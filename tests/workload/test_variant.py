"""Variants made of steps."""

from __future__ import annotations

from typing import Any

import pytest

from perfport.model.work import Traffic
from perfport.workload import Enqueue, Variant


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
