"""Files of a run as they are written: on disk when the call returns, whole but for a last line that a kill tore."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.errors import InfrastructureError
from ..model.untrusted import inside

_BLOCK = 1 << 16


class LineFile:
    """A file of lines that is open for appending; of one that a kill tore, what follows the last newline is cut off.

    Raises
    ------
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        new = not path.exists()
        self._file = path.open("a+b", buffering=0)  # nothing is left over after an error
        try:
            self._file.truncate(self._whole())
            if new:
                sync_folder(path.parent)
        except OSError:
            self._file.close()
            raise

    def _whole(self) -> int:
        """Return how many bytes end in a newline: what follows the last one was torn."""
        end = self._file.seek(0, os.SEEK_END)
        while end:
            start = max(end - _BLOCK, 0)
            self._file.seek(start)
            newline = self._file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return 0

    def append(self, line: bytes, what: str) -> None:
        """Write a line, its newline included, and flush it to disk.

        Raises
        ------
        InfrastructureError
            If it cannot be written, with ``what`` it is; the file is then as before.
        """
        before = self._file.seek(0, os.SEEK_END)
        try:
            left = memoryview(line)
            while left:  # unbuffered: a disk that fills up takes a part first
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(before)
            raise InfrastructureError(f"{self.path}: cannot write {what} ({error.strerror})") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a file that was made or renamed in it keeps its name when power is lost."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, content: str) -> None:
    """Write a small file whole or not at all: it is on disk, under its name, when this returns.

    Raises
    ------
    InfrastructureError
        If it cannot be written; the file of that name is then as before.
    """
    partial = inside(path.parent, f"{path.name}.part")  # no link of somebody else's
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot be written ({error.strerror})") from None
