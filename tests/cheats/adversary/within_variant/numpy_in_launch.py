"""Computes with NumPy inside `launch` and uploads by another queue: neither device nor span sees it.

Seen: here.
Guard: reads, writes and host arithmetic inside `launch` are refused unless `host_driven`; wall must agree with span.
"""

import numpy as np

from perfport.workload import Setup

from ..honest import HonestAffine


class NumpyInLaunch(HonestAffine):
    name, rung = "numpy_in_launch", 7

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = self.device.queue()

    def launch(self) -> None:
        self.gated()  # what was enqueued before is done, or held by the gate
        y = np.float32(2) * self.data.x + np.float32(1)
        self.device.write(self.y, y, self.queue)
        self.device.write(self.sums, y.sum(axis=1), self.queue)
        self.queue.finish()
        self.pretend()
