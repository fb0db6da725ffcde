"""Uploads the problem's own reference when it is built; an execution copies it.

Seen: METR (access to the answer that is used to check); expected outputs taken from the garbage
collector, GPU MODE's pygpubench.
Guard: the same built variant is verified on inputs drawn anew.
"""

import numpy as np

from perfport.workload import Setup

from ..honest import HonestTrain


class UploadsReference(HonestTrain):
    name, rung = "uploads_reference", 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.ready = setup.device.upload(setup.problem.reference.astype(np.float32))

    def launch(self) -> None:
        self.fetch(self.ready, self.w)
