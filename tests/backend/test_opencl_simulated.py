"""The simulator's device: what executes commands does so in one thread at a time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import RLock
from typing import Any

import pytest

from perfport.backend.opencl_device import OpenCLDevice
from perfport.backend.opencl_simulated import EXECUTING, SimulatedDevice, _in_turn


@pytest.mark.parametrize("name", EXECUTING)
def test_what_executes_commands_is_taken_in_turn(name: str) -> None:
    assert getattr(SimulatedDevice, name).__wrapped__ is getattr(OpenCLDevice, name)


def test_threads_take_turns() -> None:
    within: list[int] = []

    def method(self: Any) -> int:
        within.append(1)
        time.sleep(0.005)
        most = len(within)
        within.pop()
        return most

    device = SimulatedDevice.__new__(SimulatedDevice)
    device.turn = RLock()
    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(lambda _: _in_turn(method)(device), range(12))) == 1
    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(lambda _: method(device), range(12))) > 1, "without turns they meet"
