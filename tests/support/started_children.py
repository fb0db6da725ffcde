"""A tool in front of a child of `perfport.untimed.child` that does nothing but tell how many were started."""

from __future__ import annotations

import sys
from pathlib import Path

from perfport.untimed.child import Wrapping


class Started:
    """The tool; what it tells is in a folder."""

    def __init__(self, folder: Path) -> None:
        self._told = folder / "started"
        script = folder / "tool.py"
        script.write_text(
            f"import os, sys; print('a child', file=open({str(self._told)!r}, 'a')); "
            "os.execvp(sys.argv[1], sys.argv[1:])"
        )
        self.wrapping = Wrapping((sys.executable, str(script)))

    @property
    def children(self) -> int:
        """How many were started."""
        return len(self._told.read_text().splitlines())
