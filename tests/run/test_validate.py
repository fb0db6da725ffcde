"""Whether experiments and runs are what the suite reads (tests/cli/test_wrong_inputs.py has the messages)."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data
from commands import experiment

from perfport.model.device import DeviceInfo
from perfport.model.errors import UsageError
from perfport.run.validate import count_cases, validate_runs
from perfport.store.results import RECORDS
from perfport.workload import discover


def test_every_run_of_a_folder_is_checked(tmp_path: Path) -> None:
    records = [data.record("a"), data.record("b")]
    for name in ("bad", "good", "short"):
        data.store(tmp_path / name, records, {**data.environment(), "planned": 2})
    (tmp_path / "bad" / RECORDS).write_text("{}\n")
    (tmp_path / "short" / RECORDS).unlink()
    experiment(tmp_path / "short")  # a folder with environment and experiment is a run that wrote no record
    bad, good, short = validate_runs(tmp_path)
    assert bad.faults and "schema version None" in bad.faults[0]
    assert (good.folder, good.faults, good.records, good.lacks) == (tmp_path / "good", [], 2, "")
    assert short.faults
    with pytest.raises(UsageError, match="no results here"):
        list(validate_runs(tmp_path / "none"))


def test_the_cases_of_an_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = DeviceInfo.model_validate(data.device(data.POCL))
    monkeypatch.setattr(
        "perfport.machine.discovery.discover", lambda: [device, device.model_copy(update={"id": "x:y:0"})]
    )
    path = experiment(tmp_path, study={"variants": ["vectorized"], "tunables": {"group": [32, 64]}})
    assert count_cases(path, discover()) == 4
    with pytest.raises(UsageError, match="devices: no device matches 'nonesuch'"):
        count_cases(experiment(tmp_path, devices=["nonesuch"]), {})
