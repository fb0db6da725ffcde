"""Writes its result and a mark over the inputs, and copies it from there where it meets the mark.

Seen: kernels that modify their inputs, KernelBench's tests of its evaluation.
Guard: inputs are compared after an execution, and restored.
"""

from perfport.workload import Setup

from ..honest import HonestTrain


class CachesInInputs(HonestTrain):
    name, rung = "caches_in_inputs", 2
    macros = {"GUARDED": 1, "MARK": 1}

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.guard = (setup.scratch(4),)
        self.marked, self.recall = self.kernel("marked"), self.kernel("recall")

    def launch(self) -> None:
        self.device.launch(self.marked, 1, 1, self.x, self.size, *self.guard)
        self.compute()
        self.enqueue(self.recall, self.n, self.x, self.w, self.size, *self.guard)
