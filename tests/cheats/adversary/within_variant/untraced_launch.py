"""Enqueues the work past the harness, on its own queue, ahead of a traced launch of nothing.

Seen: here; kin of the patched event timers of KernelArena's field guide.
Guard: span counts from the gate; wall time must agree with span.
"""

from ..honest import HonestAffine
from ..problems import TIMES


class UntracedLaunch(HonestAffine):
    name, rung = "untraced_launch", 4

    def launch(self) -> None:
        for _ in range(TIMES):
            self.untraced(self.device._queue, *self.arguments())
        self.pretend()
