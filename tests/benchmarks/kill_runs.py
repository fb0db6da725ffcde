"""Processes that write results, killed by SIGKILL at random moments: nothing stored may be lost, changed or doubled.

    python tests/benchmarks/kill_runs.py [KILLS] [--seed N]     default 50

So many kills, each, of:

- ``perfport run`` on tests/data/nightly, and of the ``--resume`` that follows: at a random time, or as soon as its
  files have grown by a random amount; the process alone, or its workers with it. After some kills the start of a
  further line is appended, as a kill within a write (or a loss of power) leaves it. A run that ends is added to a
  history, whose process is killed, too, until it is in;
- a process that does nothing but write records and probes, and says of each when it was stored;
- a process that merges the folders of two jobs.

All are forks of this process, which has imported what they need: that takes seconds, and is not what is killed here.
After each kill every whole line that was there is there unchanged, each worker's result of a case is there once, what
was said to be stored is stored, every other file is whole, and the store reads without a complaint. SIGKILL does not
take from the kernel what was written to it: that data are flushed to disk shows in tests/store/test_writing.py alone.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path

import yaml

import perfport.report.pages.run  # noqa: F401
from perfport import cli
from perfport.machine import discovery
from perfport.measure.ceilings import Ceilings, store
from perfport.measure.repeats import workers_of
from perfport.model.device import DeviceInfo
from perfport.model.record import Identity, Record, Status
from perfport.nightly.history import History
from perfport.run import runner
from perfport.run.merge import Part, merge, write
from perfport.store.environment import CEILINGS, ENVIRONMENT, read_environment
from perfport.store.results import EXPERIMENT, RECORDS, Run, Writer

WORKLOAD = Path(__file__).parents[1] / "data" / "nightly"
CASES, WORKERS = 6, 2
#: Of starts after which the beginning of a further line is appended.
TORN = 0.3
ERRORS = "stderr.txt"
FORK = multiprocessing.get_context("fork")


@dataclass
class Survived:
    """Starts, those that were killed, lines that were torn, runs that finished, and nights in the history."""

    started: int = 0
    killed: int = 0
    torn: int = 0
    finished: int = 0
    nights: int = 0


def runs(kills: int, folder: Path, device: DeviceInfo, seed: int) -> Survived:
    """Kill so many runs; raises `AssertionError` as soon as anything is lost or spoilt. The last run ends by itself."""
    luck = random.Random(seed)
    (folder / "killed.yaml").write_text(yaml.safe_dump({
        "name": "killed", "workers": WORKERS, "seed": 1,
        "measurement": {"cache": "warm", "min_samples": 3, "max_samples": 3, "time_budget": 0.2},
        "experiments": [{
            "workload": "nightly", "problem": "double", "variants": ["clock_a", "clock_b", "clock_c"],
            "parameters": {"n": 64, "rounds": 1, "seconds": [0.01, 0.02]},
        }],
    }))  # fmt: skip
    found, whole = Survived(), _Whole()
    while not found.finished or found.killed < kills:
        out = folder / f"run{found.finished}"
        before = _Stored(out)
        resume = ["--resume"] if (out / RECORDS).exists() else []
        arguments = ["run", folder / "killed.yaml", "--out", out, *resume, "--workloads", WORKLOAD]
        # Nobody kills the first start, which tells how long one takes, and those after the last kill.
        death = _Death.drawn(luck, out, whole) if found.finished and found.killed < kills else None
        started = time.perf_counter()
        code = _call(folder, device, arguments, death)
        found.started += 1
        before.check()
        if code is None:
            found.killed += 1
            found.torn += _tear(out, luck)
            continue
        assert code == 0, f"exit code {code}: " + (folder / ERRORS).read_text()
        whole = whole if whole.seconds else _Whole(time.perf_counter() - started, _size(out))
        records = Run(out).records
        assert len(records) == CASES and {workers_of(record) for record in records} == {WORKERS}
        _add(folder, device, luck, out)
        found.finished += 1
    found.nights = len(History(folder / "history").nights)
    return found


@dataclass(frozen=True)
class _Whole:
    """What a start that nobody kills takes, in seconds, and leaves, in bytes."""

    seconds: float = 0.0
    size: int = 0


class _Stored:
    """What a run's folder holds at a moment; `check` holds what it holds later to that."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.lines = {name: _lines(out / name) for name in (RECORDS, CEILINGS)}
        environment = out / ENVIRONMENT
        self.environment = environment.read_bytes() if environment.exists() else b""

    def check(self) -> None:
        """Raise `AssertionError` if anything of it was lost or changed since, or is there twice."""
        now = _Stored(self.out)
        for name, lines in self.lines.items():
            assert now.lines[name][: len(lines)] == lines, f"{name}: a stored line changed"
        if self.environment:
            assert now.environment == self.environment, f"{ENVIRONMENT} changed"
        if not now.environment:
            assert not now.lines[RECORDS], f"{ENVIRONMENT}: lost"
            return
        content, left_out = read_environment(self.out)
        assert not left_out and content["planned"] == CASES, left_out
        assert not list(self.out.glob("*.damaged"))
        stored: dict[str, list[tuple[int, Status]]] = {}
        for record in map(Record.model_validate_json, now.lines[RECORDS]):
            assert record.status.measured, record.failure
            stored.setdefault(record.key, []).append((workers_of(record), record.status))
        assert len(stored) <= CASES
        for lines in stored.values():
            # One more worker than the last record, or than the last quiet one in place of a disturbed worker.
            last = quiet = 0
            for workers, status in lines:
                assert workers in {last + 1, quiet + 1} and workers <= WORKERS, f"doubled or left out: {lines}"
                last, quiet = workers, workers if status is Status.OK else quiet


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file: the last one may be torn."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith(b"\n")]


def _size(out: Path) -> int:
    return sum((out / name).stat().st_size for name in (RECORDS, CEILINGS) if (out / name).exists())


def _tear(out: Path, luck: random.Random) -> bool:
    """Leave what a kill within a write does, now and then: a part of one more line. Returns whether."""
    path = out / luck.choice((RECORDS, CEILINGS))
    if luck.random() > TORN or not path.exists():
        return False
    content = path.read_bytes()
    if not content.endswith(b"\n"):  # empty, or this kill tore a line by itself
        return bool(content)
    line = content.splitlines()[-1]
    with path.open("ab") as file:
        file.write(line[: luck.randrange(1, len(line))])
    return True


@dataclass(frozen=True)
class _Death:
    """When a start is killed: after some seconds, or soon after its files are so large; and whether its workers are."""

    out: Path
    seconds: float
    size: float = 0.0
    delay: float = 0.0
    workers: bool = False

    @classmethod
    def drawn(cls, luck: random.Random, out: Path, whole: _Whole) -> _Death:
        """Return a death at a random moment of a start."""
        size = _size(out) + luck.uniform(0, max(whole.size - _size(out), 1)) if luck.random() < 0.5 else 0.0
        return cls(out, luck.uniform(0.0, 1.1 * whole.seconds), size, luck.uniform(0, 0.01), luck.random() < 0.3)

    def wait(self, child: ForkProcess) -> None:
        """Wait for the moment, or until the process has ended by itself."""
        begun = time.monotonic()
        while child.is_alive():
            if self.size and _size(self.out) >= self.size:
                time.sleep(self.delay)
                return
            if not self.size and time.monotonic() - begun > self.seconds:
                return
            time.sleep(0.002)


def _call(folder: Path, device: DeviceInfo, arguments: list[object], death: _Death | None) -> int | None:
    """Run a command, to be killed; returns its exit code, ``None`` if it was killed."""
    child = FORK.Process(target=_command, args=(folder, device, ["perfport", *map(str, arguments)]))
    child.start()
    if death:
        death.wait(child)
    if not death or not child.is_alive():
        child.join()
        return child.exitcode
    assert child.pid
    if death.workers:
        with contextlib.suppress(ProcessLookupError):  # it has no group yet
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()  # without that its workers must end by themselves
    child.join()
    with contextlib.suppress(ProcessLookupError):
        _end_of(child.pid)
    return None


def _command(folder: Path, device: DeviceInfo, words: list[str]) -> None:
    """Be perfport, in a process of its own: on a device that was found before, with workers that need no imports."""
    os.setsid()
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(folder / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv = words
    discovery.discover = lambda: [device]
    multiprocessing.get_context = lambda _: FORK  # type: ignore[assignment]
    runner.chip_lock = lambda *_: contextlib.nullcontext()  # a forked worker would hold it, too
    cli.main()


def _end_of(group: int) -> None:
    """Wait until a process group is empty."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        os.killpg(group, 0)
        time.sleep(0.05)
    raise AssertionError("a worker outlived its run")


def _add(folder: Path, device: DeviceInfo, luck: random.Random, out: Path) -> None:
    """Add a run to the history, killing the process a few times."""
    for death in (_Death(out, luck.uniform(0.0, 1.0)), _Death(out, luck.uniform(0.0, 1.0)), None):
        code = _call(folder, device, ["history", "add", out, "--into", folder / "history"], death)
        if (folder / "history").exists():
            assert not History(folder / "history").left_out
        if code is not None:
            assert code == 0
            return


def _killed(work: Callable[[], None], seconds: float) -> bool:
    """Do something in a child process that is killed after some seconds; returns whether it was killed."""
    child = FORK.Process(target=work)
    child.start()
    child.join(seconds)
    child.kill()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL), "the child failed"
    return child.exitcode != 0


def _record(number: int) -> Record:
    """A record with a key that is its number, of some size."""
    return Record(
        key=f"{number:016x}", run="r", time="2026-11-23T12:00:00+00:00", status=Status.UNSUPPORTED,
        identity=Identity(workload="w", problem="p", variant="v", devices=["opencl:d:0"], backend="opencl"),
        title="t" * (997 * number % 20_000),
    )  # fmt: skip


def appends(kills: int, folder: Path, seed: int) -> int:
    """Kill so many processes that write records and probes without a pause; returns how many records they stored."""
    luck = random.Random(seed)
    reads, told = os.pipe()
    os.set_blocking(reads, False)

    def write_on() -> None:
        with Writer(folder) as writer:
            for steps in itertools.count():
                record, probe = (len(lines) + steps for lines in before.values())
                writer.append(_record(record))
                os.write(told, f"{RECORDS} {record}\n".encode())
                writer.probe({"device": "d", "when": "before", "entries": {}, "number": probe})
                os.write(told, f"{CEILINGS} {probe}\n".encode())

    for _ in range(kills):
        before = {name: _lines(folder / name) for name in (RECORDS, CEILINGS)}
        assert _killed(write_on, luck.uniform(0.0, 0.1))
        said = b""
        with contextlib.suppress(BlockingIOError):
            said = os.read(reads, 1 << 20)
        stored = {name: int(number) for name, number in map(str.split, said.decode().splitlines())}
        for name, lines in before.items():
            now = _lines(folder / name)
            assert now[: len(lines)] == lines, f"{name}: a stored line changed"
            assert len(now) > stored.get(name, -1), f"{name}: lost what was stored"
            assert [_number(line) for line in now[len(lines) :]] == list(range(len(lines), len(now)))
        if luck.random() < TORN:
            with (folder / luck.choice((RECORDS, CEILINGS))).open("ab") as file:
                file.write(b'{"schema_version":2,"key":"to')
    os.close(reads)
    os.close(told)
    return len(_lines(folder / RECORDS))


def _number(line: bytes) -> int:
    """The number of a record, or of a probe."""
    content = json.loads(line)
    return int(content["key"], 16) if "key" in content else int(content["probe"]["number"])


def merges(kills: int, folder: Path, seed: int) -> int:
    """Kill so many processes that merge one job's folder or two; returns how many records the last merge has."""
    luck = random.Random(seed)
    top = folder / "top"
    parts = []
    for number in range(2):
        part = top / "jobs" / str(number)
        with Writer(part) as writer:
            writer.environment({"schema_version": 2, "run": part.name, "started": "2026-11-23", "devices": {}})
        made = range(300 * number, 300 * (number + 1))
        (part / RECORDS).write_text("".join(f"{_record(each).model_dump_json(exclude_none=True)}\n" for each in made))
        parts.append(Part("pool", part, None, "done"))
    (top / EXPERIMENT).write_text("name: killed\n")
    results = top / "top-pool"

    def merge_all(of: list[Part]) -> None:
        write(top, of, merge(of, seed=1))

    allowed: dict[str, set[bytes]] = {RECORDS: set(), ENVIRONMENT: set()}
    for of in (parts[:1], parts):
        started = time.perf_counter()
        merge_all(of)
        seconds = time.perf_counter() - started
        for name, contents in allowed.items():
            contents.add((results / name).read_bytes())
    done = 0
    while done < kills:
        of = parts[: luck.choice((1, 2))]
        done += _killed(lambda of=of: merge_all(of), luck.uniform(0.0, 1.2 * seconds))  # type: ignore[misc]
        for name, contents in allowed.items():
            assert (results / name).read_bytes() in contents, f"{name}: neither the file before nor the new one"
    merge_all(parts)
    return len(Run(results).records)


def main() -> None:
    """Read the command line, survive, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    device = next(info for info in discovery.discover() if info.healthy)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stage in ("runs", "appends", "merges"):
            (folder / stage).mkdir()
        print(f"writing: {appends(given.kills, folder / 'appends', given.seed)} records stored")
        print(f"merging: {merges(given.kills, folder / 'merges', given.seed)} records merged", flush=True)
        os.environ["XDG_CACHE_HOME"], os.environ["TMPDIR"] = f"{name}/cache", name
        store(device, Ceilings(device=device.id, driver=device.driver, date="", entries={}))
        found = runs(given.kills, folder / "runs", device, given.seed)
        print(
            f"running: {found.killed} kills of runs in {found.started} starts, {found.torn} lines torn, "
            f"{found.finished} runs finished, {found.nights} nights in the history"
        )


if __name__ == "__main__":
    main()
