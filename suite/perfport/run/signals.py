"""Signals that ask a run to end: it ends in order, as by Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

from ..model.errors import Stopped

#: Sent by batch systems, by `kill` and at shutdown; and to every process of a terminal that is closed.
ASKING = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """Raise `Stopped` where such a signal comes meanwhile, unless it is ignored (``nohup``) or handled already."""
    taken = [number for number in ASKING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _: FrameType | None) -> None:
    for other in ASKING:  # a closed terminal may bring both: what is left to be done is done once
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGHUP:
        _leave_terminal()
    raise Stopped(number)


def _leave_terminal() -> None:
    """Write to nowhere what would go to a terminal that is gone: each attempt would raise an error of its own."""
    for output in (1, 2):
        try:
            os.write(output, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, output)
            os.close(nowhere)
