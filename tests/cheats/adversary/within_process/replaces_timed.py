"""Replaces the device's clock by one that gives a hundredth of each time.

Seen: patched timers, KernelArena's field guide and DeepReinforce's.
Guard: the device's methods are the harness's own when a case ends; wall time must agree with span.
"""

from dataclasses import replace

from perfport.workload import Setup

from ..honest import HonestAffine


class ReplacesTimed(HonestAffine):
    name, rung = "replaces_timed", 6

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        timed = setup.device.timed

        def hundredth(*arguments, **options):
            times = timed(*arguments, **options)
            return replace(times, span=times.span / 100, busy=times.busy / 100)

        setup.device.timed = hundredth
