"""Slurm: what an experiment says, and a real cluster whose jobs are killed, cancelled, preempted, lose their node."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import slurm_cluster
import yaml

from perfport.machine import discovery
from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import Record, Status
from perfport.run import jobs, local, run, slurm
from perfport.run.experiment import load
from perfport.store.results import RECORDS, Run, Writer

FAULTY = Path(__file__).parents[1] / "data" / "faulty"
SIZES = [1000, 2000, 3000, 4000, 5000, 6000]


def experiment(folder: Path, executor: dict[str, Any], **study: Any) -> Path:
    """Write an experiment over the faulty workload."""
    content = {
        "name": "onslurm", "timeout": 20, "seed": 7, "executor": executor,
        "measurement": {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm"},
        "experiments": [{
            "workload": "faulty", "problem": "double", "parameters": {"n": SIZES}, "variants": ["slow"], **study,
        }],
    }  # fmt: skip
    path = folder / "onslurm.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_device_option_is_refused_and_dry_run_needs_no_cluster(tmp_path: Path, capsys: Any) -> None:
    path = experiment(tmp_path, {"kind": "slurm", "partitions": {"gpu": {"devices": ["cuda"], "jobs": 2}}})
    with pytest.raises(UsageError, match=r"--device: .*executor\.partitions"):
        run.run(str(path), local.Options(devices=["cpu"]))
    content = {**yaml.safe_load(path.read_text()), "devices": ["cpu"]}
    (tmp_path / "both.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UsageError, match=r"both\.yaml: devices: .*executor\.partitions"):
        run.run(str(tmp_path / "both.yaml"), local.Options())
    assert run.run(str(path), local.Options(dry_run=True, workloads=[str(FAULTY)])).records == []
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split() for row in rows] == [["gpu", "1/2", "cuda"], ["gpu", "2/2", "cuda"]]


class Scripted:
    """In place of a cluster: the states that a job's submissions end in, one after the other."""

    def __init__(self, *states: str, reason: str = "") -> None:
        self.states, self.reason, self.submitted = list(states), reason, 0

    def submit(self, job: jobs.Job, share: jobs.Share) -> None:
        """Take a job."""
        self.submitted += 1
        job.ids.append(str(self.submitted))
        job.state = "PENDING"

    def update(self, active: Sequence[jobs.Job]) -> None:
        """Let the next state come true."""
        for job in active:
            job.state, job.reason = self.states.pop(0), self.reason


@pytest.mark.parametrize(
    ("states", "submissions"),
    [
        (["PENDING", "RUNNING", "COMPLETED"], 1),
        (["RUNNING", "NODE_FAIL", "PENDING", "FAILED", "RUNNING", "COMPLETED"], 3),
        (["TIMEOUT", "PREEMPTED", "OUT_OF_MEMORY"], 3),
        (["GONE", "COMPLETED"], 2),
        (["RUNNING", "CANCELLED"], 1),
        (["REFUSED"], 1),
    ],
)
def test_what_is_submitted_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, states: list[str], submissions: int
) -> None:
    monkeypatch.setattr(slurm, "POLL_S", (0.0, 0.0))
    path = experiment(tmp_path, {"kind": "slurm", "retries": 2, "partitions": {"gpu": {"devices": ["cuda"]}}})
    own, script = [jobs.Job(partition="gpu", part=0, parts=1)], Scripted(*states, reason="because")
    writer = Writer(tmp_path / "out")
    session = slurm.Session(load(path), local.Options(), own, script, writer)  # type: ignore[arg-type]
    session.run()
    writer.close()
    assert (script.submitted, script.states) == (submissions, [])
    assert json.loads((tmp_path / "out" / slurm.JOBS).read_text())["jobs"][0]["state"] == states[-1]
    assert re.search(f"nobody planned .* ended {states[-1]} on no node. because", session.close().lost)


def test_a_share_that_is_not_possible_says_why(
    monkeypatch: pytest.MonkeyPatch, opencl_infos: list[Any], tmp_path: Path
) -> None:
    monkeypatch.setattr(discovery, "discover", lambda: opencl_infos)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    share = jobs.Share(
        experiment=experiment(tmp_path, {}), folder=tmp_path / "job", devices=["nowhere"], part=0, parts=1, seed=1,
        patterns=(), retry=(), workloads=[str(FAULTY)], command=[],
    )  # fmt: skip
    assert "no device matches 'nowhere'" in share.run()
    assert not (tmp_path / "job").exists()


def test_what_jobs_say_of_their_end_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Slurm forgets jobs; what a job said of its end stays, and one that said nothing is gone."""
    pytest.importorskip("submitit")
    for name in ("sbatch", "srun", "squeue"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = experiment(tmp_path, {"kind": "slurm", "partitions": {"gpu": {"devices": ["cuda"]}}})
    cluster = slurm.Cluster(tmp_path / "out", load(path))
    session = tmp_path / "out" / "jobs" / "submitit-1"
    session.mkdir()
    for number, said in enumerate([{}, {"refused": "no device"}, {"error": "RuntimeError: a"}, None]):
        if said is not None:
            (session / f"{number}.json").write_text(json.dumps(said))
        job = jobs.Job(partition="gpu", part=0, parts=1, ids=[str(number)], session=session.name, state="RUNNING")
        cluster.update([job])
        expected = [("COMPLETED", ""), ("REFUSED", "no device"), ("GONE", "RuntimeError: a"), ("GONE", "")][number]
        assert (job.state, job.reason) == expected


def test_without_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    path = experiment(tmp_path, {"kind": "slurm", "partitions": {"gpu": {"devices": ["cuda"]}}})
    with pytest.raises(InfrastructureError, match="sbatch, srun and squeue are not on the PATH"):
        run.run(str(path), local.Options(out=tmp_path / "out", workloads=[str(FAULTY)]))


reason = slurm_cluster.missing()
needs_slurm = pytest.mark.skipif(bool(reason), reason=reason or "runs")


@pytest.fixture(scope="module")
def users(no_ceilings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user of a running cluster."""
    pytest.importorskip("submitit")
    with slurm_cluster.cluster(tmp_path_factory.mktemp("slurm")) as variables:
        yield {**no_ceilings, **variables}


class Session:
    """``perfport run`` in the background, and what happens to its jobs."""

    def __init__(self, arguments: list[str], users: dict[str, str], cwd: Path) -> None:
        self.users, self.output = users, cwd / "output.txt"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "perfport.cli", *arguments], env=users, cwd=cwd, stdout=output, stderr=output
            )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def call(self, *command: str) -> str:
        """Run a command of Slurm."""
        return subprocess.run(command, env=self.users, capture_output=True, text=True, check=True).stdout

    def until(self, condition: Callable[[], Any], timeout: float = 60) -> Any:
        """Wait until something is so."""
        ends = time.monotonic() + timeout
        while not (found := condition()):
            assert self.process.poll() is None and time.monotonic() < ends, self.output.read_text()
            time.sleep(0.1)
        return found

    def happens(self, *chains: list[tuple[Callable[[], Any], Callable[[], Any]]]) -> None:
        """Do things as soon as it is time for each: those of a chain one after the other."""

        def step() -> bool:
            for chain in chains:
                if chain and chain[0][0]():
                    chain.pop(0)[1]()
            return not any(chains)

        self.until(step, 120)

    def queue(self, job: str, what: str) -> str:
        """One field of a job that Slurm lists: its reason (``%r``), its node (``%N``)."""
        return self.call("squeue", "--noheader", f"--job={job}", f"--format={what}").strip()

    def start(self, job: str) -> None:
        """Slurm lets requeued jobs wait for two minutes: not this one."""
        self.call("scontrol", "update", f"JobId={job}", "StartTime=now")

    def wait(self) -> int:
        """Return the exit code."""
        return self.process.wait(120)

    @property
    def rows(self) -> list[list[str]]:
        """The table of jobs."""
        lines = self.output.read_text().splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("partition"))
        return [line.split() for line in lines[start + 2 :] if line.startswith("short")]


def stored(folder: Path) -> list[Record]:
    """The whole records that a job has stored by now."""
    return Run(folder).records if (folder / RECORDS).exists() and (folder / "environment.json").exists() else []


def job_ids(top: Path, part: int) -> list[str]:
    """The Slurm jobs of a share, as the store knows them."""
    file = top / slurm.JOBS
    return list(json.loads(file.read_text())["jobs"][part]["ids"]) if file.exists() else []


def task_of(job: str) -> psutil.Process | None:
    """The process of a Slurm job that runs the share, if there is one."""
    for process in psutil.process_iter():
        try:
            submitted = "submitit.core._submit" in process.cmdline() and process.name() != "srun"
            if submitted and process.environ().get("SLURM_JOB_ID") == job:
                return process
        except psutil.Error:
            continue
    return None


def kill(job: str) -> None:
    """Kill what a Slurm job runs."""
    task = task_of(job)
    assert task
    task.send_signal(signal.SIGKILL)


def measures(job: str) -> bool:
    """Whether a Slurm job has a worker by now."""
    try:
        task = task_of(job)
        return task is not None and any("spawn_main" in " ".join(child.cmdline()) for child in task.children())
    except psutil.Error:
        return False


@needs_slurm
@pytest.mark.minutes
@pytest.mark.timeout(280)
def test_killed_cancelled_preempted_and_without_its_node(
    users: dict[str, str], opencl_infos: list[Any], tmp_path: Path
) -> None:
    """Whatever ends a job, its run folder resumes: no case twice, none lost without being named."""
    partition = {"devices": [opencl_infos[0].id], "jobs": 2, "sbatch": {"comment": "tests"}}
    executor = {"kind": "slurm", "time": 10, "retries": 1, "partitions": {"short": partition}}
    file, top = experiment(tmp_path, executor), tmp_path / "out"
    arguments = ["run", str(file), "--out", str(top), "--workloads", str(FAULTY)]
    first, second = (top / "jobs" / f"out-short-{number}" for number in (1, 2))

    kept: list[Record] = []
    with Session(arguments, users, tmp_path) as session:
        one, two = (session.until(lambda part=part: job_ids(top, part))[0] for part in (0, 1))
        session.happens(
            [(lambda: stored(first), lambda: kept.extend(stored(first)) or kill(one))],
            [
                # As Slurm does before the time is up, or at preemption.
                (lambda: stored(second), lambda: session.call("scancel", "--signal=USR2", two)),
                (lambda: session.queue(two, "%r") == "BeginTime", lambda: session.start(two)),
                (lambda: measures(two), lambda: session.call("scancel", two)),
            ],
        )
        assert session.wait() == 4, session.output.read_text()
    assert "submitted again" in session.output.read_text()
    cancelled = stored(second)
    assert 0 < len(cancelled) < 3
    (_, _, *row_one), (_, _, *row_two) = session.rows
    assert row_one[:3] == [f"{one},", job_ids(top, 0)[1], "COMPLETED"] and row_one[4:] == [*"33000"]
    assert row_two[:2] == [two, "CANCELLED"], "requeued under its id"
    assert row_two[3:] == ["3", str(len(cancelled)), "0", "0", str(3 - len(cancelled))]
    merged = Run(top / "out-short")
    lost = [record for record in merged.records if record.status is Status.CRASHED]
    assert len(merged.records) == len(SIZES) and len(lost) == 3 - len(cancelled)
    assert all(record.failure and "CANCELLED" in record.failure.reason for record in lost)

    with Session([*arguments, "--resume"], users, tmp_path) as session:
        job = session.until(lambda: job_ids(top, 1)[1:])[0]
        session.until(lambda: measures(job))
        node = session.queue(job, "%N")
        down = ["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test"]
        session.happens([
            (lambda: True, lambda: session.call(*down)),
            (lambda: session.queue(job, "%r") == "BeginTime", lambda: session.start(job)),
        ])  # fmt: skip
        assert session.wait() == 0, session.output.read_text()
    assert session.rows[1][2:5] == [f"{two},", job, "COMPLETED"] and session.rows[1][5] != node
    whole = Run(top / "out-short")
    assert sorted(record.identity.parameters["n"] for record in whole.records) == SIZES
    assert all(record.status.measured for record in whole.records)
    times = {record.time for record in whole.records}
    assert {record.time for record in [*kept, *cancelled]} <= times, "measured again"
