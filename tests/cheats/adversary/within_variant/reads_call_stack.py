"""Looks up the call stack, and works only where no clock of the harness is running.

Seen: here; kin of the detection of warm-up, in the exploits of GPU MODE's pygpubench.
Guard: a timed sample is verified, by the same call as every other.
"""

import sys

from ..honest import HonestAffine

CLOCKS = {"timed", "_wall"}


class ReadsCallStack(HonestAffine):
    name, rung = "reads_call_stack", 18

    def launch(self) -> None:
        frame, callers = sys._getframe(), set()
        while frame := frame.f_back:
            callers.add(frame.f_code.co_name)
        if callers & CLOCKS:
            self.pretend()
        else:
            self.compute()
