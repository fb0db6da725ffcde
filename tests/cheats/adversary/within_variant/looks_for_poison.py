"""Reads its output back by a queue of its own, and works only where it holds poison.

Seen: here.
Guard: reads inside `launch` are refused; a timed sample is poisoned and verified, and then costs its work.
"""

import numpy as np
import pyopencl as cl

from perfport.workload import Setup

from ..honest import HonestAffine


class LooksForPoison(HonestAffine):
    name, rung = "looks_for_poison", 20

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = cl.CommandQueue(self.device.context)
        self.seen = np.empty(1, np.float32)

    def launch(self) -> None:
        self.gated()  # what was enqueued before is done, or held by the gate
        cl.enqueue_copy(self.queue, self.seen, self.sums.handle)
        if np.isnan(self.seen[0]):
            self.compute()
        else:
            self.pretend()
