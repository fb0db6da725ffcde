"""Values of parameters that are names, or else paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..model.errors import MOST_SHOWN, nearest, shown


def name_or_path(known: Iterable[str]) -> Callable[[str], str]:
    """Return a check for pydantic's ``AfterValidator``: that a value is one of some names, or a path.

    What has a folder or a suffix may be one: the machine where an experiment is read need not have the file. The check
    raises `ValueError`.
    """
    names = tuple(known)

    def check(value: str) -> str:
        path = Path(value)
        like_path = path.suffix or path.name != value
        if value in names or like_path or (len(value) <= MOST_SHOWN and path.is_file()):
            return value
        raise ValueError(f"{shown(value)} is neither one of {', '.join(names)}, nor a file{nearest(value, names)}")

    return check
