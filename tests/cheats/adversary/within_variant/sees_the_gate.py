"""Asks whether its queue stands still, as behind the gate of a timed execution, and then does nothing.

Seen: here; detection of warm-up, in the exploits of GPU MODE's pygpubench.
Guard: a timed sample is verified, behind the same gate.
"""

from ..honest import HonestAffine


class SeesTheGate(HonestAffine):
    name, rung = "sees_the_gate", 19

    def launch(self) -> None:
        if self.gated():
            self.pretend()
        else:
            self.compute()
