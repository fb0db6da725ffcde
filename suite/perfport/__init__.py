"""Performance-portability benchmark suite. `load` reads stored results as pandas DataFrames (docs/dataframes.md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .judge.frames import Results
    from .judge.predict import Counted


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

    def counts(folders: list[Path]) -> Counted:
        from .report.parts.counted import Recount, stored
        from .report.parts.seen import seen_by

        return seen_by(Recount(stored(folders)[1]))

    return Results.load(paths, counts)
