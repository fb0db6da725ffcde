"""`perfport count`: exit codes, what a failure leaves, tables."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from counted import PLANTED

from perfport.model.errors import InfrastructureError
from perfport.model.record import Identity, Status
from perfport.untimed.child import Job
from perfport.untimed.count import Count, read, simulated, survey


def test_command_and_its_exit_codes(
    plugin: simulated.Counter, perfport: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    def call(what: str, *more: object) -> CompletedProcess[str]:
        return perfport("count", what, "--workloads", PLANTED, *more, cwd=tmp_path)

    good = call("counted/anything/wide", "-o", "good")
    assert good.returncode == 0 and "agrees" in good.stdout and "1.000" in good.stdout, good.stderr
    assert call("counted/anything/no_atomics", "-o", "bad").returncode == 3
    again = call("counted/anything/wide", "-o", "good")
    assert again.returncode == 2 and "holds counts already" in again.stderr
    preset = call("counted/anything/wide", "--preset", "tiny", "--json")
    content = json.loads(preset.stdout)
    assert preset.returncode == 0 and [count["identity"].get("preset") for count in content] == [None, None, "tiny"]
    (folder,) = (tmp_path / "results").iterdir()
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["tool"]["name"] == "oclgrind" and environment["seed"] == 1


def test_a_size_that_fails_takes_no_other_away(
    plugin: simulated.Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = simulated.count
    sizes: list[Any] = []

    def failing(job: Job, *rest: Any) -> Any:
        sizes.append(job.parameters)
        if job.parameters != sizes[0]:
            raise InfrastructureError("the tool failed")
        return count(job, *rest)

    monkeypatch.setattr(simulated, "count", failing)
    monkeypatch.setattr("perfport.untimed.child.parallel", lambda: 1)
    with pytest.raises(InfrastructureError, match="the tool failed"):
        survey.run(survey.Options(what="counted", workloads=[str(PLANTED)], out=tmp_path / "counts"))
    kept = read(tmp_path / "counts")
    assert kept and all(one.identity.parameters == sizes[0] for one in kept)


def test_a_killed_count_keeps_what_it_has(plugin: simulated.Counter, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perfport.cli", "count", "counted", "--workloads", str(PLANTED), "-o", "counts"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stored = tmp_path / "counts" / "counts.jsonl"
    end = time.monotonic() + 60
    while not (stored.exists() and b"\n" in stored.read_bytes()) and time.monotonic() < end and running.poll() is None:
        time.sleep(0.005)
    running.kill()
    running.wait()
    assert read(tmp_path / "counts")


def test_tables_say_what_warps_waited_for() -> None:
    identity = Identity(
        workload="counted", problem="anything", preset="tiny", parameters={"n": 64}, variant="wide", role="rung",
        rung=1, tunables={}, devices=["cuda:nvidia:0"], backend="cuda", precision="fp32",
    )  # fmt: skip
    waits = {"wait": 0.4, "no_instruction": 0.3, "barrier": 0.2, "drain": 0.07, "misc": 0.03}
    one = Count(
        identity=identity,
        time="2026-01-01T00:00:00+00:00",
        seed=1,
        tool="ncu",
        tool_version="1",
        status=Status.OK,
        stalls=waits,
    )
    one.raw = {"kernel": {"sm__cycles_active.sum": 8.0, "occupied_cycles": 3.0}}
    text = survey.tables([one])
    assert (
        "37.5%" in text
        and "30.0%" in text
        and "wait 40%, no_instruction 30%, barrier 20%, drain 7%" in text
        and "misc" not in text
    )
    assert "waited for" not in survey.tables([one.model_copy(update={"stalls": {}})])
