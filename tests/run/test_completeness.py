"""Runs with fewer records than their plan are marked, whether they say how many were planned or not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.model.device import DeviceInfo
from perfport.report.pages.run import render
from perfport.report.pages.suite import render as render_suite
from perfport.run import defaults as defaults_
from perfport.run import plan
from perfport.run.completeness import incomplete
from perfport.run.defaults import defaults
from perfport.run.experiment import load
from perfport.run.local import Options, Prepared, opened
from perfport.run.sources import Age, age
from perfport.store.collection import Collection
from perfport.store.environment import ENVIRONMENT
from perfport.store.results import Run
from perfport.workload import discover

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


def test_validate_says_what_a_run_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "a", WHOLE)
    run(tmp_path / "b", WHOLE[:3])
    assert data.call(monkeypatch, "validate", tmp_path) == 0
    whole, part = capsys.readouterr().out.splitlines()
    assert whole == f"{tmp_path}/a: 4 records, valid"
    assert part == f"{tmp_path}/b: 3 records, valid; incomplete: no record of experiments[1] (demo/copy large)"


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


def prepared(folder: Path, variants: list[str]) -> Prepared:
    """Return a planned run of a shipped workload's smallest problem, on a device that need not be there."""
    path = folder.with_suffix(".yaml")
    path.write_text(
        f"name: x\nexperiments:\n- {{workload: svm_rbf, problem: rbf_rows, presets: [tiny], variants: {variants}}}\n"
    )
    definition, workloads = load(path), discover(only="svm_rbf")
    device = DeviceInfo.model_validate(data.device(data.POCL))
    groups = plan.make(definition, str(path), workloads, [device], 1)
    return Prepared(groups, definition, path, workloads, folder, Options(), [device])


def stored(folder: Path, found: Prepared, names: list[str]) -> Run:
    """Open the run's folder as a run does, and store records of some of its cases."""
    with opened(found) as writer:
        for case in (case for group in found.groups for case in group.cases):
            if case.identity.variant in names:
                writer.append(data.record("x").model_copy(update={"key": case.key, "identity": case.identity}))
    return Run(folder)


def test_a_run_says_its_plan_its_code_and_its_defaults(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run_ = stored(folder, prepared(folder, ["row_major", "local_memory"]), ["row_major"])
    assert run_.planned == 2 and run_.incomplete
    assert age(run_, run_.records[0].identity).age is Age.CURRENT
    assert set(run_.environment["code"]["variants"]) == {"svm_rbf/rbf_rows/row_major", "svm_rbf/rbf_rows/local_memory"}
    cases = {case.identity.variant: case.identity for case in prepared(folder, ["local_memory"]).groups[0].cases}
    assert defaults(run_, cases["local_memory"]) == cases["local_memory"].tunables
    said = run_.environment["defaults"][data.POCL]
    assert any(name.startswith("svm_rbf/rbf_rows/local_memory {") for name in said)
    whole = stored(folder, prepared(folder, ["row_major", "local_memory"]), ["local_memory"])
    assert not whole.incomplete and incomplete(whole) == ""


def test_a_run_that_goes_on_with_more_has_a_larger_plan(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    stored(folder, prepared(folder, ["row_major"]), ["row_major"])
    assert stored(folder, prepared(folder, ["local_memory", "vectorized"]), ["vectorized"]).planned == 3
    assert stored(folder, prepared(folder, ["local_memory"]), ["local_memory"]).incomplete is False


def test_a_run_goes_on_where_its_environment_is_lost(tmp_path: Path) -> None:
    """What the rest was measured with nobody knows any more, unless its cases are still those that are planned."""
    folder = tmp_path / "run"
    found = prepared(folder, ["row_major", "local_memory"])
    whole = stored(folder, found, ["row_major"]).environment
    (folder / ENVIRONMENT).write_text("{")
    again = stored(folder, found, ["local_memory"])
    assert len(again.records) == 2 and again.environment == {**whole, "started": again.environment["started"]}
    assert (folder / f"{ENVIRONMENT}.damaged").read_text() == "{"
    (folder / ENVIRONMENT).unlink()
    other = prepared(folder, ["row_major"])
    assert {"code", "defaults"} & set(stored(folder, other, []).environment) == set(), (
        "local_memory is of a plan before"
    )


def test_a_run_that_goes_on_at_other_sizes_says_their_defaults(tmp_path: Path) -> None:
    """What it said before stays, also where a profile has other parameters for these sizes since."""
    found = prepared(tmp_path / "run", ["local_memory"])
    (group,) = found.groups
    (case,) = group.cases
    said = {"defaults": defaults_.describe(found.groups), "run": "r"}
    now = [group.model_copy(update={"cases": [case.model_copy(update={"defaults": {"unroll": 7}})]})]
    assert defaults_.with_more(said, now) == said
    (at,) = said["defaults"][data.POCL]
    assert defaults_.with_more({"defaults": {}}, now) == {"defaults": {data.POCL: {at: {"unroll": 7}}}}
    assert defaults_.with_more({"run": "r"}, now) == {"run": "r"}
    older = {"defaults": {data.POCL: {"svm_rbf/rbf_rows/local_memory": {"unroll": 1}}}}
    assert defaults_.with_more(older, now) == older, "of each variant, whatever the size"
    identity = case.identity.model_copy(update={"parameters": {"points": 77, "dims": 5}})
    other = [group.model_copy(update={"cases": [case.model_copy(update={"identity": identity})]})]
    assert len(defaults_.with_more(said, other)["defaults"][data.POCL]) == 2
    folder = tmp_path / "run"
    run_ = stored(folder, found, ["local_memory"])
    run_.environment["defaults"][data.POCL]["svm_rbf/rbf_rows/local_memory"] = {"unroll": 9}
    assert defaults(run_, case.identity) == case.defaults, "that of its size comes first"
    assert defaults(run_, identity) == {"unroll": 9}
    grown = replace(found, groups=[*found.groups, *other])
    assert defaults(stored(folder, grown, []), identity) == case.defaults


def test_what_is_left_of_an_environment_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    found = prepared(folder, ["row_major"])
    whole = stored(folder, found, ["row_major"]).environment
    before = (folder / ENVIRONMENT).read_bytes()
    assert stored(folder, found, []).environment == whole and (folder / ENVIRONMENT).read_bytes() == before
    fixed = json.loads(before)
    (folder / ENVIRONMENT).write_text(json.dumps({**fixed, "host": "a machine"}))
    assert stored(folder, found, []).environment == {name: held for name, held in whole.items() if name != "host"}
    assert json.loads((folder / f"{ENVIRONMENT}.damaged").read_text())["host"] == "a machine"
