"""Performance-portability benchmark suite. `load` reads stored results as pandas DataFrames (docs/dataframes.md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .judge.frames import Results


def load(paths: str | Path | Iterable[str | Path]) -> Results:
    """Read stored runs as DataFrames.

    Parameters
    ----------
    paths : str, Path, or iterable of these
        Run folders, or folders of run folders.

    Returns
    -------
    Results

    Raises
    ------
    UsageError
        If there is no path, a path holds no run, or a file is not what this version of the suite reads.
    """
    from .judge.frames import Results  # pandas is imported only where it is used

    return Results.load(paths)
