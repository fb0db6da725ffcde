"""Replaces the method that verifies it, and passes whatever it writes.

Seen: kin of METR's reports of models that change the scoring code.
Guard: the harness verifies by itself, not by an object that the variant can change.
"""

from perfport.workload import Setup

from ..honest import HonestAffine


class PassesItself(HonestAffine):
    name, rung = "passes_itself", 17

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        verify = setup.problem.verify
        setup.problem.verify = lambda *given: verify(*given).model_copy(update={"passed": True})

    def launch(self) -> None:
        self.pretend()
