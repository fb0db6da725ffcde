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
    assert {task.job.device.id for task in tasks} == {opencl_infos[0].id}
    assert {task.job.seed for task in tasks} == {7} and len({str(task.job.parameters) for task in tasks}) == len(
        tasks
    ) > 1


@pytest.mark.parametrize(("pattern", "profile", "message"), [("nothing", None, "'nothing'"), ("", "hd7971", "hd7970")])
def test_wrong_names_need_no_device(
    monkeypatch: pytest.MonkeyPatch, pattern: str, profile: str | None, message: str
) -> None:
    def refuse() -> NoReturn:
        raise AssertionError("a device was looked for")

    monkeypatch.setattr(discovery, "discover", refuse)
    with pytest.raises(UsageError, match=message):
        tasks_for(pattern, profile=profile, workloads=PLANTED)
