"""Hands the work to a thread that begins when the clock has stopped, and joins it when results are asked for.

Seen: as "thread injection" in KernelArena's field guide; work deferred past the timer, GPU MODE's reference kernels.
Guard: a timed sample's outputs are read at once; wall time, threads and the device must be at rest then.
"""

import threading
import time

import pyopencl as cl

from perfport.workload import Setup

from ..honest import HonestAffine


class DeferredThread(HonestAffine):
    name, rung = "deferred_thread", 6

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.queue = cl.CommandQueue(self.device.context)
        self.thread = threading.Thread()

    def launch(self) -> None:
        self.join()
        self.thread = threading.Thread(target=self.work, args=(self.device.record(),))
        self.thread.start()
        self.pretend()

    def work(self, before: cl.Event) -> None:
        time.sleep(0.02)
        cl.enqueue_barrier(self.queue, wait_for=[before])
        self.untraced(self.queue, *self.arguments())
        self.queue.finish()

    def join(self) -> None:
        if self.thread.ident:
            self.thread.join()

    def results(self):
        self.join()
        return {}
