"""A report of everything that a run can have."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.report.pages.run import render


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[Path]]:
    """A report of everything: its folder, its markdown, the files written."""
    folder = tmp_path_factory.mktemp("demonstration")
    run = data.store(folder / "results", data.demonstration())
    files = render([run], folder / "my report.md")
    return folder, files[0].read_text(), files
