"""What a child process does first."""

from __future__ import annotations

import contextlib
import ctypes
import signal


def die_with_parent() -> None:
    """Let this process be killed when its parent ends, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def obey_parent(*ignored: signal.Signals) -> None:
    """Let a process that measures die with its parent, and leave to that what signals mean.

    These are Ctrl-C and the end of the terminal, which every process of a terminal gets, and further ``ignored`` ones.
    """
    die_with_parent()
    for name in (signal.SIGINT, signal.SIGHUP, *ignored):
        signal.signal(name, signal.SIG_IGN)
