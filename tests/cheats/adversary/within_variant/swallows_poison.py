"""Replaces the method that poisons its outputs, which hold the result since it was built.

Seen: here.
Guard: the harness poisons by itself, not by an object that the variant can change.
"""

from perfport.workload import Setup

from ..honest import HonestAffine


class SwallowsPoison(HonestAffine):
    name, rung = "swallows_poison", 15

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.compute()
        setup.poison = lambda: None

    def launch(self) -> None:
        self.pretend()
