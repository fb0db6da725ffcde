"""The view of `perfport convergence`."""

from __future__ import annotations

from collections.abc import Sequence

from ...untimed.convergence import Convergence
from ..parts.view import View
from .portability import convergence_table


def view(convergences: Sequence[Convergence]) -> View:
    """Return the kernel source lines of every variant, by backend, and how many of them are common."""
    rows = [
        {**each.model_dump(exclude={"lines"}), **{f"lines {name}": lines for name, lines in each.lines.items()}}
        for each in convergences
    ]
    return View("Code convergence", convergence_table(convergences, variants=True), rows)
