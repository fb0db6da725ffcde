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
    assert after.changed(0, before, 1) == [
        "driver changed from 3.1 (OpenCL 3.0 PoCL 3.1) to 3.2 (OpenCL 3.0 PoCL 3.2)",
        "source changed",
    ]
    assert before.changed(0, before, 1) == [] and len(before.conditions[0]) == len(CONDITIONS)
    after.driver[0] = ""
    assert after.changed(0, before, 0) == ["source changed"], "what is not known has not changed"


def test_energy_is_no_condition_of_times() -> None:
    record = data.record("v")
    study = {"workload": record.identity.workload, "problem": record.identity.problem, "presets": ["quick"]}

    def told(**measurement: object) -> str:
        content = {"name": "n", "experiments": [study], "measurement": measurement}
        return _settings(record, Experiment.model_validate(content))

    assert told() and told(energy=True) == told() != told(cache="warm")
