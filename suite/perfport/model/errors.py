"""Errors that carry a meaning: each class is one record status or one exit code."""

from __future__ import annotations

import difflib
import os
import signal
from collections.abc import Iterable
from pathlib import Path


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
        One line for tables.
    log : str
        The compiler's whole log.
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


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed name, or an empty string."""
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
    if not os.access(there, os.W_OK | (os.X_OK if there.is_dir() else 0)):
        raise InfrastructureError(f"{where}: {path} cannot be written (no permission for {there})")
