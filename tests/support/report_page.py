"""Reports of runs as text, and the parts of it that tests read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import report_data as data

from perfport.model.record import Record
from perfport.report.pages.run import render
from perfport.report.parts.plots import Plot


def report(tmp_path: Path, records: list[Record], **environment: object) -> str:
    """Store records, render them, and return the markdown."""
    run = data.store(tmp_path / "results", records, data.environment(**environment) if environment else None)
    render([run], tmp_path / "report.md")
    return (tmp_path / "report.md").read_text()


def section(markdown: str, title: str) -> str:
    """Return one second-level section."""
    return next(part for part in re.split(r"^## ", markdown, flags=re.M) if part.startswith(title))


def cells(line: str) -> list[str]:
    """Return the cells of a table row; an escaped pipe is no border."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(markdown: str) -> list[list[list[str]]]:
    """Return every table as rows of cells, the header first and without the rule below it."""
    outside = re.sub(r"^ *(`{3,}).*?^ *\1$", "", markdown, flags=re.M | re.S)
    found = re.findall(r"(?:^\|.*\|\n)+", outside + "\n", flags=re.M)
    return [[cells(row) for i, row in enumerate(block.splitlines()) if i != 1] for block in found]


def rows_of(markdown: str, header: str, name: str) -> list[dict[str, str]]:
    """Return the rows that name a variant, from tables that have a header which contains ``header``."""
    found = []
    for head, *rows in tables(markdown):
        if any(header in cell for cell in head):
            found += [dict(zip(head, row, strict=True)) for row in rows if any(f"`{name}`" in cell for cell in row)]
    return found


def words(plot: Plot) -> list[str]:
    """Return the texts of a plot, which is well-formed."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(plot.content).iter() if "text" in str(each.tag)]
