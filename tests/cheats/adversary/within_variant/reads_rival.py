"""Takes the result out of the output of another variant of its group, through the garbage collector.

Seen: Sakana's AI CUDA Engineer and KernelBench (memory that holds the reference's result); `gc.get_objects()` in the
exploits of GPU MODE's pygpubench.
Guard: timed samples on inputs drawn anew, which no rival has seen.
"""

import gc

from perfport.workload import Buffer, Setup

from ..honest import HonestTrain


class ReadsRival(HonestTrain):
    name, rung = "reads_rival", 10

    def rival(self) -> Buffer | None:
        for other in gc.get_objects():
            if (
                type(other) is Setup
                and other.session is self.setup.session
                and other is not self.setup
                and other.buffers
            ):
                return other.outputs["w"].buffer
        return None

    def launch(self) -> None:
        if source := self.rival():
            self.fetch(source, self.w)
        else:
            self.compute()
