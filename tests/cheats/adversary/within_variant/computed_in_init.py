"""Trains when it is built; an execution copies the result.

Seen: here; pre-computed answers, METR.
Guard: the same built variant is verified on inputs drawn anew.
"""

from perfport.workload import Setup

from ..honest import HonestTrain


class ComputedInInit(HonestTrain):
    name, rung = "computed_in_init", 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.ready = setup.scratch(self.w.nbytes)
        self.compute()
        self.fetch(self.w, self.ready)

    def launch(self) -> None:
        self.fetch(self.ready, self.w)
