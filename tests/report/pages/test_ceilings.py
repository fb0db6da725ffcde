"""The page of ceilings: a row for each that was measured, for readers and for a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.measure.ceilings.survey import read
from perfport.model.errors import UsageError
from perfport.report.pages.ceilings import HEADERS, render, rows, terminal

COMMITTED = Path(__file__).parents[3] / "results" / "committed" / "ceilings"


def test_every_committed_ceiling_has_a_row(tmp_path: Path) -> None:
    surveys = list(read([COMMITTED]))
    assert len(surveys) >= 2
    files = render(surveys, tmp_path / "ceilings.md")
    content = files[0].read_text()
    for survey in surveys:
        listed = rows(survey)
        assert [row[0] for row in listed] == list(survey.ceilings.entries)
        assert all(len(row) == len(HEADERS) for row in listed)
        assert terminal(survey).startswith(f"{survey.device.id}: {survey.device.name}, driver ")
        assert all(f"`{name}`" in content for name in survey.ceilings.entries)
    assert all(f"/{file.name})" in content for file in files[1:])


def test_nothing_to_show_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        render([], tmp_path / "ceilings.md")
