"""What of stored results a page is made of."""

from __future__ import annotations

from pathlib import Path

import history_data
import numpy as np
import pytest
import report_data as data

from perfport.model.errors import UsageError
from perfport.nightly.history import History
from perfport.report import selection
from perfport.untimed import convergence


def test_cases_and_platforms_of_stored_runs(tmp_path: Path) -> None:
    data.store(tmp_path / "run", [*data.ladder(data.POCL), *data.ladder(data.INTEL)])
    everything = selection.cases([tmp_path])
    some = selection.cases([tmp_path], device=data.POCL)
    assert 0 < len(some.cases) < len(everything.cases)
    with pytest.raises(UsageError, match=r"--variant: no variant in .* contains 'nosuch'"):
        selection.cases([tmp_path], variant="nosuch")
    assert selection.platform_set(everything, None) == ("all", None)
    name, (site,) = selection.platform_set(everything, f"one={data.POCL}")
    assert name == "one" and site.name == data.POCL
    with pytest.raises(UsageError, match="--platforms: expected NAME=DEVICE"):
        selection.platform_set(everything, data.POCL)


def test_claims_and_workloads_by_name() -> None:
    assert list(selection.claims([], workload="gdn")) == ["gdn"]
    with pytest.raises(UsageError, match="--problem: no problem in the claims contains 'nosuch'"):
        selection.claims([], problem="nosuch")
    assert [workload.name for workload in selection.workloads([], "svm")] == ["svm_rbf"]
    with pytest.raises(UsageError, match="--workload: no workload's name contains 'nosuch'"):
        selection.workloads([], "nosuch")


def test_convergences_that_are_stored(tmp_path: Path) -> None:
    stored = convergence.Convergence(
        workload="w", problem="p", variant="v", lines={"CUDA": 2}, common=1, total=2, convergence=None
    )
    convergence.store([stored], tmp_path / convergence.FILE)
    assert selection.convergences([tmp_path, tmp_path / "none"]) == [stored]


def test_series_of_a_history(tmp_path: Path) -> None:
    history_data.write_night(tmp_path, 1, np.array([1.0, 2.0, 3.0]))
    history = History(tmp_path)
    assert len(selection.series(history)) == 3
    assert [series.place.variant for series in selection.series(history, variant="_1")] == ["variant_1"]
    with pytest.raises(UsageError, match=r"--variant: no variant in .* contains 'nosuch'"):
        selection.series(history, variant="nosuch")
