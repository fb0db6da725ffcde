"""A barrier of the whole grid: all wait for all, and where groups do not run at the same time nothing hangs."""

from __future__ import annotations

import time

import numpy as np
import pytest

from perfport.measure.ceilings import KINDS, barrier, sweeping
from perfport.measure.ceilings.barrier import GridBarrier
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import NoCeilingError

KIND = KINDS["grid_barrier"]


def run(bench: Bench, groups: int, scale: int = 1, group: int = 1) -> float:
    assert isinstance(KIND, GridBarrier)
    return KIND.execution(bench, {"group": group, "groups": groups}, scale).seconds(bench.device)


def test_one_group_waits_for_nobody(bench: Bench) -> None:
    assert isinstance(KIND, GridBarrier)
    chosen = KIND.execution(bench, {"group": 1, "groups": 1}, 3)
    assert chosen.amount == 192 and chosen.seconds(bench.device) > 0
    assert bench.device.read(bench.buffer("counter", 4), np.uint32, (1,)).tolist() == [192], "each run starts at zero"
    assert run(bench, 1) > 0


@pytest.mark.parametrize("polls", [0, 1000])
def test_groups_that_cannot_run_together_end_all_the_same(
    bench: Bench, polls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far more groups than a CPU has cores: the first to run wait for some that have not begun."""
    if not bench.cpu:
        pytest.skip("a GPU may run them all at the same time")
    monkeypatch.setattr(barrier, "POLLS", polls)
    started = time.monotonic()
    with pytest.raises(NoCeilingError, match=r"of \d+ work-groups gave up waiting"):
        run(bench, 64 * bench.info.compute_units)
    assert time.monotonic() - started < 60, "no hang"
    entry, reason = sweeping._measure(bench, GridBarrierOf64(KIND.name, KIND.unit, direction="lower"), False)
    assert entry is None and "gave up waiting" in reason


class GridBarrierOf64(GridBarrier):
    """Grids that no CPU holds."""

    def shapes(self, bench: Bench, full: bool) -> list[dict[str, int]]:  # type: ignore[override]
        """One grid."""
        return [{"group": 1, "groups": 64 * bench.info.compute_units}]


def test_a_group_that_never_arrives_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose second group does not take part: the first gives up, and the count is short."""
    monkeypatch.setattr(barrier, "POLLS", 1000)
    plain = bench.device.launch
    monkeypatch.setattr(bench.device, "launch", lambda kernel, groups, *rest: plain(kernel, 1, *rest))
    with pytest.raises(NoCeilingError, match="gave up"):
        run(bench, 2)


def test_the_grid_is_one_group_for_each_unit_and_lower_is_better(bench: Bench) -> None:
    units = bench.info.compute_units
    groups = {shape["groups"] for shape in KIND.shapes(bench, True)}
    assert groups == ({units} if bench.cpu else {units, 2 * units})
    assert (KIND.unit, KIND.direction) == ("s", "lower")


def test_the_value_is_the_time_of_one_barrier(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barrier.Execution, "seconds", lambda self, device: 1e-6 * self.amount)
    assert KIND.samples(bench, {"group": 1, "groups": 1}, 2) == pytest.approx([1e-6, 1e-6])
