"""What a history keeps of a run: columns, and which conditions differ between two nights."""

from __future__ import annotations

from pathlib import Path

import history_data
import numpy as np
import report_data as data

from perfport.nightly.night import COLUMNS, CONDITIONS, HEAD, _settings, night
from perfport.run.experiment import Experiment


def test_a_night_has_a_row_for_each_measured_case(tmp_path: Path) -> None:
    foreign = data.record("theirs").model_copy(update={"provenance": "published"})
    run = data.store(tmp_path / "run", [data.record("w"), data.record("v"), *data.every_status(), foreign])
    held = night(run)
    assert {len(getattr(held, name)) for name in COLUMNS} == {len(run.records) - 1}
    assert held.series == sorted(held.series) and not any("theirs" in key for key in held.series)
    assert all(isinstance(getattr(held, name), str) for name in HEAD)
    measured = np.array([workers > 0 for workers in held.workers])
    assert (np.isfinite(held.time) == measured).all() and measured.any() and not measured.all()
    assert night(run, "other").experiment == "other"


def test_conditions_that_differ_are_told_in_words() -> None:
    before = history_data.night(1, np.array([1.0, 2.0]))
    after = history_data.night(2, np.array([1.0, 2.0]), driver="3.2", source="feed")
    assert list(map(str, after.changed(0, before, 1))) == [
        "source changed",  # the commits differ in their last digit alone
        "driver 3.1 -> 3.2",
    ]
    assert before.changed(0, before, 1) == []
    assert len(before.conditions[0]) == len(CONDITIONS) + 1, "the source by what was compiled, and by its files"
    after.driver[0] = "3.1 (OpenCL 4.0)"
    assert str(after.changed(0, before, 0)[1]) == "driver 3.1 (OpenCL 3.0 PoCL 3.1) -> 3.1 (OpenCL 4.0)"
    after.driver[0] = ""
    assert [change.kind for change in after.changed(0, before, 0)] == ["source"], "what is not known has not changed"


def test_a_changed_source_is_told_by_commits_and_files() -> None:
    before, after = (history_data.night(number, np.array([1.0])) for number in (1, 2))
    before.commit, after.commit = "a1b2c3d" * 5, "c3d4e5f" * 5 + "-dirty"
    after.code = ["w/fast.cl 1; w/rows.cl 2; w/rows.py 1; measuring code 1"]
    (change,) = after.changed(0, before, 0)
    assert str(change) == "source changed (a1b2c3d..c3d4e5f+: w/fast.cl, w/rows.cl)"
    after.code = ["; ".join(f"w/{name}.cl 1" for name in "abcde")]
    assert "w/c.cl and 5 more)" in str(after.changed(0, before, 0)[0]), "a list of files ends somewhere"
    before.code = [""]
    assert after.changed(0, before, 0) == [], "files that are not known have not changed"
    before.commit = after.commit
    after.source = ["feed"]
    assert str(after.changed(0, before, 0)[0]) == "source changed"


def test_energy_is_no_condition_of_times() -> None:
    record = data.record("v")
    study = {"workload": record.identity.workload, "problem": record.identity.problem, "presets": ["quick"]}

    def told(**measurement: object) -> str:
        content = {"name": "n", "experiments": [study], "measurement": measurement}
        return _settings(record, Experiment.model_validate(content))

    assert told() and told(energy=True) == told() != told(cache="warm")
