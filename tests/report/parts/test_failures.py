"""Cases without a result: reason, log, and the command to run them again."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from report_page import section

from perfport.model.record import Status
from perfport.report.pages.run import render
from perfport.report.parts.failures import ORDER


def test_impossible_comes_before_wrong() -> None:
    assert ORDER[:2] == (Status.IMPOSSIBLE, Status.WRONG)
    assert set(ORDER) == {status for status in Status if not status.measured}


def test_failures_hold_reason_log_and_command(demonstration: tuple[Path, str, list[Path]]) -> None:
    folder, markdown, _ = demonstration
    failures = section(markdown, "Failures")
    records = data.demonstration()
    for record in records:
        command = f"perfport show {record.key} --rerun --results {folder / 'results'}"
        assert (command in failures) == (not record.status.measured), record.identity.variant
    assert "does not compile: expected ';' | found ')'" in failures
    assert "relative L2 0.50" in failures
    log = failures[failures.index("<details>") : failures.index("</details>")]
    assert "lines left out" in log and "error | here" in log and log.count("````") == 2


def test_run_folder_with_a_space_is_quoted(tmp_path: Path) -> None:
    run = data.store(tmp_path / "my results", data.every_status())
    render([run], tmp_path / "report.md")
    assert f"--results '{tmp_path / 'my results'}'" in (tmp_path / "report.md").read_text()
