"""Files of strangers, read within limits and without waiting; files for others, written whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from .errors import InfrastructureError, UsageError, cut, from_system

MIB = 1 << 20
#: Bytes of a file that is read as a whole. The largest of the suite's own have a few MiB.
MOST_BYTES = 256 * MIB


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; anything else is refused (a FIFO would wait for its writer).

    Raises
    ------
    UsageError
        If it cannot be read; the text names it.
    InfrastructureError
        If that is the machine's fault: no more open files, a disk with errors.
    """
    if "\0" in str(path):
        raise UsageError(f"{str(path)!r}: cannot be read (expected a path without NUL)")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise UsageError(f"{path}: cannot be read (expected a file, got {_kind(mode)})")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)
    except OSError as error:
        raise from_system(error, f"{path}: cannot be read") from None


def read(path: Path | Traversable, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file of at most ``most`` bytes. Raises as `opened` does; a larger one is refused."""
    if not isinstance(path, Path):  # in an archive
        return path.read_bytes()
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(most + 1) if size <= most else b""
    if max(size, len(content)) > most:
        raise UsageError(f"{path}: expected at most {most:,} bytes, got {max(size, len(content)):,}")
    return content


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a FIFO", stat.S_ISSOCK: "a socket"}
    return next((name for holds, name in kinds.items() if holds(mode)), "a device")


def read_text(path: Path | Traversable, most: int = MOST_BYTES) -> str:
    """Return the content of a text file in UTF-8, without its byte order mark. Raises as `read` does."""
    content = read(path, most)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from None


def parse_json(content: bytes, where: str) -> Any:
    """Return the content of a JSON text in UTF-8, nested at most 200 deep.

    Of equal keys the last counts. Infinity and NaN, which are no JSON, are read as Python writes them, so that whoever
    checks the content can name their key.

    Raises
    ------
    UsageError
        If it is none; ``where`` names it.
    """
    try:
        return from_json(content.removeprefix(codecs.BOM_UTF8))
    except ValueError as error:
        raise UsageError(f"{where}: not JSON ({cut(error)})") from None


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raises as `read` and `parse_json` do."""
    return parse_json(read(path), str(path))


def write(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all: what was there stays until all of the new content is on the disk.

    Folders on the way are made. What is no regular file (``/dev/stdout``) is written to as it is.

    Raises
    ------
    InfrastructureError
        If it cannot be written; nothing is left of the attempt.
    """
    # A name from a file system need not be text; a page that tells it is.
    data = content.encode(errors="replace") if isinstance(content, str) else content
    partial = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        place = Path(os.path.realpath(path))  # of a link, what it leads to
        if place.exists() and not place.is_file():
            place.write_bytes(data)
            return
        partial = place.with_name(f".{uuid.uuid4().hex}.part")
        partial.write_bytes(data)
        if place.exists():
            shutil.copymode(place, partial)
        partial.replace(place)
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        if partial:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
