"""Run folders: killed, interrupted, resumed, retried, written by one run at a time."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import report_data as data
from faulty_runs import FAULTY, command, executed, experiment, lines, named_variants

from perfport.judge.headline import standing
from perfport.machine.device_profile import load_profile
from perfport.model.record import Failure, Status
from perfport.run.local import conclude
from perfport.store.collection import Collection
from perfport.store.environment import CEILINGS, ENVIRONMENT
from perfport.store.results import RECORDS, Run, Writer

pytestmark = [pytest.mark.any_device, pytest.mark.minutes]

LONG = {"variants": ["good", "slow"], "parameters": {"n": [100, 200, 300, 400]}}


CASES = 8


def descendants(pid: int) -> list[psutil.Process]:
    """Every process below one."""
    return psutil.Process(pid).children(recursive=True)


def assert_gone(processes: list[psutil.Process]) -> None:
    """No process of these is left, zombies that nobody reaps aside."""
    _, alive = psutil.wait_procs(processes, timeout=20)
    left = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not left, f"orphans: {left}"


class Background:
    """A run in the background, in a process group of its own."""

    def __init__(self, arguments: list[str], env: dict[str, str], cwd: Path) -> None:
        self.errors = cwd / "stderr.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "perfport.cli", *arguments], env=env, cwd=cwd, start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something while the run goes on."""
        deadline = time.monotonic() + 120
        while not condition():
            assert self.process.poll() is None, f"ended early: {self.errors.read_text()}"
            assert time.monotonic() < deadline, f"waited in vain: {self.errors.read_text()}"
            time.sleep(0.02)


@pytest.fixture
def background(no_ceilings: Any, tmp_path: Path) -> Iterator[Callable[..., Background]]:
    """Start runs that are killed, children included, if a test leaves them."""
    started: list[Background] = []

    def start(arguments: list[str]) -> Background:
        env = {**no_ceilings, "FAULTY_LOG": str(tmp_path / "log.txt")}
        started.append(Background(arguments, env, tmp_path))
        return started[-1]

    yield start
    for run in started:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()


def named(raw: list[bytes]) -> list[str]:
    """The cases of record lines, as the log names them."""
    identities = [json.loads(line)["identity"] for line in raw]
    return [f"{identity['variant']} {identity['parameters']['n']}" for identity in identities]


def test_sigkill_in_the_middle_then_resume(
    selector: str, perfport: Any, no_ceilings: Any, background: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = command(experiment(tmp_path, LONG), selector, out)
    run = background(arguments)
    run.until(lambda: len(lines(out)) >= 3)
    children = descendants(run.process.pid)
    run.process.kill()
    run.process.wait()
    assert_gone(children)
    before = lines(out)
    before = [line for line in before if line.endswith(b"\n")]
    assert 3 <= len(before) < CASES
    with (out / RECORDS).open("a") as file:
        file.write('{"schema_version":2,"key":"to')
    (tmp_path / "log.txt").unlink()

    env = {**no_ceilings, "FAULTY_LOG": str(tmp_path / "log.txt")}
    done = perfport(*arguments, "--resume", env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = lines(out)
    assert after[: len(before)] == before, "kept records changed"
    assert sorted(named(after)) == sorted(f"{v} {n}" for v in ("good", "slow") for n in LONG["parameters"]["n"])
    assert executed(tmp_path) == set(named(after[len(before) :])), "measured what was done, or not what was left"
    assert len({record.seed for record in Run(out).records}) == 1

    (tmp_path / "log.txt").unlink()
    again = perfport(*arguments, "--resume", env=env, cwd=tmp_path)
    assert again.returncode == 0 and lines(out) == after and not executed(tmp_path), "a finished run has nothing to do"


def test_ctrl_c_leaves_a_valid_store(selector: str, perfport: Any, background: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = background(command(experiment(tmp_path, LONG), selector, out))
    run.until(lambda: len(lines(out)) >= 2)
    children = descendants(run.process.pid)
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does: to the workers, too
    assert run.process.wait(60) == 130
    assert_gone(children)
    assert "Traceback" not in run.errors.read_text()
    assert 2 <= len(Run(out).records) < CASES
    done = perfport("validate", out)
    assert done.returncode == (2 if "planned" in Run(out).environment else 0), "whole but for what was not run"


def test_retry_failed_runs_failed_cases_alone(selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log.txt"
    file = experiment(tmp_path, {"variants": ["good", "raises", "wrong", "needs_cuda"]})
    env = {**no_ceilings, "FAULTY_LOG": str(log)}
    perfport(*command(file, selector, out), env=env, cwd=tmp_path)
    before = lines(out)
    log.unlink()
    kept = perfport(*command(file, selector, out, "--resume"), env=env, cwd=tmp_path)
    assert lines(out) == before and not log.exists(), "failed cases are skipped unless asked for"
    assert kept.returncode == 3, "what was wrong stays wrong"
    perfport(*command(file, selector, out, "--resume", "--retry", "failed"), env=env, cwd=tmp_path)
    assert set(named_variants(lines(out)[len(before) :])) == {"raises", "wrong"}
    assert executed(tmp_path) == {"raises 1000", "wrong 1000"}
    assert len(Run(out).records) == 4, "the latest record of each case counts"


def test_reasons_that_differ_in_numbers_are_given_once() -> None:
    said: list[str] = []
    records = [
        data.record("a", status=Status.CONTENDED, failure=Failure(reason=f"a span of {span} s and 3 launches"))
        for span in ("9e-05", "2", "0.0012")
    ]
    conclude(records, [Path("one"), Path("two")], said.append, "perfport run x --resume")
    assert said[0] == "one, two: 3 contended"
    assert said[1].endswith("contended: a span of 2 s and 3 launches (the worst of 3 cases).")
    assert said[2].startswith("Their times may be wrong.") and said[2].endswith(": perfport run x --resume")


def test_contended_cases_say_how_they_are_measured_again(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    env = {**no_ceilings, "FAULTY_LOG": str(log)}
    study = {"variants": ["good"], "tunables": {"shade": [1, 2]}}
    file = experiment(tmp_path, study, devices=[selector], report={"path": "reports/faults.md"})
    arguments = ["run", str(file), "--workloads", str(FAULTY)]
    first = perfport(*arguments, env=env, cwd=tmp_path)
    assert first.returncode == 0 and "report: reports/faults.md" in first.stdout
    assert "  good [shade=1] " in first.stderr and "  good [shade=2] " in first.stderr, "swept variants are told apart"
    (out,) = (tmp_path / "results").iterdir()
    contents = [json.loads(line) for line in lines(out)]
    contents[1] |= {"status": "contended", "failure": {"reason": "other processes used 90% of the processor"}}
    (out / RECORDS).write_text("".join(f"{json.dumps(content)}\n" for content in contents))
    log.unlink()

    kept = perfport(*arguments, "--resume", "--retry", "failed", env=env, cwd=tmp_path)
    assert kept.returncode == 0 and len(lines(out)) == 2 and not log.exists()
    assert "1 of 2 cases were contended: other processes used 90% of the processor." in kept.stdout
    (advice,) = re.findall(r"measure them again: perfport (run .*)$", kept.stdout, re.M)
    again = perfport(*advice.split(), env=env, cwd=tmp_path)
    assert again.returncode == 0 and "contended:" not in again.stdout.replace("0 contended", ""), again.stdout
    assert log.exists() and len(lines(out)) == 3, "the contended case alone"
    assert json.loads(lines(out)[2])["key"] == contents[1]["key"]


def test_part_of_a_run_keeps_its_report_to_itself(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    file = experiment(
        tmp_path, {"variants": ["good", "slow"]}, devices=[selector], report={"path": "reports/faults.md"}
    )
    whole = tmp_path / "reports" / "faults.md"
    whole.parent.mkdir()
    whole.write_text("the report of a whole run")
    for number, more in enumerate((["-b", "good"], ["-d", selector], ["--out", "elsewhere"])):
        arguments = ["run", file, "--workloads", FAULTY, *more]
        done = perfport(*arguments, *(["--out", f"out{number}"] if number == 0 else []), env=no_ceilings, cwd=tmp_path)
        assert done.returncode == 0 and whole.read_text() == "the report of a whole run"
        (told,) = re.findall(r"^report: (.*)$", done.stdout, re.M)
        assert told.endswith("/report.md") and (tmp_path / told).read_text().startswith("#")
        assert (tmp_path / told).parent / RECORDS in [*tmp_path.rglob(RECORDS)], "in the run's folder"


def test_a_dry_run_prints_the_keys_of_a_later_run(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    file = experiment(tmp_path, {"variants": ["good"], "tunables": {"shade": [1, 2, 3]}})
    arguments = command(file, selector, tmp_path / "out", "--seed", "5")
    planned = perfport(*arguments, "--dry-run", env=no_ceilings, cwd=tmp_path)
    assert "seed 5" in planned.stdout and not (tmp_path / "out").exists()
    perfport(*arguments, env=no_ceilings, cwd=tmp_path)
    keys = re.findall(r"^  ([0-9a-f]{16})  good shade=\d$", planned.stdout, re.M)
    assert len(keys) == 3 and set(keys) == {record.key for record in Run(tmp_path / "out").records}


def test_a_run_stores_the_nominal_ceilings_of_a_matching_profile(
    selector: str, main: Any, no_ceilings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile = load_profile("hd7970")
    monkeypatch.setattr("perfport.run.local.match_profile", lambda name, kind: profile)
    monkeypatch.setenv("XDG_CACHE_HOME", no_ceilings["XDG_CACHE_HOME"])
    monkeypatch.chdir(tmp_path)
    code, _, err = main(*command(experiment(tmp_path, {"variants": ["good"]}), selector, tmp_path / "out"))
    assert code == 0, err
    stored = Run(tmp_path / "out").environment["profiles"][selector]
    assert stored["name"] == "hd7970" and stored["nominal"] == profile.nominal


def test_a_run_needs_resume_to_go_on_in_a_folder(
    faults: tuple[Any, Path], selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    done = perfport(*command(experiment(tmp_path, {}), selector, faults[1]), env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 2 and "--resume" in done.stderr


def test_a_run_tells_which_size_its_problems_are_shown_at(faults: tuple[Any, Path]) -> None:
    """So that reports know it of a workload that is not here when they are made."""
    run = Run(faults[1])
    told = run.environment["workloads"]["faulty"]["problems"]["double"]
    assert told["headline"] == {"cpu": {"n": 1000}, "gpu": {"n": 1000}} and told["defaults"] == {}
    collection = Collection([run])
    subjects = [subject for subject in collection.subjects if subject.problem == "double"]
    found = standing(collection, subjects, collection.sites)
    assert found and all(each.headline for each in found.values())


def test_results_folder_that_cannot_be_written(selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    file = experiment(tmp_path, {"variants": ["good"]})
    done = perfport(*command(file, selector, tmp_path / "file" / "out"), env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert f"--out: {tmp_path / 'file' / 'out'} cannot be written ({tmp_path / 'file'} is not a folder)" in done.stderr


@pytest.mark.parametrize("name", [RECORDS, CEILINGS])
def test_disk_full_in_the_middle(
    selector: str, perfport: Any, no_ceilings: Any, background: Any, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    arguments = command(experiment(tmp_path, LONG), selector, out)
    run = background(arguments)
    run.until(lambda: len(lines(out)) >= 2)
    children = descendants(run.process.pid)
    if name == CEILINGS:  # a later probe no longer fits, while records do
        with (out / CEILINGS).open("a") as file:
            file.write(" " * (1 << 20) + "\n")
    else:
        assert (out / CEILINGS).stat().st_size < (out / RECORDS).stat().st_size
    size = (out / name).stat().st_size + 100
    psutil.Process(run.process.pid).rlimit(resource.RLIMIT_FSIZE, (size, size))
    code = run.process.wait(60)
    errors = run.errors.read_text()
    assert code == 4 and "Traceback" not in errors and name in errors.splitlines()[-1], errors
    assert_gone(children)
    kept = lines(out)
    assert all(line.endswith(b"\n") for line in kept) and 2 <= len(Run(out).records) == len(kept)
    done = perfport(*arguments, "--resume", env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 0 and len(lines(out)) == CASES and lines(out)[: len(kept)] == kept


@pytest.fixture(scope="module")
def two_cases(selector: str, perfport: Any, no_ceilings: Any, tmp_path_factory: Any) -> Path:
    """A run of two cases, with its experiment beside it."""
    folder: Path = tmp_path_factory.mktemp("two")
    file = experiment(folder, {"variants": ["good"], "parameters": {"n": [100, 200]}})
    done = perfport(*command(file, selector, folder / "out", "--seed", "7"), env=no_ceilings, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("content", [None, b"", b"{", b"[1]", b'{"schema_version": 2}'])
def test_a_damaged_environment_keeps_no_run_from_going_on(
    selector: str, perfport: Any, main: Any, no_ceilings: Any, two_cases: Path, tmp_path: Path, content: bytes | None
) -> None:
    shutil.copytree(two_cases, tmp_path, dirs_exist_ok=True)
    out = tmp_path / "out"
    arguments = command(tmp_path / "faults.yaml", selector, out)
    before = lines(out)
    (out / RECORDS).write_bytes(before[0])
    (out / ENVIRONMENT).unlink()
    if content is not None:
        (out / ENVIRONMENT).write_bytes(content)
    pages = [["report", out, "-o", tmp_path / "r.md"], ["report", "--suite", out, "-o", tmp_path / "s.md"]]
    for reading in (*pages, ["table", out]):
        code, _, errors = main(*reading)
        assert code == 0, errors
        assert content == b'{"schema_version": 2}' or f"left out: {out / ENVIRONMENT}: " in errors
    done = perfport(*arguments, "--resume", env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    run = Run(out)
    assert lines(out)[0] == before[0] and len(run.records) == 2 and {record.seed for record in run.records} == {7}
    assert run.environment["planned"] == 2


def test_two_runs_into_one_folder(selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = command(experiment(tmp_path, {"variants": ["good"]}), selector, out)
    with Writer(out):
        done = perfport(*arguments, "--resume", env=no_ceilings, cwd=tmp_path)
        assert done.returncode == 4 and "another run is writing here" in done.stderr
        assert not lines(out)
    assert perfport(*arguments, "--resume", env=no_ceilings, cwd=tmp_path).returncode == 0, "the lock is given back"


@pytest.mark.parametrize("name", [RECORDS, "environment.json"])
def test_records_of_another_schema_version(
    faults: tuple[Any, Path], selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for file in faults[1].iterdir():
        text = file.read_text()
        if file.name == name:
            text = re.sub(r'("schema_version": ?)\d+', r"\g<1>99", text)
            assert "99" in text
        (out / file.name).write_text(text)
    resume = command(experiment(tmp_path, {}), selector, out, "--resume")
    for arguments in (["report", str(out), "-o", "r.md"], ["validate", str(out)], resume):
        done = perfport(*arguments, env=no_ceilings, cwd=tmp_path)
        assert done.returncode == 2 and "schema version 99" in done.stderr and name in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert (out / name).read_text() != (faults[1] / name).read_text(), "left as it was"
