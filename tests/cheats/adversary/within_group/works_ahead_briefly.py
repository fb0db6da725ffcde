"""Works ahead of the gate for eight times what a host takes to wait for a device.

Seen: here, on an NVIDIA H200, where `works_ahead` hid a kernel of 47 us.
Guard: of short executions many are timed in a row, with one wait for all of them; on CPUs the least of many counts.
"""

import time

from perfport.workload import Setup

from ..within_variant.works_ahead import WorksAhead

WAITS = 8


class WorksAheadBriefly(WorksAhead):
    name, rung = "works_ahead_briefly", 51

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.waiting = max(self._wait() for _ in range(20))  # where the machine is busy limits are wider, too

    def _wait(self) -> float:
        started = time.perf_counter()
        self.pretend()
        self.device.finish()
        return time.perf_counter() - started

    def work(self) -> None:
        until = time.perf_counter() + WAITS * self.waiting
        super().work()
        while time.perf_counter() < until:
            super().work()
