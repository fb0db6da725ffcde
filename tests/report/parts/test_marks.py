"""Headlines carry the marks of their records, with a note on each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.record import Record, Status
from perfport.report.pages.suite import render
from perfport.report.parts import ladder, marks, summary
from perfport.report.parts.ladder import Ladder
from perfport.run.sources import Age, Verdict
from perfport.store.collection import Collection

LATER = "2026-11-22T12:00:00+00:00"


def found(folder: Path, *runs: list[Record]) -> list[Ladder]:
    """Return the ladders of some runs' records."""
    stored = [data.store(folder / str(number), records) for number, records in enumerate(runs)]
    return ladder.collected(Collection(stored))


def headline(folder: Path, *runs: list[Record]) -> str:
    """Return the tables of best variants."""
    return summary.best_tables(found(folder, *runs))


def record(name: str = "a", seconds: float = 0.05, **change: Any) -> Record:
    """Return a quiet record."""
    return data.record(name, seconds, **{"noise": 0.001, "rung": 1, **change})


def test_a_quiet_result_has_no_mark(tmp_path: Path) -> None:
    page = headline(tmp_path, [record(), record("peer", 0.1, role="peer")])
    assert not any(mark in page for mark in marks.NOTES)


@pytest.mark.parametrize(
    ("mark", "runs"),
    [
        (marks.UNMET, [[record(noise=0.3)]]),
        (marks.ABOVE, [[record(seconds=0.01001)]]),
        (marks.BESIDE, [[record(), record("b", 0.02, status=Status.CONTENDED)]]),
        (marks.FAILED, [[record()], [record(status=Status.WRONG, time=LATER)]]),
        (marks.UNMET, [[record(), record("peer", 0.1, role="peer", noise=0.3)]]),
    ],
)
def test_a_mark_stands_at_the_number_and_below_the_table(tmp_path: Path, mark: str, runs: list[list[Record]]) -> None:
    if mark == marks.ABOVE:
        bound = runs[0][0].problem_bound
        assert bound
        bound.stale = True
    page = headline(tmp_path, *runs)
    (line,) = (line for line in page.splitlines() if mark in line and line.startswith("|"))
    assert marks.NOTES[mark] in page and "`a`" in line
    assert sum(note in page for note in marks.NOTES.values()) == 1


def test_a_slower_contended_result_beside_the_best_is_no_mark(tmp_path: Path) -> None:
    assert marks.BESIDE not in headline(tmp_path, [record(), record("b", 0.2, status=Status.CONTENDED)])


def test_results_of_code_that_has_changed_are_marked_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [data.store(tmp_path / "run", [record(), record("b", 0.06, rung=2)])]
    for age, marked in ((Age.STALE, True), (Age.CURRENT, False), (Age.UNKNOWN, False)):
        monkeypatch.setattr(ladder, "age", lambda run, identity, age=age: Verdict(age, "a file"))
        files = {f.name: f for f in render(Collection(runs), {}, [], tmp_path / age / "suite.md")}
        for name in ("suite.md", "demo.md"):
            assert (marks.CHANGED in files[name].read_text()) is marked, (age, name)


def test_a_later_failure_is_marked_and_listed(tmp_path: Path) -> None:
    runs = [
        data.store(tmp_path / "1", [record()]),
        data.store(tmp_path / "2", [record(status=Status.CRASHED, time=LATER)]),
    ]
    page = render(Collection(runs), {}, [], tmp_path / "out" / "suite.md")[0].read_text()
    assert marks.NOTES[marks.FAILED] in page
    failed = page[page.index("## What failed") :]
    assert "crashed for a reason" in failed and "`demo/rows a`" in failed
