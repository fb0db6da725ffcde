"""What ``perfport verify`` runs: names are judged first, then devices, then tools."""

from __future__ import annotations

import pytest
import report_data as data

from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UnavailableError, UsageError
from perfport.untimed.verify.choice import tasks_for

DEVICE = DeviceInfo.model_validate(data.device(data.POCL))


def test_every_variant_that_is_meant_runs_on_the_devices_that_are_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfport.machine.discovery.discover", lambda: [DEVICE])
    tasks = tasks_for("svm_rbf/rbf_rows/vectorized", devices=["cpu"], seed=3)
    jobs = [job for task in tasks for job in task.jobs]
    assert jobs and {job.seed for job in jobs} == {3}
    assert {job.device.id for job in jobs} == {DEVICE.id} and {task.tool.name for task in tasks} == {"verify"}
    assert {check.variant for job in jobs for check in job.cases} == {"vectorized", "vectorized_points"}
    with pytest.raises(UsageError, match="cannot be watched"):
        tasks_for("svm_rbf", sanitize=True, devices=["cpu"])


def test_mistakes_come_before_devices_and_devices_before_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> str:
        raise UnavailableError("no simulator")

    monkeypatch.setattr("perfport.machine.discovery.discover", list)
    monkeypatch.setattr("perfport.machine.simulator.library", nothing)
    for sanitize in (False, True):
        with pytest.raises(UsageError, match="no variant's workload/problem/variant contains 'nosuch'"):
            tasks_for("nosuch", sanitize=sanitize)
    with pytest.raises(UsageError, match="--profile: unknown device profile 'hd7971'"):
        tasks_for("", profile="hd7971")
    with pytest.raises(InfrastructureError, match="no usable device for 'all'"):
        tasks_for("svm_rbf")
    with pytest.raises(UnavailableError, match="no simulator"):
        tasks_for("svm_rbf", sanitize=True)
