"""Shapes of a ceiling, and how much work fills a sample of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from perfport.measure.ceilings.kind import MAX_SCALE, SAMPLE_S, Execution, NoCeilingError, Rate, Shape, grid, label


def test_a_grid_holds_every_combination() -> None:
    shapes = list(grid(group=(64, 128), width=(1, 2, 4)))
    assert len(shapes) == 6 and shapes[0] == {"group": 64, "width": 1} and shapes[-1] == {"group": 128, "width": 4}
    assert label(shapes[0]) == "group=64 width=1"


class Clocked(Rate):
    """A rate whose executions take a known time for a unit of work."""

    asked: list[int] = []

    def shapes(self, bench: Any, full: bool) -> Iterable[Shape]:
        """None is needed."""
        return []

    def execution(self, bench: Any, shape: Shape, scale: int) -> Execution:
        """Return an execution that says how much it does."""
        self.asked.append(scale)
        return Execution(lambda: bench.work(scale), 10.0 * scale)


@pytest.mark.parametrize(("cpu", "keeps"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("step", "launch", "scales"),
    [
        (1e-3, 0.0, ([1, 3], [1, 30])), (SAMPLE_S, 0.0, ([1], [1, 10])), (1.0, 0.0, ([1], [1])),
        (1e-12, 0.0, ([1, MAX_SCALE], [1, MAX_SCALE])), (0.0, 0.0, ([1, MAX_SCALE], [1, MAX_SCALE])),
        (1e-5, 90e-6, ([1, 30, 231], [1, 300, 2913])),  # an execution that is mostly launching
    ],
)  # fmt: skip
def test_work_is_scaled_until_it_fills_a_sample(
    step: float, launch: float, scales: tuple[list[int], list[int]], cpu: bool, keeps: bool
) -> None:
    """On a CPU ten times as long where values are kept: its threads do not begin at the same time."""
    done: list[int] = []

    def timed(run: Callable[[], None], before: object) -> Any:
        run()
        return SimpleNamespace(span=launch + step * done[-1] or 1e-12)

    kind = Clocked("rate", "op/s")
    kind.asked.clear()
    bench: Any = SimpleNamespace(device=SimpleNamespace(timed=timed), work=done.append, cpu=cpu, keeps=keeps)
    rates = kind.samples(bench, {}, 4)
    expected = scales[cpu and keeps]
    assert kind.asked == expected and done[-4:] == [expected[-1]] * 4
    taken = launch + step * expected[-1]
    assert rates == pytest.approx([10.0 * expected[-1] / (taken or 1e-12)] * 4)
    assert taken >= SAMPLE_S * (10 if cpu and keeps else 1) / 2 or expected[-1] == MAX_SCALE


def test_an_interrupted_execution_does_not_pass_for_a_long_one() -> None:
    spans = iter([SAMPLE_S / 100, SAMPLE_S])  # the one that warms up, then one that was interrupted
    kind = Clocked("rate", "op/s")
    kind.asked.clear()
    device = SimpleNamespace(timed=lambda run, before: SimpleNamespace(span=next(spans, SAMPLE_S / 100)))
    bench: Any = SimpleNamespace(device=device, work=lambda scale: None, cpu=False, keeps=False)
    kind.samples(bench, {}, 1)
    assert len(kind.asked) > 1 and kind.asked[1] == 100


def test_an_execution_is_prepared_outside_the_window_and_checked_after_it() -> None:
    order: list[str] = []

    def timed(run: Callable[[], None], before: Callable[[], None]) -> Any:
        before()
        run()
        return SimpleNamespace(span=2.0)

    def check() -> None:
        order.append("check")
        if len(order) > 3:
            raise NoCeilingError("not what is counted")

    device: Any = SimpleNamespace(timed=timed)
    chosen = Execution(lambda: order.append("run"), 1.0, prepare=lambda: order.append("prepare"), check=check)
    assert chosen.seconds(device) == 2.0 and order == ["prepare", "run", "check"]
    with pytest.raises(NoCeilingError, match="not what is counted"):
        chosen.seconds(device)


@pytest.mark.parametrize(("direction", "value"), [("higher", 10.0 / SAMPLE_S), ("lower", SAMPLE_S / 10.0)])
def test_where_lower_is_better_the_value_is_a_time(direction: Any, value: float) -> None:
    device = SimpleNamespace(timed=lambda run, before: SimpleNamespace(span=SAMPLE_S))
    kind = Clocked("latency", "s", direction=direction)
    bench: Any = SimpleNamespace(device=device, work=lambda scale: None, cpu=False, keeps=False)
    assert kind.samples(bench, {}, 1) == pytest.approx([value])
