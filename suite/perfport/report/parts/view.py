"""Views: one set of results as a page for readers and as rows for programs, in any of four formats."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ...model.errors import UsageError, nearest
from ...model.untrusted import cell
from . import web
from .plots import Plot

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("markdown", "csv", "json", "html")


@dataclass(frozen=True)
class View:
    """What readers get, markdown with plots, and what programs get, rows of plain values."""

    title: str
    markdown: str
    rows: list[dict[str, Any]]
    plots: Sequence[Plot] = ()

    def render(self, form: str, folder: str = "") -> str:
        """Return the view in a format; HTML holds its plots, markdown refers to them in a folder.

        Raises
        ------
        UsageError
            For a format that there is not.
        """
        if form == "markdown":
            page = self.markdown
            for plot in self.plots:
                page = page.replace(f"]({plot.name})", f"]({quote(folder)}{plot.name})")
            return page + "\n"
        if form == "csv":
            return as_csv(self.rows)
        if form == "json":
            return json.dumps([{k: _plain(v) for k, v in row.items()} for row in self.rows], indent=1) + "\n"
        if form == "html":
            return web.document(self.title, self.markdown, self.plots) + "\n"
        raise UsageError(f"--format: {form!r} is not one of {', '.join(FORMATS)}{nearest(form, FORMATS)}")


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV, with the columns of all of them in the order of their first appearance, and no formula."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(cell, columns))
    writer.writerows([cell(row.get(name)) for name in columns] for row in rows)  # of what is missing, nothing
    return out.getvalue()


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as plain values: ``None`` where one is missing, times as text."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(k): v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
