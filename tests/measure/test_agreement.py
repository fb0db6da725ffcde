"""Clocks of one execution that have to agree; work outside the span is refused, a disturbed machine is not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfport.backend import OpenDevice, Times, get
from perfport.measure import agreement
from perfport.measure.agreement import ROW, Agreed, Agreement, Pair, Row, _quiet
from perfport.measure.sampling import Execution
from perfport.model.errors import RefusedError

LAUNCH, IN_ROW = 40e-6, 8e-6


class HostTime:
    """A host's time that passes only where something takes it; a pair takes ``each``, all but for ever."""

    def __init__(self) -> None:
        self.now, self.each = 0.0, 1e9
        self.slept: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> HostTime:
    made = HostTime()
    monkeypatch.setattr(agreement, "time", made)
    return made


def scripted(
    pairs: list[Pair],
    samples: tuple[float, float] = (1e-3, 0.0),
    busy: float | tuple[float, ...] = 5e-4,
    library: bool = False,
    *,
    around: float | tuple[float, ...] | None = None,
    empties: tuple[float, ...] = (LAUNCH,),
    rows: tuple[Row, ...] = (Row(0.0, 0.0),),
    least_rows: tuple[float, ...] = (IN_ROW,),
    kind: str = "gpu",
) -> Any:
    """A check whose pairs and rows are given, the last again and again; and samples of this span, with this outside.

    ``empties``, ``least_rows``: the host's times for empty kernels beside later pairs, and for the least kernels beside
    later rows, again and again.
    """
    checked = object.__new__(Agreement)
    checked._device = SimpleNamespace(info=SimpleNamespace(kind=kind))  # type: ignore[assignment]
    checked._launch, checked._launch_in_row = LAUNCH, IN_ROW
    checked._empty, checked._least = Execution(lambda: None), Execution(lambda: None)
    following, empty = itertools.chain(pairs, itertools.repeat(pairs[-1])), itertools.cycle(empties)
    following_rows, least_row = itertools.chain(rows, itertools.repeat(rows[-1])), itertools.cycle(least_rows)
    host: Any = agreement.time

    def pair(execution: Execution) -> Pair:
        host.now += host.each
        return Pair(0.0, 0.0, 0.0, next(empty)) if execution is checked._empty else next(following)

    def row(execution: Execution) -> Row:
        host.now += host.each
        return Row(ROW * next(least_row), 0.0) if execution is checked._least else next(following_rows)

    vars(checked)["_pair"], vars(checked)["_row"] = pair, row
    span, outside = samples
    execution = Execution(lambda: None, span=[span] * 3, outside=[outside] * 3)
    execution.busy = [busy] if isinstance(busy, float) else list(busy)
    execution.around = list(around) if isinstance(around, tuple) else [around or span] * len(execution.busy)
    return lambda: checked.check(execution, library)


QUIET = Pair(1e-3, 5e-6, 50e-6, 1.1e-3)


def test_what_agrees_is_timed_once() -> None:
    odd = Pair(1e-3, 5e-6, 50e-6, 7.0)
    assert scripted([QUIET, odd])() == Agreed(QUIET.wall)


@pytest.mark.parametrize("span", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("by", ["wall", "outside"])
@pytest.mark.parametrize(("launches", "library"), [(0, True), (1, False), (7, False)])
def test_limits_are_shares_and_launches(span: float, by: str, launches: int, library: bool) -> None:
    enqueue = 50e-6
    wall = 2 * (span + enqueue * library) + 10 * max(1, launches) * LAUNCH
    outside = 0.05 * span + 10 * LAUNCH
    for factor, refused in ((0.99, False), (1.01, True)):
        times = {"wall": wall / 2, "outside": outside / 2} | {by: factor * {"wall": wall, "outside": outside}[by]}
        pair = Pair(span, times["outside"], enqueue, times["wall"], launches)
        check = scripted([pair], (span, 0.0), span / 2, library)
        if refused:
            with pytest.raises(
                RefusedError, match=f"refused: {times['outside']:.3g} s of the device's .* do not agree"
            ):
                check()
        else:
            assert check() == Agreed(times["wall"])


@pytest.mark.parametrize("late", [Pair(1e-3, 9e-3, 50e-6, 1.1e-3), Pair(1e-3, 5e-6, 50e-6, 9e-3)])
def test_a_disturbed_pair_is_taken_again(late: Pair, host: HostTime) -> None:
    """After a rest of 20 such executions, eight times however long they take."""
    assert scripted([late] * 8 + [QUIET])() == Agreed(QUIET.wall)
    assert host.slept == pytest.approx([20 * late.wall])
    with pytest.raises(RefusedError):
        scripted([late] * 9 + [QUIET])()


def test_a_long_disturbance_is_waited_for(host: HostTime) -> None:
    """For two seconds: the first pair, the one from which they count, and 16 pairs of 1/8 s."""
    late, host.each = Pair(1e-3, 5e-6, 50e-6, 9e-3), 0.125
    assert scripted([late] * 17 + [QUIET])() == Agreed(QUIET.wall)
    with pytest.raises(RefusedError):
        scripted([late] * 18 + [QUIET])()


def test_of_each_time_the_least_counts() -> None:
    """No pair is quiet throughout; none is taken again as soon as all times have been."""
    late = [Pair(1e-3, 9e-3, 50e-6, 1.1e-3, 3), Pair(1.1e-3, 9e-3, 50e-6, 8e-3, 2), Pair(1.2e-3, 5e-6, 50e-6, 9e-3, 2)]
    assert _quiet(late) == Pair(1e-3, 5e-6, 50e-6, 1.1e-3, 2)
    worse = Pair(9e-4, 9e-3, 50e-6, 1.0e-3)
    assert scripted([worse, *late, worse])() == Agreed(1.1e-3), (
        "the first was before the rest, and is no longer counted"
    )


def test_empty_kernels_that_are_quicker_beside_it_refuse_nothing() -> None:
    limit = Pair(1e-3, 5e-6, 0.0, 2e-3 + 9.9 * LAUNCH)
    late = Pair(1e-3, 9e-3, 0.0, 9e-3)
    assert scripted([late, limit], empties=(LAUNCH / 100,))() == Agreed(limit.wall)


def test_what_a_launch_takes_is_the_least_of_eight(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    walls = iter([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    rows = iter([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    launched = []

    def pair(self: Agreement, execution: Execution) -> Pair:
        launched.append(execution)
        return Pair(0.0, 0.0, 0.0, next(walls))

    def row(self: Agreement, execution: Execution) -> Row:
        launched.append(execution)
        return Row(ROW * next(rows), 0.0)

    monkeypatch.setattr(Agreement, "_pair", pair)
    monkeypatch.setattr(Agreement, "_row", row)
    made = Agreement(opencl)
    assert launched == [made._empty] * 8 + [made._least] * 8
    assert (made._launch, made._launch_in_row) == (2.0, 2.0)


def test_a_machine_on_which_empty_kernels_are_late_too_has_no_good_times() -> None:
    """By the upper quartile of eight, after all that is tried again; a case could hide as much."""
    late = Pair(1e-6, 0.0, 0.0, 128e-6 + 10 * LAUNCH)
    with pytest.raises(RefusedError):
        scripted([late], (1e-6, 0.0), 5e-7)()
    loaded = scripted([late], (1e-6, 0.0), 5e-7, empties=(LAUNCH, LAUNCH, 2 * LAUNCH, 3 * LAUNCH))()
    assert loaded.wall == late.wall
    assert f"{late.wall:.3g} s of the host's do not agree with a span of 1e-06 s" in loaded.disturbed
    assert f"an empty kernel takes {2.25 * LAUNCH:.3g} s, as now: the machine is disturbed" in loaded.disturbed
    assert "refused" not in loaded.disturbed


def test_a_quiet_moment_tells_that_nothing_is_hidden() -> None:
    """However late empty kernels are around it."""
    late = Pair(1e-3, 5e-6, 50e-6, 9e-3)
    assert scripted([late] * 8 + [QUIET], empties=(1e3 * LAUNCH,))() == Agreed(QUIET.wall)
    assert scripted([late] * 9, empties=(1e3 * LAUNCH,))().disturbed


def test_empty_kernels_are_late_by_no_work_that_a_suspect_left(host: HostTime) -> None:
    """The device rests ahead of the pairs that are taken again, and ahead of the empty kernels behind them."""
    late = Pair(1e-3, 5e-6, 50e-6, 9e-3)
    with pytest.raises(RefusedError):
        scripted([late])()
    assert host.slept == pytest.approx([20 * late.wall] * 2)
    host.slept.clear()
    with pytest.raises(RefusedError):
        on_cpu(short := Pair(20e-6, 0.0, 20e-6, 300e-6))()
    assert host.slept == pytest.approx([20 * short.wall] * 2), "of both kinds"


def test_samples_that_disagree_ask_for_more_pairs() -> None:
    hidden = Pair(1e-3, 9e-3, 50e-6, 1.1e-3)
    assert scripted([QUIET, hidden])() == Agreed(QUIET.wall), "the samples agree"
    with pytest.raises(RefusedError):
        scripted([QUIET, hidden], (1e-3, 9e-3))()


SHORT = Pair(20e-6, 0.0, 20e-6, 60e-6)


def row_limit(pair: Pair) -> float:
    return ROW * (2 * pair.span + 3 * max(1, pair.launches) * IN_ROW) + 10 * LAUNCH


@pytest.mark.parametrize("launches", [0, 1, 7])
@pytest.mark.parametrize("prepared", [0.0, 1e-2])
def test_a_short_execution_in_a_row_takes_its_span_and_launches(launches: int, prepared: float) -> None:
    pair = Pair(20e-6, 0.0, 20e-6, 60e-6, launches)
    assert not scripted(
        [pair], (20e-6, 0.0), 1e-5, rows=(Row(prepared + 0.99 * row_limit(pair), prepared),)
    )().disturbed
    taken = Row(prepared + 1.01 * row_limit(pair), prepared)
    with pytest.raises(RefusedError, match=f"refused: one of 32 executions in a row takes {taken.each:.3g} s"):
        scripted([pair], (20e-6, 0.0), 1e-5, rows=(taken,))()


@pytest.mark.parametrize(("span", "launches", "library", "asked"), [
    (399e-6, 1, False, True), (401e-6, 1, False, False), (20e-6, 1, True, False), (2.79e-3, 7, False, True),
    (2.81e-3, 7, False, False),
])  # fmt: skip
def test_only_what_is_short_for_its_launches_is_timed_in_a_row(
    span: float, launches: int, library: bool, asked: bool
) -> None:
    pair = Pair(span, 0.0, 20e-6, span, launches)
    check = scripted([pair], (span, 0.0), span / 2, library, rows=(Row(1.0, 0.0),))
    if asked:
        with pytest.raises(RefusedError, match="in a row"):
            check()
    else:
        check()


def test_a_disturbed_row_is_taken_again(host: HostTime) -> None:
    """Of both times the least counts; eight rows are taken at least, and for two seconds."""
    late, quiet = Row(1.0 + row_limit(SHORT), 0.0), Row(0.5 * row_limit(SHORT), 0.0)
    assert scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late,) * 8 + (quiet,))() == Agreed(SHORT.wall)
    with pytest.raises(RefusedError):
        scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late,) * 9 + (quiet,))()
    high = Row(3.0, 3.0 - row_limit(SHORT) / 2), Row(2.0, 0.0)
    with pytest.raises(RefusedError):
        scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(high[1], high[1], high[0]))()
    host.each = 1e-3
    assert scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late,) * 1500 + (quiet,))() == Agreed(SHORT.wall)
    with pytest.raises(RefusedError):
        scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late,) * 2100 + (quiet,))()


def test_a_machine_on_which_the_least_kernels_in_a_row_are_late_too_has_no_good_times() -> None:
    late = Row(1.5 * row_limit(SHORT), 0.0)
    with pytest.raises(RefusedError):
        scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late,), least_rows=(IN_ROW / 9,))()
    near = Row(0.95 * row_limit(SHORT), 0.0)
    assert scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late, near), least_rows=(IN_ROW / 9,))() == Agreed(SHORT.wall)
    slow = (IN_ROW, IN_ROW, 4 * IN_ROW, 5 * IN_ROW)
    loaded = scripted([SHORT], (20e-6, 0.0), 1e-5, rows=(late,), least_rows=slow)()
    assert loaded.wall == SHORT.wall and f"one of 32 executions in a row takes {late.each:.3g} s" in loaded.disturbed


def on_cpu(*pairs: Pair, **keys: Any) -> Any:
    """Short executions on a CPU, where a row would be refused."""
    return scripted(list(pairs), (20e-6, 0.0), 1e-5, kind="cpu", rows=(Row(1.0, 0.0),), **keys)


def alone_limit(span: float, launches: int = 1) -> float:
    return 2 * span + 3 * max(1, launches) * IN_ROW + 3 * LAUNCH


@pytest.mark.parametrize("launches", [0, 1, 7])
def test_a_short_execution_on_a_cpu_takes_its_span_launches_and_a_wait(launches: int) -> None:
    assert not on_cpu(Pair(20e-6, 0.0, 20e-6, 0.99 * alone_limit(20e-6, launches), launches))().disturbed
    late = Pair(20e-6, 0.0, 20e-6, 1.01 * alone_limit(20e-6, launches), launches)
    with pytest.raises(RefusedError, match=f"refused: a short execution takes {late.wall:.3g} s of the host's time"):
        on_cpu(late)()


def test_on_a_cpu_the_least_of_three_and_then_of_many_counts(host: HostTime) -> None:
    late, quiet = Pair(20e-6, 0.0, 20e-6, 300e-6), Pair(20e-6, 0.0, 20e-6, 100e-6)
    assert not on_cpu(late, late, quiet, late)().disturbed
    assert not on_cpu(*[late] * 10, quiet)().disturbed
    with pytest.raises(RefusedError):
        on_cpu(*[late] * 11, quiet)()
    host.each = 1e-3
    assert not on_cpu(*[late] * 1500, quiet)().disturbed


def test_on_a_cpu_the_span_is_of_the_time_that_it_is_compared_at() -> None:
    """A machine that others have made slower makes spans longer, too."""
    before, now = Pair(20e-6, 0.0, 20e-6, 200e-6), Pair(60e-6, 0.0, 20e-6, 200e-6)
    assert alone_limit(before.span) < now.wall < alone_limit(now.span)
    assert not on_cpu(before, before, before, now)().disturbed
    with pytest.raises(RefusedError):
        on_cpu(before)()
    later = Pair(30e-6, 0.0, 20e-6, 900e-6)
    with pytest.raises(RefusedError, match="a span of 3e-05 s"):
        on_cpu(before, before, before, later)()


def test_on_a_cpu_launches_are_of_the_time_that_they_are_compared_at() -> None:
    late = Pair(20e-6, 0.0, 20e-6, 1.5 * alone_limit(20e-6))
    for loaded in (on_cpu(late, empties=(2 * LAUNCH,))(), on_cpu(late, least_rows=(6 * IN_ROW,))()):
        assert f"a short execution takes {late.wall:.3g} s" in loaded.disturbed
    now = Pair(20e-6, 0.0, 20e-6, 0.99 * (alone_limit(20e-6) + 3 * 5 * IN_ROW))
    assert on_cpu(now, least_rows=(6 * IN_ROW,), empties=(LAUNCH / 100,))().disturbed, "what is quicker narrows nothing"
    quiet = Pair(20e-6, 0.0, 20e-6, 0.99 * alone_limit(20e-6))
    assert on_cpu(*[late] * 10, quiet, empties=(1e3 * LAUNCH,))() == Agreed(late.wall)
    with pytest.raises(RefusedError):
        on_cpu(late, empties=(LAUNCH, LAUNCH, 1.1 * LAUNCH, 3 * LAUNCH))()


@pytest.mark.parametrize(("busy", "refused"), [
    ((1.04e-3,), False), ((1.06e-3,), True), ((1.07e-3, 1.06e-3), True), ((1.06e-3, 1.04e-3), False), ((), False),
])  # fmt: skip
def test_kernels_do_not_overlap(busy: tuple[float, ...], refused: bool) -> None:
    check = scripted([QUIET], busy=busy)
    if refused:
        with pytest.raises(RefusedError, match=r"more than the span of 0\.001 s around them"):
            check()
    else:
        check()


def test_kernels_are_held_to_the_span_of_their_own_execution() -> None:
    """Where events between kernels take time, they are timed in executions that are longer than the samples."""
    assert not scripted([QUIET], busy=(1.8e-3,), around=2e-3)().disturbed
    with pytest.raises(RefusedError, match=r"more than the span of 0\.0005 s around them"):
        scripted([QUIET], busy=(9e-4,), around=5e-4)()


def test_one_execution_whose_kernels_fit_into_its_span_is_enough() -> None:
    """The one that fits best, and not the shortest."""
    assert not scripted([QUIET], busy=(2e-3, 1e-3), around=(2e-3, 9e-4))().disturbed


class Clock:
    """A device and a host's clock that only pretend: what is enqueued takes its time when the device is waited for."""

    def __init__(self) -> None:
        self.now, self.pending = 0.0, 0.0
        self.log: list[str] = []

    def finish(self) -> None:
        self.now, self.pending = self.now + self.pending, 0.0

    def timed(self, execute: Callable[[], None]) -> Times:
        self.log.append("gate")
        execute()
        span, self.pending = self.pending, 0.0
        return Times(span, span, 3, {}, 0.25)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Such a device; its clock is the host's."""
    made = Clock()
    monkeypatch.setattr(agreement, "time", SimpleNamespace(perf_counter=lambda: made.now))
    return made


def agreement_on(clock: Clock) -> Agreement:
    """Clocks are compared on the device, without what is timed when that begins."""
    made = object.__new__(Agreement)
    made._device = clock  # type: ignore[assignment]
    return made


def test_a_pair_is_one_execution_with_and_one_without_a_gate(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def execute() -> None:
        clock.log.append("execute")
        clock.now += 128.0  # longer than the clock has run
        clock.pending += 8.0

    def prepare() -> None:
        clock.log.append("prepare")
        clock.pending += 100.0

    execution = Execution(execute, prepare, lambda: clock.log.append("inspect"))
    monkeypatch.setattr(clock, "timed", lambda enqueue: (clock.finish(), Clock.timed(clock, enqueue))[1])
    assert agreement_on(clock)._pair(execution) == Pair(span=8.0, outside=0.25, enqueue=128.0, wall=136.0, launches=3)
    assert clock.log == ["prepare", "gate", "execute", "inspect", "prepare", "execute", "inspect"]


def test_a_row_is_executions_that_are_each_prepared_and_waited_for_once(clock: Clock) -> None:
    def execute() -> None:
        clock.log.append("execute")
        clock.pending += 8.0

    def prepare() -> None:
        clock.log.append("prepare")
        clock.now += 0.5

    row = agreement_on(clock)._row(Execution(execute, prepare, lambda: clock.log.append("inspect")))
    assert row == Row(executed=ROW * 8.5, prepared=ROW * 0.5)
    assert row.each == 8.0
    assert clock.log == ["prepare"] * ROW + ["prepare", "execute"] * ROW + ["inspect"]


SOURCE = """
__kernel void chain(__global float *x, uint steps) {
    float sum = x[get_global_id(0)];
    for (uint i = 0; i < steps; ++i) sum = sum * 0.999f + 0.5f;
    x[get_global_id(0)] = sum;
}
__kernel void one(__global float *x) { x[0] = 1.0f; }
"""


def test_work_that_is_enqueued_past_the_device_lies_outside_the_span(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "time", time)
    monkeypatch.setattr(agreement, "PATIENCE", 0.05)
    monkeypatch.setattr(agreement, "REST", 0)
    device: Any = opencl
    module = device.load(get("opencl").build("chain.cl", SOURCE, {}, device.target))
    chain, one = module.kernel("chain"), module.kernel("one")
    x = device.upload(np.zeros(4096, np.float32))
    steps = np.uint32(20_000)

    def honest() -> None:
        device.launch(chain, 256, 16, x, steps)

    def untraced() -> None:
        chain.handle(device._queue, (4096,), (16,), x.handle, steps)
        device.launch(one, 1, 1, x)

    while device.timed(honest).span < 0.25:  # far above ten empty kernels, which other tests beside this one delay
        steps *= np.uint32(2)
    checked = Agreement(device)
    for execute in (honest, untraced):
        execution = Execution(execute)
        for _ in range(3):
            times = device.timed(execute)
            execution.span.append(times.span)
            execution.outside.append(times.outside)
        if execute is honest:
            assert checked.check(execution, library=False).wall > 0
        else:
            assert min(execution.outside) > max(execution.span), "the device's own clock tells"
            with pytest.raises(RefusedError, match="work where no clock is"):
                checked.check(execution, library=False)
    x.free()
