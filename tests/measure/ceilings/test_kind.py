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


@pytest.mark.parametrize(
    ("seconds", "scale"), [(1e-3, 3), (SAMPLE_S, 1), (1.0, 1), (1e-12, MAX_SCALE), (0.0, MAX_SCALE)]
)
def test_work_is_scaled_until_it_fills_a_sample(seconds: float, scale: int) -> None:
    done: list[int] = []

    def timed(run: Callable[[], None], before: object) -> Any:
        run()
        return SimpleNamespace(span=seconds * done[-1] or 1e-12)

    kind = Clocked("rate", "op/s")
    kind.asked.clear()
    rates = kind.samples(SimpleNamespace(device=SimpleNamespace(timed=timed), work=done.append), {}, 4)  # type: ignore[arg-type]
    assert kind.asked == [1, scale] and done == [1, *[scale] * 4]
    assert rates == pytest.approx([10.0 / seconds if seconds else 10.0 * scale / 1e-12] * 4)


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


@pytest.mark.parametrize(("direction", "value"), [("higher", 1e4), ("lower", 1e-4)])
def test_where_lower_is_better_the_value_is_a_time(direction: Any, value: float) -> None:
    device = SimpleNamespace(timed=lambda run, before: SimpleNamespace(span=1e-3 * SAMPLE_S / 3e-3))
    kind = Clocked("latency", "s", direction=direction)
    bench: Any = SimpleNamespace(device=device, work=lambda scale: None)
    assert kind.samples(bench, {}, 1) == pytest.approx([3 * value if direction == "higher" else value / 3])
