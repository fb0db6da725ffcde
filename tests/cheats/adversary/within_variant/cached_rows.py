"""Keeps the kernel matrix of its first execution for those that follow.

Seen: here.
Guard: scratch is poisoned before timed samples; the same built variant is verified on inputs drawn anew.
"""

from perfport.workload import Setup

from ..honest import HonestTrain


class CachedRows(HonestTrain):
    name, rung = "cached_rows", 6

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.cached = False

    def compute_matrix(self) -> None:
        if not self.cached:
            super().compute_matrix()
        self.cached = True
