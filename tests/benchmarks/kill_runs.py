"""Runs killed by SIGKILL at random moments and resumed: nothing that was stored may be lost or spoilt.

    python tests/benchmarks/kill_runs.py [RUNS] [--seed N]     default 50

Starts ``perfport run --resume`` on tests/data/nightly so often, kills most starts after a random time, and checks after
each that every line that was in the store is still there unchanged, that the store reads, and that only its last line
may be torn. A run that finishes is added to a history, whose process is killed at random moments, too, until it is in.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from perfport.machine.discovery import discover
from perfport.measure.ceilings import Ceilings, store
from perfport.measure.repeats import workers_of
from perfport.model.device import DeviceInfo
from perfport.nightly.history import History
from perfport.store.results import RECORDS, Run

WORKLOAD = Path(__file__).parents[1] / "data" / "nightly"
CASES, WORKERS = 6, 2
ERRORS = "stderr.txt"
#: The command line on a device that was found before: discovery takes seconds and is not what is killed here.
COMMAND = """
import sys
from pathlib import Path
if __name__ == "__main__":  # workers import this file, too
    from perfport import cli
    from perfport.machine import discovery
    from perfport.model.device import DeviceInfo
    device = DeviceInfo.model_validate_json(Path(sys.argv.pop(1)).read_text())
    discovery.discover = lambda: [device]
    cli.main()
"""


@dataclass
class Survived:
    """Starts, those that were killed, runs that finished, and nights in the history."""

    started: int = 0
    killed: int = 0
    finished: int = 0
    nights: int = 0


def survive(starts: int, folder: Path, device: DeviceInfo, seed: int) -> Survived:
    """Start so many runs; raises `AssertionError` as soon as anything is lost or spoilt."""
    luck = random.Random(seed)
    (folder / "device.json").write_text(device.model_dump_json())
    (folder / "command.py").write_text(COMMAND)
    (folder / "killed.yaml").write_text(yaml.safe_dump({
        "name": "killed", "workers": WORKERS, "seed": 1,
        "measurement": {"cache": "warm", "min_samples": 3, "max_samples": 3, "time_budget": 0.2},
        "experiments": [{
            "workload": "nightly", "problem": "double", "variants": ["clock_a", "clock_b", "clock_c"],
            "parameters": {"n": 64, "rounds": 1, "seconds": [0.01, 0.02]},
        }],
    }))  # fmt: skip
    found = Survived()
    whole = 0.0  # seconds that a start takes if nobody kills it, as the first one and the last
    while found.started < starts:
        out = folder / f"run{found.finished}"
        before = _lines(out)
        resume = ["--resume"] if (out / RECORDS).exists() else []
        arguments = ["run", folder / "killed.yaml", "--out", out, *resume, "--workloads", WORKLOAD]
        patience = None if found.started in (0, starts - 1) else luck.uniform(0.0, 1.1 * whole)
        started = time.perf_counter()
        code = _call(folder, arguments, patience)
        found.started += 1
        after = _lines(out)
        assert after[: len(before)] == before, "a stored record changed"
        if code is None:
            found.killed += 1
        else:
            assert code == 0, f"exit code {code}: " + (folder / ERRORS).read_text()
            whole = whole or time.perf_counter() - started
        records = Run(out).records if (out / "environment.json").exists() else []
        assert len(records) == len({record.key for record in records}) <= CASES
        assert all(record.status.measured for record in records), [record.failure for record in records]
        if code == 0:
            assert len(records) == CASES and {workers_of(record) for record in records} == {WORKERS}
            _add(folder, out, luck)
            found.finished += 1
    found.nights = len(History(folder / "history").nights)
    return found


def _add(folder: Path, out: Path, luck: random.Random) -> None:
    """Add a run to the history, killing the process a few times."""
    for patience in (luck.uniform(0.0, 1.0), luck.uniform(0.0, 1.0), None):
        code = _call(folder, ["history", "add", out, "--into", folder / "history"], patience)
        if (folder / "history").exists():
            assert not History(folder / "history").left_out
        if code is not None:
            assert code == 0
            return


def _lines(out: Path) -> list[bytes]:
    """The whole lines of a store: the last one may be torn."""
    path = out / RECORDS
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    assert all(line.endswith(b"\n") for line in lines[:-1])
    return [line for line in lines if line.endswith(b"\n")]


def _call(folder: Path, arguments: list[object], patience: float | None) -> int | None:
    """Run a command and kill it and its children after some seconds; returns its exit code, ``None`` if killed."""
    command = [sys.executable, str(folder / "command.py"), str(folder / "device.json"), *map(str, arguments)]
    with (
        (folder / ERRORS).open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, cwd=folder, start_new_session=True
        ) as child,
    ):
        try:
            return child.wait(patience)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)  # the parent alone: its workers must end by themselves
            child.wait()
            with contextlib.suppress(ProcessLookupError):
                _end_of(child.pid)
            return None


def _end_of(group: int) -> None:
    """Wait until a process group is empty."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        os.killpg(group, 0)
        time.sleep(0.05)
    raise AssertionError("a worker outlived its run")


def main() -> None:
    """Read the command line, survive, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    device = next(info for info in discover() if info.healthy)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"], os.environ["TMPDIR"] = f"{name}/cache", name
        store(device, Ceilings(device=device.id, driver=device.driver, date="", entries={}))
        print(survive(given.runs, Path(name), device, given.seed))


if __name__ == "__main__":
    main()
