"""``perfport check`` and ``perfport history``: exit codes, arguments, what is told."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from check_data import VARIANTS, runs

from perfport.model.record import Status


@pytest.mark.parametrize(
    ("now", "code", "headline"),
    [
        ({}, 0, "Green: no regression found; 8 of 8 cases are the same or faster"),
        ({"v1": 0.06}, 5, "Red: 1 slower, of 8 cases"),
        ({"v1": 0.06, "v3": None}, 4, "Red: 1 vanished, 1 slower, of 8 cases"),
        ({"v1": data.record("v1", status=Status.TIMEOUT)}, 4, "Red: 1 newly failing, of 8 cases"),
        (
            {"v1": data.record("v1", status=Status.WRONG), "v3": None, "v2": 0.07},
            3,
            "Red: 1 wrong, 1 vanished, 1 slower",
        ),
    ],
)
def test_exit_codes_and_headlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, now: dict[str, Any], code: int, headline: str
) -> None:
    runs(tmp_path, now)
    arguments = ("check", tmp_path / "now", "--baseline", tmp_path / "base")
    assert data.call(monkeypatch, *arguments, "--junit", tmp_path / "j.xml", "-o", tmp_path / "s.md") == code
    told = capsys.readouterr()
    assert headline in told.err and (tmp_path / "s.md").read_text().startswith(f"# {headline}")
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert len(suite) == int(suite.get("tests", 0)) == 9, "a test case for each, and whether enough have a verdict"
    failed = [one.get("type") for one in suite.iter("failure")]
    assert len(failed) == int(suite.get("failures", 0)) and (code == 0) == (not failed)


def test_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    runs(tmp_path, {})
    now, base = tmp_path / "now", tmp_path / "base"
    for arguments, said in (
        ([now], "either --baseline RUN or --history"),
        ([now, "--baseline", base, "--history", tmp_path], "either --baseline RUN or --history"),
        ([now, "--baseline", base, "--change-points"], "--change-points needs --history"),
        ([tmp_path / "none", "--baseline", base], "cannot be read"),
        ([now, "--history", tmp_path / "h", "--last", "2"], ""),
    ):
        assert data.call(monkeypatch, "check", *arguments) == 2
        assert said in capsys.readouterr().err


def test_the_summary_says_what_a_stranger_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    runs(tmp_path, dict.fromkeys(VARIANTS, 0.06))
    assert data.call(monkeypatch, "check", tmp_path / "now", "--baseline", tmp_path / "base") == 5
    page = capsys.readouterr().out
    assert "## Alarms" in page and "| slower" in page and "50.0" in page and "ms" in page
    assert "more likely the machine than the code" in page, "no file has changed"
    assert data.call(monkeypatch, "check", tmp_path / "now", "--baseline", tmp_path / "base", "--format", "json") == 5
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 8 and {row["outcome"] for row in rows} == {"slower"} and rows[0]["p slower"] < 1e-3
