"""What commands print: views and rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfport.cli.output import print_rows, show
from perfport.report.parts.plots import Plot
from perfport.report.parts.view import View


def test_a_view_is_printed_or_written_with_its_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = View("Title", "# Title\n\n![a](a.svg)", [{"case": "a"}], [Plot("a.svg", b"<svg/>", "a", "A.")])
    show(view, "markdown", None)
    assert capsys.readouterr().out == "# Title\n\n![a](a.svg)\n"
    show(view, "markdown", tmp_path / "page.md")
    assert capsys.readouterr().out == f"{tmp_path}/page.md: 1 plots beside it\n"
    assert (tmp_path / "page.md").read_text() == "# Title\n\n![a](page/a.svg)\n"
    assert (tmp_path / "page" / "a.svg").read_bytes() == b"<svg/>"
    show(view, "csv", tmp_path / "page.csv")
    assert (tmp_path / "page.csv").read_text() == "case\na\n" and not (tmp_path / "page.csv").with_suffix("").is_file()


def test_rows_are_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "a", "rate": 1.25}, {"name": "b", "rate": None}]
    print_rows(rows, as_json=True)
    assert json.loads(capsys.readouterr().out) == rows
    print_rows(rows, as_json=False)
    assert capsys.readouterr().out.splitlines()[2].split() == ["a", "1.25"]
    print_rows(rows, as_json=False, floatfmt=".0f")
    assert capsys.readouterr().out.splitlines()[2].split() == ["a", "1"]
