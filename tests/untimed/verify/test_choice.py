"""Which variants are verified: names are judged before any device is looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from perfport.machine import discovery
from perfport.model.errors import UsageError
from perfport.untimed.verify.choice import tasks_for

PLANTED = [str(Path(__file__).parents[2] / "data" / "planted")]


def test_each_device_gets_every_check_size(monkeypatch: pytest.MonkeyPatch, opencl_infos: list[Any]) -> None:
    monkeypatch.setattr(discovery, "discover", lambda: opencl_infos)
    tasks = tasks_for("planted/", workloads=PLANTED, devices=[opencl_infos[0].id], seed=7)
    jobs = [job for task in tasks for job in task.jobs]
    assert {job.device.id for job in jobs} == {opencl_infos[0].id} and {job.seed for job in jobs} == {7}
    assert len({(job.problem, str(job.parameters)) for job in jobs}) == len(jobs) > len(tasks)
    assert len({job.problem for job in jobs}) == len(tasks), "all sizes of a problem share a child"


@pytest.mark.parametrize(("pattern", "profile", "message"), [("nothing", None, "'nothing'"), ("", "hd7971", "hd7970")])
def test_wrong_names_need_no_device(
    monkeypatch: pytest.MonkeyPatch, pattern: str, profile: str | None, message: str
) -> None:
    def refuse() -> NoReturn:
        raise AssertionError("a device was looked for")

    monkeypatch.setattr(discovery, "discover", refuse)
    with pytest.raises(UsageError, match=message):
        tasks_for(pattern, profile=profile, workloads=PLANTED)
