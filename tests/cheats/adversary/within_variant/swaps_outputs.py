"""Declares decoys: what is poisoned is not what is read, because it swaps the two when results are asked for.

Seen: here.
Guard: the harness keeps its own list of outputs.
"""

from dataclasses import replace

from perfport.workload import Setup

from ..honest import HonestAffine


class SwapsOutputs(HonestAffine):
    name, rung = "swaps_outputs", 16

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.compute()
        self.decoys = {"y": setup.scratch(self.y.nbytes), "sums": setup.scratch(self.sums.nbytes)}
        self.point(self.decoys)

    def point(self, buffers) -> None:
        for name, buffer in buffers.items():
            self.setup.outputs[name] = replace(self.setup.outputs[name], buffer=buffer)

    def launch(self) -> None:
        self.point(self.decoys)
        self.pretend()

    def results(self):
        self.point({"y": self.y, "sums": self.sums})
        return {}
