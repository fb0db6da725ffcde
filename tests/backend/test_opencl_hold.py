"""A GPU is kept busy while its runtime submits what is queued; here a CPU's runtime stands for a GPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.backend.opencl_hold import MARGIN, OTHERS, Hold
from perfport.backend.opencl_launch import Launch

SLOW = 5e-4  # seconds to submit a launch


class Timed:
    """Events of a timed execution: of what holds it, and of its first and its last launch."""

    def __init__(self, opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch, kind: str = "gpu") -> None:
        self.device: Any = backend.get("opencl").open(opencl.info.model_copy(update={"kind": kind}))
        source = "__kernel void add(__global int *x) { x[0] += 1; }"
        self.kernel = self.device.load(backend.get("opencl").build("add.cl", source, {}, None)).kernel("add")
        self.x = self.device.upload(np.zeros(1, np.int32))
        self.held: list[cl.Event] = []
        self.launched: list[cl.Event] = []
        self._keep(monkeypatch, Hold, "enqueue", self.held)
        self._keep(monkeypatch, Launch, "traced", self.launched)

    @staticmethod
    def _keep(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, kept: list[cl.Event]) -> None:
        plain = getattr(kind, name)

        def keeping(self: Any) -> cl.Event:
            kept.append(plain(self))
            return kept[-1]

        monkeypatch.setattr(kind, name, keeping)

    def run(self, launches: int) -> None:
        self.held.clear()
        self.launched.clear()
        times = self.device.timed(lambda: [self.device.launch(self.kernel, 1, 1, self.x) for _ in range(launches)])
        assert times.launches == launches


@pytest.mark.parametrize("launches", [1, 2, 3, 40])
def test_what_is_timed_begins_when_all_of_it_could_be_submitted(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch, launches: int
) -> None:
    timed = Timed(opencl, monkeypatch)
    timed.device._hold.per_launch = SLOW  # as if the runtime were that slow
    timed.run(launches)
    (hold,), first = timed.held, timed.launched[0]
    assert hold.profile.end <= first.profile.start, "what is timed begins behind it"
    took = (hold.profile.end - hold.profile.start) * 1e-9
    assert took > 0.3 * MARGIN * (launches + OTHERS) * SLOW, "and it takes as long as submitting all of them"
    assert timed.device.read(timed.x, np.int32, (1,))[0] == launches


def test_what_it_takes_is_measured_on_the_device(opencl: OpenDevice) -> None:
    device: Any = backend.get("opencl").open(opencl.info.model_copy(update={"kind": "gpu"}))
    hold = device._hold
    assert device._hold is hold, "once"
    assert 1e-11 < hold.per_turn < 1e-5 and 0 < hold.per_launch < 1e-2


def test_a_clock_that_rises_is_followed(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured at a low clock a turn seems long, and the hold would be over too soon."""
    timed = Timed(opencl, monkeypatch)
    known = timed.device._hold.per_turn
    timed.device._hold.per_turn = 1000 * known
    for _ in range(3):
        timed.run(200)
    assert timed.device._hold.per_turn < 100 * known


def test_an_execution_that_fails_is_not_held_for_longer(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(opencl, monkeypatch)

    def fail() -> None:
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        timed.device.timed(fail)
    timed.run(2)
    assert timed.device.read(timed.x, np.int32, (1,))[0] == 2


def test_a_cpu_is_not_held(opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(opencl, monkeypatch, "cpu")
    timed.run(3)
    assert timed.device._hold is None and not timed.held
