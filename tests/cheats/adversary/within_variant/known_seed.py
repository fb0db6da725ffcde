"""Knows the answer for the seed that is timed, and computes for every other.

Seen: here; inputs that never change, GPU MODE's kernelbot.
Guard: the same built variant is verified on inputs drawn anew.
"""

import numpy as np

from perfport.workload import Setup

from ..honest import HonestTrain

TIMED = 7  # the seed of the experiment of the test; the default is as well known


class KnownSeed(HonestTrain):
    name, rung = "known_seed", 3

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.known = setup.problem.seed == TIMED
        if self.known:  # in place of a table of answers
            self.ready = setup.device.upload(setup.problem.reference.astype(np.float32))

    def launch(self) -> None:
        if self.known:
            self.fetch(self.ready, self.w)
        else:
            self.compute()
