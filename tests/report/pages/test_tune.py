"""The page of what tuning tells, and the summary of a search."""

from __future__ import annotations

import json
from pathlib import Path

import search_log

from perfport.report.pages.tune import summary, view
from perfport.tune.anatomy import found
from perfport.tune.log import Result
from perfport.tune.tune import Done


def test_the_page_has_gains_spaces_and_a_plot(tmp_path: Path) -> None:
    page = view([found(search_log.write(tmp_path))])
    text = page.render("markdown")
    assert "4.000 (3.900–4.100)" in text and "group=16, unroll=1, form=a" in text
    row = next(
        line for line in text.splitlines() if "24 of 24" in line and "importance" not in line and "30.0 %" in line
    )
    assert "`group`" in row and "4.00" in row
    (plot,) = page.plots
    assert b"<svg" in plot.content and f"]({plot.name})" in page.markdown
    assert view([found(tmp_path)]).plots == page.plots  # the same bytes
    (known,) = json.loads(page.render("json"))
    assert (known["tried"], known["timed"], known["not timed"], known["without a result"]) == (24, 20, 2, 2)
    assert page.render("html").startswith("<!DOCTYPE html>")


def test_names_of_others_are_shown_as_text(tmp_path: Path) -> None:
    text = view([found(search_log.write(tmp_path, "demo/<script>alert(1)</script>/a|b"))]).render("html")
    assert "<script>alert" not in text


def test_without_anything_timed_it_says_so(tmp_path: Path) -> None:
    search_log.write(tmp_path)
    log = tmp_path / "tune.jsonl"
    log.write_text(log.read_text().splitlines()[0] + "\n")
    assert "No configuration was timed." in view([found(tmp_path)]).markdown


def test_the_summary_says_what_was_written_and_why_not(tmp_path: Path) -> None:
    won = found(search_log.write(tmp_path)).results[0]
    lost = Result(
        device="d", variant="w/p/v", presets={"quick": 1.0}, tried=1, of=9, reason="no gain beyond its interval"
    )
    text = summary(Done(tmp_path, [won, lost], {Path("own.yaml"): ["demo/rows/tuned"]}))
    assert "own.yaml: 1 variants written" in text and "no gain beyond" in text and "4.000 (3.900–4.100)" in text
