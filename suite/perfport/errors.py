"""Errors that carry a meaning: each class is one record status or one exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PerfportError(Exception):
    """Base of every error that the suite raises on purpose. Its text is written for the user."""


class UsageError(PerfportError):
    """Bad input: a file, key or argument. Exit code 2."""


class InfrastructureError(PerfportError):
    """The suite cannot do its job here (no device, results folder not writable). Exit code 4."""


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


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed name, or an empty string."""
    found = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""
