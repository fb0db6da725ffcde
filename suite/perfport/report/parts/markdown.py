"""GitHub-flavoured markdown from plain values: everything that comes from a record is escaped here."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ...model.untrusted import line, printable

#: Stands for "does not apply" or "not known" in a table.
NONE = "–"


def middle(value: object, limit: int) -> str:
    """Return a value as one line, shortened in the middle: what tells long names apart is often at their end."""
    content = line(value, sys.maxsize)
    if len(content) <= limit:
        return content
    tail = limit * 2 // 5
    return f"{content[: limit - 1 - tail]}…{content[-tail:]}"


def text(value: object, limit: int = 300) -> str:
    """Return a value as one line of running text, with every character that markdown or HTML would read escaped."""
    escaped = line(value, limit).replace("&", "&amp;").replace("<", "&lt;")
    escaped = re.sub(r"([\\`*\[\]~])", r"\\\1", escaped)
    escaped = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", escaped)
    escaped = re.sub(r"^(?=#{1,6}(?:\s|$)|>|[-+=](?:[-=\s]|$))", r"\\", escaped)
    return re.sub(r"^(\d{1,9})(?=[.)](?:\s|$))", r"\1\\", escaped)


def code(value: object, limit: int = 300) -> str:
    """Return a value as a code span, whatever back-ticks it holds."""
    content = line(value, limit)
    if not content:
        return NONE
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", content)), default=0))
    pad = " " if content[0] == "`" or content[-1] == "`" else ""
    return f"{ticks}{pad}{content}{pad}{ticks}"


def fence(content: str, language: str = "text") -> str:
    """Return text as a fenced block, whatever back-ticks it holds."""
    content = "\n".join(printable(row).rstrip() for row in content.expandtabs().splitlines())
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", content)), default=0))
    return f"{ticks}{language}\n{content}\n{ticks}"


def details(summary: str, body: str) -> str:
    """Return a block that is folded until the reader opens it."""
    return f"<details>\n<summary>{html.escape(line(summary))}</summary>\n\n{body}\n\n</details>"


def excerpt(log: str, head: int = 12, tail: int = 18, width: int = 200) -> str:
    """Return the first and the last lines of a log, each cut to ``width``."""
    rows = [row if len(row) <= width else row[: width - 1] + "…" for row in log.strip("\n").splitlines()]
    if len(rows) > head + tail + 1:
        rows = [*rows[:head], f"… {len(rows) - head - tail} lines left out …", *rows[-tail:]]
    return "\n".join(rows)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """Return a table whose raw text is aligned too. Columns without any entry are left out.

    Parameters
    ----------
    headers : sequence of str
        Markdown.
    rows : iterable of sequence of str
        Markdown; a pipe within a cell is escaped here.
    align : str
        One letter per column: ``l`` or ``r``.
    """
    cells = [[cell.replace("|", "\\|") if cell else NONE for cell in row] for row in rows]
    kept = [i for i in range(len(headers)) if not cells or any(row[i] != NONE for row in cells)]
    return tabulate(
        [[row[i] for i in kept] for row in cells],
        headers=[headers[i].replace("|", "\\|") for i in kept],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if align[i] == "r" else "left" for i in kept] if cells else None,
    )


def titled(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    """Return a table below its title, or nothing where it has no row; see `table`."""
    return join([title, table(headers, rows, align)]) if rows else ""


def join(blocks: Iterable[str]) -> str:
    """Return blocks of markdown with one blank line between them; empty ones are left out."""
    return "\n\n".join(block.strip("\n") for block in blocks if block)
