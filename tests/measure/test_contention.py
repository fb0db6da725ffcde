"""Foreign load: the share of the processor that others took, on devices that need it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from perfport.measure import contention
from perfport.measure.contention import LOOK_S, Watch, wait_until_quiet


class Device:
    """A device that may have throttled."""

    def __init__(self, kind: str = "cpu", throttled: tuple[str, ...] = ()) -> None:
        self.info = type("I", (), {"kind": kind})()
        self._throttled = throttled

    def clocks(self) -> dict[str, Any]:
        return {"throttled": self._throttled}


class Core:
    """Seconds of a core, as psutil's tuples have them."""

    def __init__(self) -> None:
        self.idle, self.user = 100.0, 50.0

    def __iter__(self) -> Iterator[float]:
        return iter((self.idle, self.user))


def reason(monkeypatch: pytest.MonkeyPatch, device: Any, busy: float, own: float, elapsed: float = 10.0) -> str:
    """What a watch says after the processor was busy for so many seconds, and this process for some of them."""
    readings = iter([(100.0, 50.0), (100.0 + busy, 50.0 + own)])
    clock = iter([0.0, elapsed])
    monkeypatch.setattr(Watch, "_read", lambda self: next(readings))
    monkeypatch.setattr(contention.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(contention, "usable", lambda: {0, 1, 2, 3})
    monkeypatch.setattr(contention.psutil, "cpu_times", lambda percpu: [Core()] * 4)
    return Watch(device).reason()


@pytest.mark.parametrize(
    ("busy", "own", "expected"),
    [(40.0, 40.0, ""), (15.9, 10.0, ""), (16.1, 10.0, "other processes used 15% of the processor meanwhile")],
)
def test_others_may_use_a_share_of_all_cores(
    monkeypatch: pytest.MonkeyPatch, busy: float, own: float, expected: str
) -> None:
    assert reason(monkeypatch, Device(), busy, own) == expected


def test_a_gpu_does_not_need_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(monkeypatch, Device("gpu"), 40.0, 0.0) == ""


def test_half_a_second_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(monkeypatch, Device(), 40.0, 0.0, elapsed=0.4) == ""


def test_a_device_that_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    throttled = Device("gpu", ("power", "heat"))
    assert reason(monkeypatch, throttled, 0.0, 0.0) == "the device throttled (power, heat)"


def test_a_pinned_process_is_disturbed_on_its_own_cores_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others keep core 1 busy for 9 s of 10."""
    cores = [Core(), Core()]
    monkeypatch.setattr(contention.psutil, "cpu_times", lambda percpu: cores)
    for own, expected in ({0}, ""), ({1}, "other processes used 90% of the processor meanwhile"), ({0, 1}, "45%"):
        clock = iter([0.0, 10.0])
        monkeypatch.setattr(contention.time, "perf_counter", lambda clock=clock: next(clock))
        monkeypatch.setattr(contention, "usable", lambda own=own: own)
        watch = Watch(Device())  # type: ignore[arg-type]
        cores[0].idle, cores[1].idle, cores[1].user = cores[0].idle + 10, cores[1].idle + 1, cores[1].user + 9
        told = watch.reason()
        assert expected in told and bool(expected) == bool(told)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins nothing")
def test_a_process_is_watched_on_the_cores_that_it_is_pinned_to() -> None:
    core = max(os.sched_getaffinity(0))
    program = (
        f"import os; os.sched_setaffinity(0, [{core}])\n"
        "from types import SimpleNamespace; from perfport.measure.contention import Watch\n"
        "print(Watch(SimpleNamespace())._cores)"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == f"{{{core}}}\n"


def test_cores_of_which_no_times_are_told_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention.psutil, "cpu_times", lambda percpu: [Core(), Core(), Core(), Core()])
    monkeypatch.setattr(contention, "usable", lambda: {2, 3, 4, 5})
    assert Watch(Device())._cores == {2, 3}  # type: ignore[arg-type]
    monkeypatch.setattr(contention, "usable", lambda: {7})
    assert Watch(Device())._cores == {0, 1, 2, 3}  # type: ignore[arg-type]


def test_a_system_that_tells_no_times_of_cores_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention.psutil, "cpu_times", lambda percpu: [])
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(contention.time, "perf_counter", lambda: next(clock))
    assert Watch(Device()).reason() == ""  # type: ignore[arg-type]


def test_own_work_is_no_foreign_load() -> None:
    watch = Watch(Device())  # type: ignore[arg-type]
    busy, own = watch._read()
    sum(range(3_000_000))
    later, used = watch._read()
    assert later >= busy and used > own


@pytest.mark.parametrize(
    ("limit", "busy", "looks", "expected"),
    [(0.0, 0, 1, ""), (0.0, 9, 1, "busy"), (10.0, 3, 4, ""), (10.0, 99, 10, "busy"), (2.0, 99, 2, "busy")],
)
def test_waiting_ends_with_the_load_or_with_the_time(
    monkeypatch: pytest.MonkeyPatch, limit: float, busy: int, looks: int, expected: str
) -> None:
    clock, taken = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        taken.append(seconds)

    monkeypatch.setattr(contention.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(contention.time, "sleep", sleep)
    monkeypatch.setattr(Watch, "reason", lambda self: "busy" if len(taken) <= busy else "")
    assert wait_until_quiet(Device(), limit) == expected  # type: ignore[arg-type]
    assert taken == [LOOK_S] * looks
