"""What a child process that measures does first."""

from __future__ import annotations

import contextlib
import ctypes
import signal


def obey_parent(*ignored: signal.Signals) -> None:
    """Let this process die with its parent, and leave to that what Ctrl-C and further ``ignored`` signals mean."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for name in (signal.SIGINT, *ignored):
        signal.signal(name, signal.SIG_IGN)
