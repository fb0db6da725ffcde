"""Arrays of NumPy's files, judged by their headers before anything is allocated for them.

A header states a shape and a type, a zip archive the size that a member unpacks to: a few bytes can ask for any amount
of memory. Neither is believed beyond the other, or beyond what the file can hold.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.lib import format as npy

from .errors import UsageError, cut
from .files import opened
from .inputs import damaged

REAL = "biuf"  # kinds of dtype: truth values, integers, floating point
TEXT = "U"
#: Bytes that the arrays of an archive may unpack to where the archive itself is smaller.
UNPACKED = 1 << 30
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # 3.0 has names of fields

_Open = Callable[[], AbstractContextManager[IO[bytes]]]


def read_npy(path: Path, where: str | None = None) -> np.ndarray:
    """Return the array of real numbers of an .npy file.

    Parameters
    ----------
    path : Path
    where : str, optional
        How messages on its content call it; default: its path.

    Raises
    ------
    UsageError
        If it is no regular file, no .npy file, holds objects, text or records, or is not as long as its header states.
    """
    where = where or str(path)
    with opened(path) as file, damaged(f"{where}: is not an .npy file, or a damaged one"):
        return _array(partial(_rewound, file), os.fstat(file.fileno()).st_size, REAL, where)


def read_npz(
    path: Path, names: Sequence[str] = (), kinds: str = REAL, where: str | None = None
) -> dict[str, np.ndarray]:
    """Return arrays of an .npz file by name.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Those that are wanted, which it has to hold; all unless given. Nothing of the others is read.
    kinds : str
        Kinds of dtype that they may have: `REAL`, with `TEXT` or without.
    where : str, optional
        How messages on its content call it; default: its path.

    Raises
    ------
    UsageError
        If it is no regular file, no .npz file, lacks an array or has two of a name, and as `read_npy` does for each
        array; also where the arrays unpack to more bytes than the file has, and more than `UNPACKED`.
    """
    where = where or str(path)
    with (
        opened(path) as file,
        damaged(f"{where}: is not an .npz file, or a damaged one"),
        zipfile.ZipFile(file) as archive,
    ):
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise UsageError(f"{where}: has two arrays of one name")
        if missing := [name for name in names if name not in members]:
            held = cut(", ".join(map(repr, sorted(members)))) or "none"
            raise UsageError(f"{where}: holds no array {' and no '.join(missing)}, only {held}")
        most = max(UNPACKED, os.fstat(file.fileno()).st_size)
        arrays: dict[str, np.ndarray] = {}
        for name in names or members:
            entry = members[name]
            most -= entry.file_size
            if most < 0:
                raise UsageError(f"{where}: {name}: unpacks to {entry.file_size} bytes, {-most} more than are allowed")
            arrays[name] = _array(partial(archive.open, entry), entry.file_size, kinds, f"{where}: {name}")
        return arrays


def _rewound(file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    file.seek(0)
    return nullcontext(file)


def _array(open_: _Open, size: int, kinds: str, where: str) -> np.ndarray:
    """Read a stream of ``size`` bytes. It is opened a second time: going back in a member would skip its checksum."""
    with open_() as stream:
        version = npy.read_magic(stream)
        if version not in _HEADERS:
            raise UsageError(f"{where}: expected the .npy format 1.0 or 2.0, got {'.'.join(map(str, version))}")
        shape, _, dtype = _HEADERS[version](stream)
        if dtype.kind not in kinds:
            expected = "real numbers or text" if TEXT in kinds else "real numbers"
            raise UsageError(f"{where}: expected {expected}, got {dtype}")
        given = size - stream.tell()
    if min(shape, default=0) < 0 or not dtype.itemsize:
        raise UsageError(f"{where}: expected a shape of numbers from 0, got {dtype} {shape}")
    if (stated := dtype.itemsize * math.prod(shape)) != given:
        raise UsageError(f"{where}: expected the {stated} bytes of {dtype} {shape}, got {given}")
    with open_() as stream:
        array: np.ndarray = npy.read_array(stream, allow_pickle=False)
        return array
