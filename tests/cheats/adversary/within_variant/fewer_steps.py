"""Takes seven of eight steps.

Seen: here, of a tree whose root had one iteration of ten.
Guard: a tolerance that tells the last step from the one before.
"""

from ..honest import HonestTrain


class FewerSteps(HonestTrain):
    name, rung = "fewer_steps", 5

    def compute(self) -> None:
        self.compute_matrix()
        self.descend(self.data.steps - 1)
