"""The page docs/dataframes.md as a notebook: its cells are run, its outputs and tables of columns are made.

    python tests/support/dataframes_page.py

writes them into the page, from the top folder of the repository: after a change of committed results or of columns.
"""

from __future__ import annotations

import ast
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tabulate import tabulate

from perfport.judge.frames import SCHEMA

PAGE = Path(__file__).parents[2] / "docs" / "dataframes.md"
CELL = re.compile(r"```python\n(?P<source>.*?)```\n(?:\n```text\n.*?```\n)?", re.S)
TABLE = re.compile(r"(?P<title>### `(?P<name>\w+)`\n\n.*?\n\n)(?:\|.*?\n)+", re.S)


def ran(page: str) -> str:
    """Return the page with the output of each cell below it. All cells share their names."""
    names: dict[str, Any] = {}

    def cell(found: re.Match[str]) -> str:
        shown = output(found["source"], names)
        return f"```python\n{found['source']}```\n" + (f"\n```text\n{shown}\n```\n" if shown else "")

    return TABLE.sub(lambda found: f"{found['title']}{columns(found['name'])}\n", CELL.sub(cell, page))


def output(source: str, names: dict[str, Any]) -> str:
    """Return what a cell prints and, as in a notebook, the value of an expression at its end."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(ast.Module(body, []), str(PAGE), "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)
            if value is not None:
                print(repr(value))
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def columns(frame: str) -> str:
    """Return the table of a frame's columns."""
    rows = [
        [f"`{name}`", "datetime64, UTC" if column.dtype == "time" else column.dtype, column.unit, column.meaning]
        for name, column in SCHEMA[frame].items()
    ]
    return tabulate(rows, ["column", "type", "unit", "meaning"], "pipe", disable_numparse=True)


if __name__ == "__main__":
    PAGE.write_text(ran(PAGE.read_text()))
