"""Works on a queue of its own while the device's is held by the gate, and waits for it before the gate can open.

Seen: here; as "stream injection" in KernelArena's field guide.
Guard: wall time must agree with span, of short executions that of many in a row.
"""

import time

import numpy as np
import pyopencl as cl

from perfport.workload import Setup

from ..honest import HonestAffine


class WorksAhead(HonestAffine):
    name, rung = "works_ahead", 21

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = cl.CommandQueue(self.device.context)
        self.seen = np.empty(1, np.float32)

    def launch(self) -> None:
        deadline = time.monotonic() + 0.01
        self.seen[0] = 0
        while time.monotonic() < deadline and not np.isnan(self.seen[0]):  # until what was enqueued before is done
            cl.enqueue_copy(self.queue, self.seen, self.sums.handle)
        self.work()
        self.pretend()

    def work(self) -> None:
        self.untraced(self.queue, *self.arguments())
        self.queue.finish()
