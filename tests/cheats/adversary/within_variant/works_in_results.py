"""Does the work when results are asked for, after the clock has stopped.

Seen: here; as "lazy evaluation" in KernelArena's field guide.
Guard: launches inside `results()` are refused.
"""

from ..honest import HonestAffine


class WorksInResults(HonestAffine):
    name, rung = "works_in_results", 5

    def launch(self) -> None:
        self.pretend()

    def results(self):
        self.compute()
        self.device.finish()
        return {}
