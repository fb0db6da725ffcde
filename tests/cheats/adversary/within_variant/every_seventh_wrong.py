"""Is wrong in every seventh launch, as a race may be.

Seen: here.
Guard: at least 20 executions of a variant are compared.
"""

from perfport.workload import Setup

from ..honest import HonestAffine


class EverySeventhWrong(HonestAffine):
    name, rung = "every_seventh_wrong", 9

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.launches = 0

    def compute(self) -> None:
        self.launches += 1
        self.enqueue(*self.arguments(2.0 if self.launches % 7 else 3.0))
