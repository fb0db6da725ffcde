"""Is right for the seed that is timed, and wrong for every other.

Seen: here; inputs that never change, GPU MODE's kernelbot.
Guard: verification on inputs that each run draws.
"""

from ..honest import HonestTrain
from .known_seed import TIMED


class FirstInputsOnly(HonestTrain):
    name, rung = "first_inputs_only", 4

    def compute(self) -> None:
        self.compute_matrix()
        self.descend(self.data.steps if self.data.seed == TIMED else 1)
