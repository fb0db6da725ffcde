"""What commands print: a view in the format asked for, or rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model.untrusted import line, say

if TYPE_CHECKING:
    from ..report.parts.view import View

#: Characters of one entry of a table.
LONGEST = 1000


def show(view: View, form: str, output: Path | None) -> None:
    """Print a view, or write it with its plots beside it."""
    from ..report.parts.plots import plot_folder, write_page

    if output is None:
        say(view.render(form), end="")
        return
    content = view.render(form, f"{plot_folder(output).name}/")
    files = write_page(output, content.removesuffix("\n"), view.plots if form == "markdown" else ())
    say(f"{output}: {len(files) - 1} plots beside it")


def print_rows(rows: list[dict[str, Any]], as_json: bool, floatfmt: str = "g") -> None:
    """Print rows as a table, floats in this format, or as JSON."""
    from tabulate import tabulate

    if as_json:
        say(json.dumps(rows, indent=1))
        return
    shown = [{k: line(v, LONGEST) if isinstance(v, str) else v for k, v in row.items()} for row in rows]
    say(tabulate(shown, headers="keys", floatfmt=floatfmt))
