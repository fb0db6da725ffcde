"""The worker process: groups served one after another, and what ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faulty_runs import command, experiment

from perfport.model.errors import DeviceMemoryError, UsageError
from perfport.model.record import Identity, Status
from perfport.run.cases import Case
from perfport.run.messages import CaseFinished, DeviceLost, GroupFinished, WorkerFailed
from perfport.run.worker import serving
from perfport.run.worker.group import DeviceLostError
from perfport.store.results import Run

pytestmark = pytest.mark.any_device


class Pipe:
    """The worker's end of a pipe: some groups, then the parent hangs up."""

    def __init__(self, groups: int) -> None:
        identity = Identity(workload="w", problem="p", variant="v", devices=["d"], backend="opencl")
        cases = [Case(key=key, identity=identity) for key in "ab"]
        self.groups: list[Any] = [type("G", (), {"cases": cases, "seed": 7})() for _ in range(groups)]
        self.sent: list[Any] = []

    def recv(self) -> Any:
        if not self.groups:
            raise EOFError
        return self.groups.pop()

    def send(self, message: Any) -> None:
        self.sent.append(message)


def served(monkeypatch: pytest.MonkeyPatch, made: Exception | None, ran: Exception | None, groups: int = 2) -> Pipe:
    """Serve groups whose making or running ends with an error, or well."""

    class Group:
        def __init__(self, group: Any, resources: Any) -> None:
            if made:
                raise made

        def run(self) -> None:
            if ran:
                raise ran

    monkeypatch.setattr(serving, "GroupRun", Group)
    monkeypatch.setattr(serving, "obey_parent", lambda *_: None)
    monkeypatch.setenv("POCL_KERNEL_CACHE", "0")
    pipe = Pipe(groups)
    serving.main(pipe, [], "run")  # type: ignore[arg-type]
    return pipe


def test_groups_are_served_until_the_parent_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert served(monkeypatch, None, None).sent == [GroupFinished()] * 2


def test_each_case_fails_where_the_problem_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    *cases, end = served(monkeypatch, UsageError("no such size"), None, groups=1).sent
    assert end == GroupFinished() and all(isinstance(message, CaseFinished) for message in cases)
    assert [(m.record.key, m.record.run, m.record.seed) for m in cases] == [("a", "run", 7), ("b", "run", 7)]
    for message in cases:
        assert message.record.status is Status.UNSUPPORTED and message.record.failure.reason == "no such size"


@pytest.mark.parametrize(
    ("error", "status"),
    [(ValueError("planted"), Status.CRASHED), (DeviceMemoryError("planted"), Status.OUT_OF_MEMORY)],
)
def test_an_error_while_sampling_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: Status
) -> None:
    pipe = served(monkeypatch, None, error)
    (message,) = pipe.sent
    assert isinstance(message, WorkerFailed) and message.status is status
    assert message.log.strip().splitlines()[-1].endswith("planted") and len(pipe.groups) == 1


def test_a_lost_device_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = served(monkeypatch, None, DeviceLostError())
    assert pipe.sent == [DeviceLost()] and len(pipe.groups) == 1


def test_a_problem_that_cannot_be_made_fails_its_cases_and_no_others(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    file = experiment(tmp_path, {"problem": "broken"}, {"variants": ["good"]})
    done = perfport(*command(file, selector, tmp_path / "out"), env=no_ceilings, cwd=tmp_path)
    broken, good = Run(tmp_path / "out").records
    assert done.returncode == 4
    assert broken.status is Status.CRASHED and broken.failure and "planted: the problem itself" in broken.failure.reason
    assert good.status.measured
