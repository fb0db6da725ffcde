"""The nearest of the allowed names, and whether results could be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.model.errors import InfrastructureError, check_writable, nearest


def test_the_nearest_name() -> None:
    assert nearest("vectorised", ["image", "vectorized"]) == " (did you mean 'vectorized'?)"
    assert nearest("x", ["image", "vectorized"]) == ""


def test_where_results_can_go(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "new" / "report.md", "--output")
    check_writable(tmp_path, "--out", folder=True)
    check_writable(tmp_path / "file", "--output")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"], "nothing is made"
    for path, folder, message in (
        (tmp_path, False, "expected a file, and a folder is here"),
        (tmp_path / "file", True, "expected a folder, and a file is here"),
        (tmp_path / "file" / "below", False, "file is not a folder"),
    ):
        with pytest.raises(InfrastructureError, match=f"^--out: .*{message}"):
            check_writable(path, "--out", folder=folder)
