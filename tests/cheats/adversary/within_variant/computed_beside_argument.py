"""Computes when it is built, of a problem whose data are kernel arguments, too; an execution copies the results.

Seen: here, when the suite was read.
Guard: the same built variant is verified on other values in its buffers, beside which the arguments are still right.
"""

import numpy as np

from perfport.workload import Setup

from ..honest import HonestScaled


class ComputedBesideArgument(HonestScaled):
    name, rung = "computed_beside_argument", 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.copy = self.kernel("copy")
        self.compute()
        shapes = {self.y: (self.n, self.m), self.sums: (self.n,)}
        self.kept = [(setup.upload(setup.device.read(each, np.float32, shape)), each) for each, shape in shapes.items()]

    def launch(self) -> None:
        for kept, output in self.kept:
            items = output.nbytes // 4
            self.enqueue(self.copy, items, kept, output, np.uint32(items))
