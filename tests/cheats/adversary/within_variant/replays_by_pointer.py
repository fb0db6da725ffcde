"""Keeps the result in memory of its own, by the address of the input, and copies it where that comes again.

Seen: result replay by pointer, GPU MODE's kernelbot; a cache by pointer arithmetic in KernelArena's field guide.
Guard: the same built variant is verified on inputs drawn anew, at the same address.
"""

from perfport.workload import Setup

from ..honest import HonestTrain


class ReplaysByPointer(HonestTrain):
    name, rung = "replays_by_pointer", 8

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.kept = setup.device.empty(self.w.nbytes)  # not the harness's scratch
        self.known: set[int] = set()

    def launch(self) -> None:
        address = self.x.handle.int_ptr
        if address in self.known:
            self.fetch(self.kept, self.w)
        else:
            self.compute()
            self.fetch(self.w, self.kept)
        self.known.add(address)
