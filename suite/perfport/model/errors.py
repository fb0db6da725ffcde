"""Errors that carry a meaning: each class is one record status or one exit code."""

from __future__ import annotations

import difflib
import errno
import logging
import os
import reprlib
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: Where readers say what they leave out (`leave_out`). The command line prints it to stderr.
LOG = logging.getLogger("perfport")
#: Characters of a value, name or foreign message within a message of the suite.
MOST_SHOWN = 200
#: What the machine has run out of, or refuses to all; any other error of the system is due to the path that was given.
_OF_MACHINE = {
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS,
    errno.EFBIG, errno.ESTALE,
}  # fmt: skip


class PerfportError(Exception):
    """Base of every error that the suite raises on purpose. Its text is written for the user."""


class UsageError(PerfportError):
    """Bad input: a file, key or argument. Exit code 2."""


class InfrastructureError(PerfportError):
    """The suite cannot do its job here (no device, results folder not writable). Exit code 4."""


class RefusedError(PerfportError):
    """A variant does what none may that is ranked: its case is wrong."""


class UnsupportedError(PerfportError):
    """The device lacks what a variant needs; the text says what. Status ``unsupported``."""


class UnavailableError(PerfportError):
    """A library or file is missing; the text says which. Status ``unavailable``."""


class CompileError(PerfportError):
    """A kernel does not compile. Status ``compile_error``.

    Parameters
    ----------
    message : str
        One line for tables, with the first error where it is known.
    log : str
        What the compiler says of each place in the source, then an empty line and its whole log.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class DeviceMemoryError(PerfportError):
    """An allocation on the device or host failed. Status ``out_of_memory``."""


class Stopped(BaseException):
    """A signal asked this process to end. As with Ctrl-C, whoever holds something open closes it and goes on raising.

    Parameters
    ----------
    number : int
        The signal. The exit code is 128 and this.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.code = 128 + number


def from_system(error: OSError, what: str) -> PerfportError:
    """Return an error of the operating system as one of the suite's: `UsageError`, or where it is due to the machine
    (no more open files, no more room) `InfrastructureError`. ``what`` says what did not work.
    """
    kind = InfrastructureError if error.errno in _OF_MACHINE else UsageError
    return kind(f"{what} ({error.strerror or error})")


def leave_out(error: PerfportError) -> None:
    """Say that something is left out because of this error, while the rest is read on."""
    LOG.warning("left out: %s", error)


def cut(text: object, most: int = MOST_SHOWN) -> str:
    """Return a text as one line, shortened in its middle to at most ``most`` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most // 2]}...{line[3 - most // 2 :]}"


class _Shown(reprlib.Repr):
    """Values as Python writes them, but for long ones."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = MOST_SHOWN
        self.maxlist = self.maxtuple = self.maxdict = 8
        self.maxlevel = 3

    def repr_int(self, value: int, level: int) -> str:
        """Python refuses to write thousands of digits."""
        return repr(value) if value.bit_length() <= 256 else f"<a number of {value.bit_length()} bits>"


_SHOWN = _Shown()


def shown(value: Any) -> str:
    """Return a value that was given as a message shows it, shortened: it may be of any size."""
    return cut(_SHOWN.repr(value))


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed name, or an empty string."""
    if len(name) > MOST_SHOWN:  # no slip of the pen, and too long to compare
        return ""
    close = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_writable(path: Path, where: str, folder: bool = False) -> None:
    """Refuse a file (or ``folder``) that cannot be written, before the work whose result goes there. Creates nothing.

    Raises
    ------
    InfrastructureError
        ``where`` names the key or argument that gave the path.
    """
    if path.exists() and path.is_dir() != folder:
        expected = "a folder, and a file is here" if folder else "a file, and a folder is here"
        raise InfrastructureError(f"{where}: {path} cannot be written (expected {expected})")
    there = path.absolute()
    while not there.exists():
        there = there.parent
    if there.absolute() != path.absolute() and not there.is_dir():
        raise InfrastructureError(f"{where}: {path} cannot be written ({there} is not a folder)")
    # A file is replaced by one that is written beside it.
    for place in (there, Path(os.path.realpath(there)).parent) if there.is_file() else (there,):
        if not os.access(place, os.W_OK | (os.X_OK if place.is_dir() else 0)):
            raise InfrastructureError(f"{where}: {path} cannot be written (no permission for {place})")
