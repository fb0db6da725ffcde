"""Runs with fewer records than their plan are marked, whether they say how many were planned or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import report_data as data

from perfport.collection import Collection
from perfport.completeness import incomplete
from perfport.report import render
from perfport.report.suite import render as render_suite
from perfport.results import Run

EXPERIMENT = """
name: demo
experiments:
  - {workload: demo, problem: rows, presets: [quick], variants: [a, b]}
  - {workload: demo, problem: copy, presets: [quick, large]}
  - {workload: demo, problem: elsewhere, presets: [quick], devices: [gpu]}
"""


def run(folder: Path, names: list[tuple[str, str, str]], **change: Any) -> Run:
    """Return a run on a CPU with records of these problems, presets and variants."""
    records = [data.record(v, problem=p, preset=preset, ceilings=None) for p, preset, v in names]
    found = data.store(folder, records, data.environment((data.POCL,), **change))
    (folder / "experiment.yaml").write_text(EXPERIMENT)
    return found


WHOLE = [("rows", "quick", "a"), ("rows", "quick", "b"), ("copy", "quick", "c"), ("copy", "large", "c")]


@pytest.mark.parametrize(("planned", "says"), [(4, ""), (3, ""), (6, "4 of 6 planned cases have a record")])
def test_a_run_that_says_its_plan(tmp_path: Path, planned: int, says: str) -> None:
    assert incomplete(run(tmp_path / "run", WHOLE, planned=planned)) == says


def test_of_an_older_run_the_experiment_tells(tmp_path: Path) -> None:
    assert incomplete(run(tmp_path / "whole", WHOLE)) == ""
    assert incomplete(run(tmp_path / "b", WHOLE[:1] + WHOLE[2:])) == "no record of experiments[0] (demo/rows quick b)"
    assert incomplete(run(tmp_path / "copy", WHOLE[:3])) == "no record of experiments[1] (demo/copy large)"


def test_nothing_is_said_where_nobody_can_tell(tmp_path: Path) -> None:
    for flag in ("-b", "--benchmark"):
        assert incomplete(run(tmp_path / flag, WHOLE[:1], command=["perfport", "run", "x", flag, "rows"])) == ""
    assert incomplete(run(tmp_path / "adopted", WHOLE[:1], imported={"file": "a"})) == ""
    without = run(tmp_path / "without", WHOLE[:1])
    (without.folder / "experiment.yaml").unlink()
    assert incomplete(without) == ""


def test_reports_say_that_a_run_is_incomplete(tmp_path: Path) -> None:
    for planned, marked in ((4, False), (7, True)):
        found = run(tmp_path / f"run{planned}", WHOLE, planned=planned)
        page = render([found], tmp_path / f"{planned}.md")[0].read_text()
        assert ("> **Incomplete run:** 4 of 7 planned cases have a record." in page) is marked
        suite = render_suite(Collection([found]), {}, [], tmp_path / f"suite{planned}" / "suite.md")[0].read_text()
        assert ("4 of 7 planned cases have a record" in suite) is marked
