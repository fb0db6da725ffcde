"""One case on one screen."""

from __future__ import annotations

from pathlib import Path

import report_data as data

from perfport.model.record import Failure, Record, Status
from perfport.report.pages.show import WIDTH, terminal
from perfport.untimed import show

ROWS = 24


def shown(tmp_path: Path, record: Record) -> str:
    """The screen of a stored record."""
    data.store(tmp_path / "run", [record], data.environment((data.POCL,)))
    return terminal(show.find(record.key, tmp_path, "tiny", []))


def test_a_result_has_its_time_bounds_and_key(tmp_path: Path) -> None:
    record = data.record("a")
    text = shown(tmp_path, record)
    rows = text.splitlines()
    assert len(rows) <= ROWS and max(map(len, rows)) <= WIDTH and record.key in text
    assert " ms" in text and "problem bound" in text and "what binds" in text and "passed" in text


def test_a_failure_has_its_reason_and_what_the_compiler_says(tmp_path: Path) -> None:
    log = "a.cl:3:1: oops\n    line\n    ^\n\nall\x1b[2J that it said"
    failed = data.record("a", status=Status.COMPILE_ERROR)
    failed.failure = Failure(reason="a.cl does not \x1b[31mcompile", log=log)
    text = shown(tmp_path, failed)
    assert "failure\n    a.cl does not compile\n    a.cl:3:1: oops\n        line\n        ^\n" in text
    assert "that it said" not in text and len(text.splitlines()) <= ROWS


def test_a_variant_fits_too() -> None:
    for name in (
        "svm_rbf/rbf_rows/row_major",
        "face_detection/windows/tuned",
        "gdn/gdn_forward/fused_forward",
    ):
        rows = terminal(show.find(name, Path("nowhere"), "tiny", [])).splitlines()
        assert len(rows) <= ROWS and max(map(len, rows)) <= WIDTH and rows[0].startswith(name)
