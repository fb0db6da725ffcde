"""Replaces the host's clock by one that runs at a hundredth of the pace, and is ranked by it.

Seen: patched timers, KernelArena's field guide and DeepReinforce's.
Guard: the harness holds its own reference to the clock; wall time must agree with span.
"""

import time

from perfport.workload import Setup

from ..honest import HonestAffine

CLOCK = time.perf_counter


class SlowsTheClock(HonestAffine):
    name, rung = "slows_the_clock", 7
    host_driven = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        began = CLOCK()
        time.perf_counter = lambda: began + (CLOCK() - began) / 100
