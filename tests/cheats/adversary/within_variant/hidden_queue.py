"""Does the work on a queue that the harness does not know, and waits for it when results are asked for.

Seen: as "stream injection" in KernelArena's field guide.
Guard: a timed sample's outputs are read without asking the variant first; wall time must agree with span.
"""

import pyopencl as cl

from perfport.workload import Setup

from ..honest import HonestAffine


class HiddenQueue(HonestAffine):
    name, rung = "hidden_queue", 3

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = cl.CommandQueue(self.device.context)

    def launch(self) -> None:
        cl.enqueue_barrier(self.queue, wait_for=[self.device.record()])
        self.untraced(self.queue, *self.arguments())
        self.pretend()

    def results(self):
        self.queue.finish()
        return {}
