"""A run that is told to end, by a batch system, by `kill` or by its terminal, ends in order and can go on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from faulty_runs import FAULTY, command, executed, experiment, lines

from perfport.store.results import Run

pytestmark = [pytest.mark.any_device, pytest.mark.minutes]

LONG = {"variants": ["good", "slow"], "parameters": {"n": [100, 200, 300, 400]}}
CASES = 8


@pytest.fixture
def environment(no_ceilings: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A temporary folder of this test alone."""
    (tmp_path / "tmp").mkdir()
    return {**no_ceilings, "TMPDIR": str(tmp_path / "tmp"), "FAULTY_LOG": str(tmp_path / "log.txt")}


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start commands in sessions of their own; what a test leaves is killed."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin(words: list[str], **given: Any) -> subprocess.Popen[bytes]:
        with (tmp_path / "stderr.txt").open("wb") as errors:
            words = [sys.executable, "-m", "perfport.cli", *words]
            process = subprocess.Popen(
                words, **{"env": environment, "cwd": tmp_path, "start_new_session": True,
                          "stdout": subprocess.DEVNULL, "stderr": errors, **given},
            )  # fmt: skip
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(process: subprocess.Popen[bytes], condition: Callable[[], bool], folder: Path) -> None:
    """Wait for something while the command goes on."""
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, (folder / "stderr.txt").read_text()
        time.sleep(0.02)


def left(folder: Path) -> list[str]:
    """What lies in the temporary folder but locks."""
    return [path.name for path in (folder / "tmp").iterdir() if path.suffix != ".lock"]


@pytest.mark.parametrize(("number", "whole"), [
    (signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGHUP, False), (signal.SIGHUP, True),
])  # fmt: skip
def test_a_signal_to_the_run_or_to_all_its_processes(
    start: Any, opencl_infos: list[Any], perfport: Any, environment: dict[str, str], tmp_path: Path,
    number: signal.Signals, whole: bool,
) -> None:  # fmt: skip
    out = tmp_path / "out"
    arguments = command(experiment(tmp_path, LONG), opencl_infos[0].id, out)
    run = start(arguments)
    until(run, lambda: len(lines(out)) >= 2, tmp_path)
    children = psutil.Process(run.pid).children(recursive=True)
    (os.killpg if whole else os.kill)(run.pid, number)
    assert run.wait(60) == 128 + number
    assert psutil.wait_procs(children, timeout=20)[1] == []
    said = (tmp_path / "stderr.txt").read_text()
    assert "Traceback" not in said and said.rstrip().endswith(f"perfport: stopped by {number.name}")
    (onward,) = re.findall(r"stopped, with all that was measured stored; to go on: perfport (.*)", said)
    assert onward.split() == [*arguments, "--resume"]
    stored = Run(out)
    assert 2 <= len(stored.records) < CASES and all(record.status.measured for record in stored.records)
    assert left(tmp_path) == []

    before = lines(out)
    (tmp_path / "log.txt").unlink()
    done = perfport(*onward.split(), env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert lines(out)[: len(before)] == before and len(lines(out)) == CASES, "lost, changed or doubled"
    assert len(executed(tmp_path)) == CASES - len(before)


def test_while_it_waits_for_another_run(start: Any, opencl_infos: list[Any], tmp_path: Path) -> None:
    chip = re.sub("[^A-Za-z0-9]+", "-", opencl_infos[0].processor)
    run = None
    with (tmp_path / "tmp" / f"perfport-{chip}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = start(command(experiment(tmp_path, LONG), opencl_infos[0].id, tmp_path / "out"))
        until(run, lambda: "waiting for another run" in (tmp_path / "stderr.txt").read_text(), tmp_path)
        run.terminate()
        assert run.wait(60) == 143
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()


def test_nohup_lives_on(start: Any, opencl_infos: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = start(
        command(experiment(tmp_path, LONG), opencl_infos[0].id, out),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    until(run, lambda: len(lines(out)) >= 2, tmp_path)
    os.killpg(run.pid, signal.SIGHUP)
    assert run.wait(120) == 0, (tmp_path / "stderr.txt").read_text() + b"".join(lines(out)).decode()
    assert len(lines(out)) == CASES


def test_a_terminal_that_is_closed(start: Any, opencl_infos: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)

    def output() -> bool:
        """Take what the run shows, so that it need not wait, and see how far it is."""
        with contextlib.suppress(BlockingIOError):
            os.read(ours, 1 << 16)
        return len(lines(out)) >= 2

    run = start(
        command(experiment(tmp_path, LONG), opencl_infos[0].id, out),
        stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=lambda: fcntl.ioctl(0, 0x540E, 0),  # TIOCSCTTY
    )  # fmt: skip
    os.close(theirs)
    until(run, output, tmp_path)
    os.close(ours)
    assert run.wait(60) == 129
    assert 2 <= len(Run(out).records) < CASES and left(tmp_path) == []


def test_a_case_run_again_leaves_no_temporary_folder(
    opencl_infos: list[Any], perfport: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    perfport(*command(experiment(tmp_path, {"variants": ["good"]}), opencl_infos[0].id, out), env=environment)
    (record,) = Run(out).records
    words = ["show", record.key, "--rerun", "--results", out, "--workloads", FAULTY]
    done = perfport(*words, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results").iterdir())) == 1 and left(tmp_path) == []
