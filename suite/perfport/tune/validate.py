"""`perfport validate`: whether every search of a folder is what `perfport tune` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..model.errors import UsageError
from .log import LOG, checked, find_logs


@dataclass(frozen=True)
class CheckedSearch:
    """A search: what is wrong with its log, and how many entries that has."""

    folder: Path
    faults: list[str]
    entries: int


def validate_searches(path: Path) -> Iterator[CheckedSearch]:
    """Check the logs of the searches at or directly below a path; their finals are runs (`perfport.run.validate`)."""
    try:
        folders = find_logs(path)
    except UsageError:
        return
    for folder in folders:
        try:
            entries = list(checked(folder / LOG))
        except UsageError as error:
            entries = [error]
        faults = [str(each) for each in entries if isinstance(each, UsageError)]
        yield CheckedSearch(folder, faults, len(entries) - len(faults))
