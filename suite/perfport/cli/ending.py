"""How every command ends: what is due to a user or a machine is one message and a documented exit code.

A defect of the suite is none of that: it shows its traceback.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from ..model.errors import LOG, PerfportError, UsageError, cut, from_system
from .options import ExitCode

#: Lines that name what was left out; of more, their number.
MOST_NAMED = 50


class _Named(logging.Handler):
    """Prints each warning to stderr once, as lines of the command."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()
        self._more = 0

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message in self._told:
            return
        if len(self._told) < MOST_NAMED:
            self._told.add(message)
            say(message)
        else:
            self._more += 1

    def close(self) -> None:
        """Say how many were not printed."""
        if self._more:
            say(f"and {self._more} more like that")
        super().close()


def say(message: object) -> None:
    """Print a line to stderr; one that nobody can read is no error."""
    with contextlib.suppress(OSError):
        print(f"perfport: {message}", file=sys.stderr)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Run a command within this."""
    for stream in (sys.stdout, sys.stderr):
        # ASCII cannot say everything, and a name from a file system need not be text: a mark stands in for it.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    named = _Named()
    LOG.addHandler(named)
    try:
        try:
            yield
        finally:
            LOG.removeHandler(named)
            named.close()
            if sys.stdout:
                sys.stdout.flush()  # on a full disk this is what fails
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer's end for it has another code
            _close()
        raise
    except BrokenPipeError:
        _close()
    except UsageError as error:
        _complain(error, ExitCode.USAGE)
    except PerfportError as error:
        _complain(error, ExitCode.INFRASTRUCTURE)
    except KeyboardInterrupt:
        _complain("interrupted", ExitCode.INTERRUPTED)
    except OSError as error:
        _complain_of(error)
    except UnicodeError as error:
        _complain(f"a text is not in the encoding that it should have: {cut(error)}", ExitCode.USAGE)
    except RecursionError:
        _complain("something is nested too deeply to be read", ExitCode.USAGE)
    except MemoryError:
        _complain("out of memory", ExitCode.INFRASTRUCTURE)


def _complain(error: object, code: ExitCode) -> NoReturn:
    say(error)
    sys.exit(code)


def _complain_of(error: OSError) -> NoReturn:
    """End with what the operating system says, and of what; a folder that is gone makes of all relative paths none."""
    try:
        Path.cwd()
    except OSError:
        _complain("the working folder no longer exists; change to one that does", ExitCode.INFRASTRUCTURE)
    try:
        sys.stdout.flush()
    except OSError:
        _discard()
    meant = from_system(error, "standard output: cannot be written" if error.filename is None else cut(error.filename))
    _complain(meant, ExitCode.USAGE if isinstance(meant, UsageError) else ExitCode.INFRASTRUCTURE)


def _close() -> NoReturn:
    """End without a word, as of SIGPIPE: nobody reads on."""
    _discard()
    sys.exit(ExitCode.CLOSED)


def _discard() -> None:
    """Drop what is still buffered: the interpreter would try to write it once more at its end, and complain."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
