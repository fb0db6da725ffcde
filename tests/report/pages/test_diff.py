"""The table of two states of the code: what is worse first, what is the same folded."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.model.record import Interval
from perfport.nightly.diff import Difference
from perfport.nightly.finding import Finding, Judgement, Outcome
from perfport.nightly.place import series_key
from perfport.report.pages.diff import MOST, title, view


def difference(folder: Path, *outcomes: Outcome) -> Difference:
    """A comparison with a case of each outcome."""
    run = data.store(folder, [data.record(f"v{number}") for number in range(len(outcomes))])
    ratio = Interval(value=0.8, low=0.79, high=0.81)
    findings = [
        Finding(series_key(run, record), outcome, record, why="because <b>", ratio=ratio, before=0.04, now=0.05)
        for record, outcome in zip(run.records, outcomes, strict=True)
    ]
    return Difference("main (abc)", "<i>", Judgement(run, "main", findings), 7, 61.2)


def test_what_is_worse_comes_first(tmp_path: Path) -> None:
    page = view(difference(tmp_path / "r", Outcome.SLOWER, Outcome.SAME, Outcome.CANNOT_TELL))
    assert page.markdown.startswith("## Red: 1 slower, of 3 cases") and "in 61 s" in page.markdown
    assert "| **slower** " in page.markdown and "cannot tell: because &lt;b>" in page.markdown
    assert "7 more cases were not measured" in page.markdown and "The same, or no result: 1" in page.markdown
    assert page.markdown.index("`demo/rows v2") < page.markdown.index("`demo/rows v1"), "what is the same is folded"
    assert [row["outcome"] for row in page.rows] == ["slower", "same", "cannot tell"]
    assert page.rows[0]["ratio"] == 0.8 and "<b>" not in page.markdown


def test_without_anything_that_differs_there_is_no_table() -> None:
    nothing = Difference("main (abc)", "head", None, 7, 1.0)
    assert title(nothing) == "Green: of 7 cases nothing differs in the code"
    assert view(nothing).rows == [] and "|" not in view(nothing).markdown


def test_a_comment_has_room_for_so_many_rows(tmp_path: Path) -> None:
    page = view(difference(tmp_path / "r", *[Outcome.SLOWER] * (MOST + 2))).markdown
    assert page.count("**slower**") == MOST and "2 more are not listed" in page
