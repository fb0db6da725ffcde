"""Replaces the device's fill, so that it hears of each poisoning, and works in the execution after it alone.

Seen: here.
Guard: the device's methods are the harness's own when a case ends; a timed sample is poisoned too, and costs its work.
"""

from perfport.workload import Setup

from ..honest import HonestAffine


class WorksOnFill(HonestAffine):
    name, rung = "works_on_fill", 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.due, self.fill = True, setup.device.fill
        setup.device.fill = self.heard

    def heard(self, buffer, byte) -> None:
        self.due = True
        self.fill(buffer, byte)

    def launch(self) -> None:
        if self.due:
            self.compute()
        else:
            self.pretend()
        self.due = False
