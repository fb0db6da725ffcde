"""``tune``: options are checked, searches are told of without measuring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import search_log
from commands import Cli


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("svm_rbf", "--budget", "soon"), "--budget: expected seconds, or a number with s, m or h"),
        (("svm_rbf", "--presets", "tiny=much"), "--presets: expected PRESET or PRESET=WEIGHT, got 'tiny=much'"),
        (("svm_rbg",), "nor is it a workload, a problem or a variant"),
        (("svm_rbf/rbf_row",), "did you mean 'rbf_rows'?"),
        (("nowhere", "--report", "page.md"), "no search here"),
    ],
)
def test_mistakes_are_named(main: Cli, tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = main("tune", *arguments, discover=False)
    assert code == 2 and told in err


def test_searches_are_told_of(main: Cli, tmp_path: Path) -> None:
    search_log.write(tmp_path / "a")
    search_log.write(tmp_path / "b", "demo/rows/other")
    code, out, err = main(
        "tune", tmp_path, "--report", tmp_path / "page.md", "--t4", tmp_path / "t4", discover=False
    )  # fmt: skip
    assert code == 0, err
    page = (tmp_path / "page.md").read_text()
    assert "demo/rows/tuned" in page and "demo/rows/other" in page and (tmp_path / "page").is_dir()
    files = sorted((tmp_path / "t4").rglob("*.json"))
    assert [file.parent.name for file in files] == ["a", "b"] and "1 files of" in out
    assert json.loads(files[0].read_text())["results"]
    code, _, err = main("tune", tmp_path / "a", "--report", tmp_path / "page.json", discover=False)
    assert code == 0 and json.loads((tmp_path / "page.json").read_text())[0]["variant"] == "demo/rows/tuned"


def test_native_is_the_only_profile_that_a_run_takes(main: Cli) -> None:
    code, _, err = main("run", "quick", "--profile", "h200", discover=False)
    assert code == 2 and "--profile: expected 'native', got 'h200'" in err
