"""What there is here, in rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data
from minimal_workload import MINIMAL

from perfport.machine import discovery
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UsageError
from perfport.run import listing

DEVICE = DeviceInfo.model_validate(data.device(data.POCL))
BROKEN = DEVICE.model_copy(update={"id": "opencl:broken:0", "healthy": False, "reason": "hangs"})


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with one device that works and one that does not."""
    monkeypatch.setattr("perfport.machine.discovery.discover", lambda: [DEVICE, BROKEN])


@pytest.mark.usefixtures("here")
def test_devices_are_those_that_work() -> None:
    assert [device.id for device in discovery.profiled()] == [DEVICE.id, BROKEN.id]
    assert [device.profile is None for device in discovery.profiled()] == [False, True]
    assert [device.id for device in listing.usable_devices(None)] == [DEVICE.id]
    with pytest.raises(UsageError, match="--device: no device matches 'nonesuch'"):
        listing.usable_devices(["nonesuch"])
    with pytest.raises(InfrastructureError, match="no usable device for 'opencl:broken'; see perfport devices"):
        listing.usable_devices(["opencl:broken"])
    rows = listing.device_rows(discovery.profiled())
    assert [row["health"] for row in rows] == ["ok", "broken: hangs"]


def test_without_devices_there_are_no_rows() -> None:
    with pytest.raises(InfrastructureError, match=r"pip install perfport\[cpu\]"):
        listing.device_rows([])


def test_workloads_say_what_runs_here() -> None:
    (svm,) = listing.workloads("svm_rbf", [])
    assert listing.problems(svm).splitlines()[0] == f"svm_rbf: {svm.title}" and "  rbf_rows: " in listing.problems(svm)
    (rows_line,) = (line for line in listing.problems(svm).splitlines() if "  rbf_rows: " in line)
    assert rows_line.endswith("; headline size: full (cpu), large (gpu)")
    rows = {row["variant"]: row for row in listing.variant_rows(svm, [DEVICE, BROKEN]) if row["problem"] == "rbf_rows"}
    assert rows["vectorized"]["runs here"] == DEVICE.id
    assert listing.variant_rows(svm, [BROKEN])[0]["runs here"] == "no: no working device"
    with pytest.raises(UsageError, match=r"no workload 'svm_rfb' \(did you mean 'svm_rbf'\?\)"):
        listing.workloads("svm_rfb", [])


def test_a_problem_without_a_headline_size_says_so(tmp_path: Path) -> None:
    (tmp_path / "undeclared").mkdir()
    (tmp_path / "undeclared" / "__init__.py").write_text(MINIMAL)
    (made,) = listing.workloads("undeclared", [str(tmp_path)])
    assert listing.problems(made).splitlines()[1].endswith("presets: tiny; headline size: the largest that ran")


def test_what_ships(tmp_path: Path) -> None:
    assert {"hd7970"} < {row["profile"] for row in listing.profile_rows()}
    assert {"quick"} < {row["experiment"] for row in listing.experiment_rows()}
