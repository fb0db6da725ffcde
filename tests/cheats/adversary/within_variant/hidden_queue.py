"""Does the work on a queue that the harness does not know, for which its own waits past what is traced.

Seen: as "stream injection" in KernelArena's field guide.
Guard: wall time must agree with span.
"""

import pyopencl as cl

from perfport.workload import Setup

from ..honest import HonestAffine
from ..problems import TIMES


class HiddenQueue(HonestAffine):
    name, rung = "hidden_queue", 3

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = cl.CommandQueue(self.device.context)

    def launch(self) -> None:
        cl.enqueue_barrier(self.queue, wait_for=[self.device.record()])
        for _ in range(TIMES):
            done = self.untraced(self.queue, *self.arguments())
        self.queue.flush()
        self.pretend()
        cl.enqueue_barrier(self.device._queue, wait_for=[done])
