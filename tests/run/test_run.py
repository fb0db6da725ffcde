"""`perfport run`: the executor that an experiment names runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faulty_runs import experiment

from perfport.model.errors import UsageError
from perfport.run import run as running
from perfport.run.local import Finished, Options


@pytest.mark.parametrize(
    ("executor", "kind"), [({}, "local"), ({"kind": "slurm", "partitions": {"p": {"devices": ["gpu"]}}}, "slurm")]
)
def test_the_executor_is_the_experiment_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, executor: dict[str, Any], kind: str
) -> None:
    called: list[str] = []

    def executes(name: str) -> Any:
        return lambda *_: called.append(name) or Finished([], [], None)

    monkeypatch.setattr(running, "EXECUTORS", {name: executes(name) for name in running.EXECUTORS})
    running.run(str(experiment(tmp_path, {}, executor=executor)), Options())
    assert called == [kind]


def test_a_name_that_no_experiment_has() -> None:
    with pytest.raises(UsageError, match="nor an experiment that ships"):
        running.run("nosuch", Options())
