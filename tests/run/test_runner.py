"""Faults, really caused: each costs its own case, says why, and loses nothing that was measured."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from faulty_runs import command, experiment, lines

from perfport.measure.repeats import workers_of
from perfport.measure.sampling import Targets
from perfport.model.device import DeviceInfo
from perfport.model.record import Failure, Record, Status
from perfport.run import runner
from perfport.run.cases import Case, Group, pending
from perfport.run.messages import (
    CaseFinished,
    CeilingsInUse,
    CeilingsProbed,
    DeviceLost,
    GroupFinished,
    StepStarted,
    WorkerFailed,
)
from perfport.run.runner import QUIET, Runner, WorkerDied, WorkerHandle
from perfport.run.worker.serving import main
from perfport.store.environment import CEILINGS
from perfport.store.results import Run, Writer

pytestmark = pytest.mark.any_device

#: Status and part of the reason, per variant of tests/data/faulty that has no result.
EXPECTED = {
    "wrong": (Status.WRONG, "max abs error"),
    "wrong_late": (Status.WRONG, "max abs error"),
    "unwritten": (Status.WRONG, "not finite"),
    "no_compile": (Status.COMPILE_ERROR, "broken.cl does not compile"),
    "raises": (Status.CRASHED, "planted: raised in launch"),
    "raises_late": (Status.CRASHED, "planted: raised while sampling"),
    "memory": (Status.OUT_OF_MEMORY, "exceeds the largest"),
    "memory_late": (Status.OUT_OF_MEMORY, "planted: no memory while sampling"),
    "host_memory": (Status.OUT_OF_MEMORY, "Unable to allocate"),
    "segfault": (Status.CRASHED, "SIGSEGV"),
    "segfault_late": (Status.CRASHED, "SIGSEGV"),
    "oom_killed": (Status.OUT_OF_MEMORY, "SIGKILL"),
    "exits": (Status.CRASHED, "code 7"),
    "hang": (Status.TIMEOUT, "longer than its time-out"),
    "hang_kernel": (Status.TIMEOUT, "longer than its time-out"),
    "needs_cuda": (Status.UNSUPPORTED, "needs cuda"),
    "missing_module": (Status.UNAVAILABLE, "no_such_module_anywhere"),
}


GOOD = ("good", "also_good", "slow")


@pytest.fixture(scope="module")
def by_variant(faults: tuple[Any, Path]) -> dict[str, Record]:
    """The records of that run."""
    return {record.identity.variant: record for record in Run(faults[1]).records}


@pytest.mark.minutes  # the run of all faults
def test_each_case_has_exactly_one_record(faults: tuple[Any, Path]) -> None:
    """And two that it replaces where it found no memory: beside all others, and beside such cases."""
    names = [json.loads(line)["identity"]["variant"] for line in lines(faults[1])]
    tries = {name: 3 for name, (status, _) in EXPECTED.items() if status is Status.OUT_OF_MEMORY}
    assert Counter(names) == Counter({**dict.fromkeys([*EXPECTED, *GOOD], 1), **tries})


@pytest.mark.parametrize("variant", EXPECTED)
def test_a_fault_costs_its_own_case_and_says_why(by_variant: dict[str, Record], variant: str) -> None:
    record = by_variant[variant]
    status, reason = EXPECTED[variant]
    assert record.failure is not None
    assert (record.status, reason in record.failure.reason) == (status, True), record.failure
    assert record.timing is None and record.metric is None


@pytest.mark.parametrize("variant", GOOD)
def test_the_others_are_measured(by_variant: dict[str, Record], variant: str) -> None:
    record = by_variant[variant]
    assert record.status.measured, record.failure
    assert record.verification and record.verification.passed
    assert record.timing and len(record.timing.rounds) == 3 and record.timing.summary[record.timing.rank].median > 0


def test_logs_are_kept_for_the_author(by_variant: dict[str, Record]) -> None:
    logs = {name: record.failure.log for name, record in by_variant.items() if record.failure}
    assert "planted_undeclared_name" in logs["no_compile"]
    assert "in fault" in logs["raises"] and "in fault" in logs["raises_late"]


def test_wrong_outranks_failed_in_the_exit_code(faults: tuple[Any, Path]) -> None:
    done, _ = faults
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_is_never_ranked_in_the_report(faults: tuple[Any, Path], perfport: Any, tmp_path: Path) -> None:
    done = perfport("report", faults[1], "-o", tmp_path / "report.md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "report.md").read_text()
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| rung")]
    seen = Counter()
    for row in rows:
        for variant in ("wrong", "wrong_late", "unwritten"):
            if f"`{variant}`" in row[1]:
                seen[variant] += 1
                assert not row[1].startswith("**"), "marked as best"
                assert "**wrong**" in row or not any(c.isdigit() for cell in row[2:] for c in cell), row
                assert not any(cell[:1].isdigit() for cell in row[3:]), row
    assert min(seen[v] for v in ("wrong", "wrong_late", "unwritten")) >= 1
    best = [row[1] for row in rows if row[1].startswith("**")]
    assert best and all(any(f"`{good}`" in name for good in GOOD) for name in best)
    assert "### wrong (3)" in text


@pytest.mark.parametrize(
    ("variants", "code"),
    [(["good", "needs_cuda", "missing_module"], 0), (["good", "raises"], 4), (["raises", "wrong"], 3)],
)
def test_exit_codes(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path, variants: list[str], code: int
) -> None:
    file = experiment(tmp_path, {"variants": variants})
    done = perfport(*command(file, selector, tmp_path / "out"), env=no_ceilings, cwd=tmp_path)
    assert done.returncode == code, done.stderr


def test_threads_of_libraries_sleep_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenBLAS's threads spin for tens of milliseconds after a product, which the next case would pay for."""
    for name in QUIET:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    handle = WorkerHandle(main, [], "nothing")
    wanted = {f"{name}={value}".encode() for name, value in QUIET.items()}
    environment: set[bytes] = set()
    try:
        (child,) = multiprocessing.active_children()
        deadline = time.monotonic() + 30
        while not wanted <= environment and time.monotonic() < deadline:  # it is empty while the program is replaced
            environment = set(Path(f"/proc/{child.pid}/environ").read_bytes().split(b"\0"))
    finally:
        handle.kill()
    assert wanted <= environment
    program = (
        "import time, numpy as np; a = np.ones((600, 600), np.float32); a @ a; began = time.process_time();"
        "time.sleep(0.1); print(time.process_time() - began)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **QUIET}, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 0.05


def test_a_silent_worker_is_waited_for_until_its_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "WAITING_S", 0.01)
    handle, waited = WorkerHandle(main, [], "nothing"), Counter[str]()
    try:
        with pytest.raises(WorkerDied, match=r"longer than its time-out of 0\.2 s"):
            handle.receive(0.2, lambda: waited.update(["once"]))
    finally:
        handle.kill()
    assert 1 < waited["once"] <= 20


class Scripted:
    """Workers that say what a test wants, one script after the other; groups that they were given, and locks."""

    scripts: list[list[Any]]
    given: list[Group]
    locks: list[str]

    def __init__(self, *_: Any) -> None:
        self._left = Scripted.scripts.pop(0)

    def send(self, group: Group) -> None:
        Scripted.given.append(group)

    def receive(self, timeout: float, waiting: Callable[[], None]) -> Any:
        waiting()
        message = self._left.pop(0)
        if isinstance(message, Exception):
            raise message
        return message

    def close(self) -> None: ...

    kill = close


def measured(case: Case, rounds: range, workers: int = 1, status: Status = Status.OK) -> CaseFinished:
    """The message of a case that was sampled in these rounds, by so many workers."""
    record = data.record("fast", status=status).model_copy(update={"key": case.key, "identity": case.identity})
    assert record.timing
    of_worker = [each % workers for each in rounds] if workers > 1 else []
    return CaseFinished(
        record.model_copy(
            update={"timing": record.timing.model_copy(update={"rounds": list(rounds), "workers": of_worker})}
        )
    )


def scripted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *scripts: list[Any], workers: int = 1, done: Sequence[Record] = ()
) -> Runner:
    """Run what is left of a group of three cases on scripted workers; ``done`` is stored already."""
    identities = [data.record(name).identity for name in ("fast", "slow", "other")]
    group = Group(
        device=DeviceInfo.model_validate(data.device(data.POCL) | {"pci": "0000:3B:00.0"}),
        workload=identities[0].workload, problem=identities[0].problem, preset=None,
        parameters=identities[0].parameters, inputs={"a": 1}, targets=Targets(), timeout=1, workers=workers,
        cases=[Case(key=key, identity=identity) for key, identity in zip("abc", identities, strict=True)],
    )  # fmt: skip
    Scripted.given = []
    Scripted.scripts = [
        [measured(group.cases[m[0]], *m[1:]) if isinstance(m, tuple) else m for m in script] for script in scripts
    ]
    monkeypatch.setattr(runner, "WorkerHandle", Scripted)
    Scripted.locks = []

    @contextlib.contextmanager
    def chip_lock(chip: str, say: Any) -> Iterator[None]:
        Scripted.locks.append(chip)
        yield

    monkeypatch.setattr(runner, "chip_lock", chip_lock)
    said = "group", "step", "record", "expect", "say", "waiting"
    progress = type("P", (), {name: lambda self, *_: None for name in said})()
    with Writer(tmp_path / "run") as writer:
        made = Runner(writer, [], progress, done)
        made.run(pending([group], done))
    return made


def test_a_death_costs_the_case_in_flight_and_the_rest_is_measured_in_rounds_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    died = WorkerDied(Status.CRASHED, "planted")
    first = [StepStarted(None, "opening the device"), (0, range(5)), StepStarted("b", "sampling"), died]
    made = scripted(monkeypatch, tmp_path, first, [(2, range(5, 9)), GroupFinished()])
    assert [(record.key, record.status) for record in made.records] == [
        ("a", Status.OK), ("b", Status.CRASHED), ("c", Status.OK),
    ]  # fmt: skip
    failure = made.records[1].failure
    assert failure and failure.reason == "planted (sampling)"
    assert [([case.key for case in group.cases], group.first_round) for group in Scripted.given] == [
        (["a", "b", "c"], 0), (["c"], 5),
    ]  # fmt: skip


def test_a_group_holds_its_physical_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Equal chips of one machine are told apart by their address, which drivers spell either way."""
    made = scripted(monkeypatch, tmp_path, [(number, range(5)) for number in range(3)] + [GroupFinished()])
    assert len(made.records) == 3
    assert Scripted.locks == [f"{data.device(data.POCL)['chip']} 0000:3b:00.0"]


def disturbed(case: int, rounds: range, workers: int) -> tuple[Any, ...]:
    """The script's line of a case in whose samples are those of a disturbed worker."""
    return case, rounds, workers, Status.CONTENDED


def test_a_further_worker_measures_in_place_of_a_disturbed_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it adds to is of the workers that were quiet; a probe after the group may tell who was not."""
    quiet = [(1, range(3)), (2, range(3)), GroupFinished()]
    first = [disturbed(0, range(3), 1), *quiet]
    second = [(0, range(3, 6)), (1, range(6), 2), (2, range(6), 2), disturbed(2, range(6), 2), GroupFinished()]
    third = [(0, range(3, 9), 2), (2, range(9), 2), GroupFinished()]
    made = scripted(monkeypatch, tmp_path, first, second, third, workers=2)
    assert given() == ["abc", "abc", "ac"]
    assert [[workers_of(case.earlier) for case in group.cases] for group in Scripted.given] == [
        [0, 0, 0], [0, 1, 1], [1, 1],
    ]  # fmt: skip
    last = {record.key: record for record in made.records}
    assert {key: (record.status, workers_of(record)) for key, record in last.items()} == dict.fromkeys(
        "abc", (Status.OK, 2)
    )


def test_what_stays_disturbed_is_contended_by_as_many_workers_as_are_wanted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quiet = [(1, range(9), 3), (2, range(9), 3)]
    alone = [[disturbed(0, range(3 * workers), workers), GroupFinished()] for workers in (1, 1, 2, 3)]
    made = scripted(monkeypatch, tmp_path, [disturbed(0, range(3), 1), *quiet, GroupFinished()], *alone, workers=3)
    assert given() == ["abc", "a", "a", "a", "a"]
    assert [workers_of(group.cases[0].earlier) for group in Scripted.given] == [0, 0, 0, 1, 2]
    last = {record.key: record for record in made.records}["a"]
    assert last.status is Status.CONTENDED and workers_of(last) == 3


def test_in_place_of_a_disturbed_worker_of_a_resumed_run_one_adds_to_what_is_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = data.record("fast").model_copy(update={"key": "a"})
    quiet = [(1, range(6), 2), (2, range(6), 2)]
    first = [disturbed(0, range(6), 2), *quiet, GroupFinished()]
    scripted(monkeypatch, tmp_path, first, [(0, range(6), 2), GroupFinished()], workers=2, done=[stored])
    assert given() == ["abc", "a"]
    assert [group.cases[0].earlier for group in Scripted.given] == [stored, stored]


def test_one_worker_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scripted(monkeypatch, tmp_path, [disturbed(0, range(3), 1), (1, range(3)), (2, range(3)), GroupFinished()])
    assert given() == ["abc"]


def no_memory(key: str) -> CaseFinished:
    """The message of a case whose buffers found no room; ``key`` is that of its group's."""
    case = Case(key=key, identity=data.record("fast").identity)
    return CaseFinished(case.record("run", 1, Status.OUT_OF_MEMORY, failure=Failure(reason="planted: no room")))


def given() -> list[str]:
    return ["".join(case.key for case in group.cases) for group in Scripted.given]


def test_what_finds_no_memory_beside_the_others_is_run_without_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In this pass on a worker of its own, and in the next at once so."""
    first = [(0, range(3)), no_memory("b"), (2, range(3)), GroupFinished()]
    apart = [(1, range(3, 6)), GroupFinished()]
    rest = [(0, range(6, 9), 2), (2, range(6, 9), 2), GroupFinished()]
    made = scripted(monkeypatch, tmp_path, first, apart, rest, [(1, range(9, 12), 2), GroupFinished()], workers=2)
    assert given() == ["abc", "b", "ac", "b"] and not Scripted.scripts
    assert [group.first_round for group in Scripted.given] == [0, 3, 6, 9]
    assert {record.key: record.status for record in made.records} == dict.fromkeys("abc", Status.OK)


def test_what_finds_no_memory_among_such_is_run_alone_and_then_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    killed = WorkerDied(Status.OUT_OF_MEMORY, "planted: SIGKILL")
    first = [(0, range(3)), no_memory("b"), StepStarted("c", "compile"), killed]
    apart = [no_memory("b"), (2, range(3, 6)), GroupFinished()]
    made = scripted(monkeypatch, tmp_path, first, apart, [no_memory("b"), GroupFinished()])
    assert given() == ["abc", "bc", "b"] and not Scripted.scripts
    last = {record.key: record.status for record in made.records}
    assert last == {"a": Status.OK, "b": Status.OUT_OF_MEMORY, "c": Status.OK}


def test_a_group_that_finds_no_memory_at_all_is_taken_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    together = [*map(no_memory, "abc"), GroupFinished()]
    alone = [[no_memory("a"), GroupFinished()], *([(n, range(3)), GroupFinished()] for n in (1, 2))]
    made = scripted(monkeypatch, tmp_path, together, *alone)
    assert given() == ["abc", "a", "b", "c"] and not Scripted.scripts
    assert {record.key: record.status for record in made.records}["a"] is Status.OUT_OF_MEMORY


def test_deaths_outside_any_case_end_the_group_at_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start = [StepStarted(None, "opening the device"), WorkerFailed(Status.OUT_OF_MEMORY, "Traceback\nError: planted")]
    made = scripted(monkeypatch, tmp_path, *([*start] for _ in range(runner.MAX_GROUP_FAILURES)))
    assert [record.status for record in made.records] == [Status.OUT_OF_MEMORY] * 3 and not Scripted.scripts
    assert {record.failure.reason for record in made.records if record.failure} == {"Error: planted"}


def test_a_lost_device_gets_a_fresh_worker_for_what_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = [StepStarted("a", "compile"), (0, range(3)), DeviceLost()]
    made = scripted(monkeypatch, tmp_path, first, [(1, range(3, 6)), (2, range(3, 6)), GroupFinished()])
    assert [record.key for record in made.records] == ["a", "b", "c"]


def test_a_group_without_all_its_records_is_not_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    every = [[(0, range(3)), GroupFinished()], [(1, range(3, 6)), GroupFinished()], [(2, range(6, 9)), GroupFinished()]]
    assert [record.key for record in scripted(monkeypatch, tmp_path, *every).records] == ["a", "b", "c"]


def test_ceilings_and_probes_are_stored_as_they_come(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ceilings, probe = {"device": "d", "entries": {}}, {"device": "d", "when": "before", "entries": {}}
    said = [CeilingsInUse("d", ceilings), CeilingsProbed(probe), CeilingsInUse("d", ceilings)]
    scripted(monkeypatch, tmp_path, [*said, *((n, range(3)) for n in range(3)), GroupFinished()])
    stored = [json.loads(line) for line in (tmp_path / "run" / CEILINGS).read_text().splitlines()]
    assert stored == [{"ceilings": ceilings}, {"probe": probe}], "ceilings once, until they change"
