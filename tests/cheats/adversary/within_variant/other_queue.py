"""Does the work on another queue of the device, which no gate holds, between two launches of nothing.

Seen: here; as "stream injection" at KernelBench and in KernelArena's field guide.
Guard: launches on other queues are refused; busy time above span is an error.
"""

from perfport.workload import Setup

from ..honest import HonestAffine


class OtherQueue(HonestAffine):
    name, rung = "other_queue", 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = self.device.queue()

    def launch(self) -> None:
        self.gated()  # what was enqueued before is done, or held by the gate
        self.pretend()
        self.enqueue(*self.arguments(), queue=self.queue)
        self.queue.finish()
        self.pretend()
