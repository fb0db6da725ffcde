"""Views: the same rows in every format."""

from __future__ import annotations

import csv
import io
import json

from perfport.report.parts.view import View


def test_formats_hold_the_same_rows() -> None:
    view = View("T", "# T\n\n| a |\n|---|\n| 1 |", [{"a": 1.5, "b": None}, {"a": float("inf"), "c": "x,y"}])
    assert view.render("markdown").startswith("# T")
    assert list(csv.DictReader(io.StringIO(view.render("csv")))) == [
        {"a": "1.5", "b": "", "c": ""}, {"a": "inf", "b": "", "c": "x,y"},
    ]  # fmt: skip
    assert json.loads(view.render("json")) == [{"a": 1.5, "b": None}, {"a": None, "c": "x,y"}]
    assert '<div class="wide"><table>' in view.render("html")
