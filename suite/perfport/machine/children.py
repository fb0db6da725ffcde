"""What a child process does first, and how one answers its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: Ctrl-C and the end of the terminal: every process of a terminal gets them.
LEFT = (signal.SIGINT, signal.SIGHUP)


def die_with_parent() -> None:
    """Let this process be killed when its parent ends, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def held_back(*further: signal.Signals) -> Iterator[None]:
    """Block, in every thread of a process that is started meanwhile, the signals that `obey_parent` will ignore there.

    To ignore them is not enough: a compiler that runs in the process (PoCL's LLVM) takes them over, and deletes what it
    is writing when one comes. Libraries start threads before the process's own first line.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*LEFT, *further})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def obey_parent(*ignored: signal.Signals) -> None:
    """Let a process that measures die with its parent, and leave to that what signals mean.

    These are `LEFT` and further ``ignored`` ones. What starts it does so in `held_back`.
    """
    die_with_parent()
    for name in (*LEFT, *ignored):
        signal.signal(name, signal.SIG_IGN)


def answer(connection: Connection, output: Path, ready: Callable[[], Callable[[Any], Any]]) -> None:
    """Answer the parent's questions until it closes the connection. What is printed meanwhile goes to ``output``.

    ``ready`` is called once printing goes there, and returns what answers a question.
    """
    with output.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    told = ready()
    while True:
        try:
            question = connection.recv()
        except EOFError:
            return
        connection.send(told(question))
