"""Faults, really caused: each costs its own case, says why, and loses nothing that was measured."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import psutil
import pytest
import yaml

from perfport.model.record import RETRY, Record, Status
from perfport.run.runner import QUIET, WorkerHandle, chip_lock, pending
from perfport.store.results import ENVIRONMENT, RECORDS, Run, Writer

FAULTY = Path(__file__).parents[1] / "data" / "faulty"
TIMEOUT = 5  # seconds, of each step of a case
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


def experiment(folder: Path, *studies: dict[str, Any], **keys: Any) -> Path:
    """Write an experiment over the faulty workload with the least of measurement."""
    measurement = {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm"}
    defaults = {"workload": "faulty", "problem": "double"}
    sized = [{**defaults, **({} if "parameters" in study else {"presets": ["tiny"]}), **study} for study in studies]
    content = {
        "name": "faults",
        "measurement": measurement,
        "timeout": TIMEOUT,
        "seed": 7,
        "experiments": sized,
        **keys,
    }
    path = folder / "faults.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def command(file: Path, device: str, out: Path, *more: str) -> list[str]:
    """The arguments of ``perfport run`` on one device."""
    return ["run", str(file), "-d", device, "--out", str(out), "--workloads", str(FAULTY), *more]


def lines(folder: Path) -> list[bytes]:
    """The whole lines of a run's records."""
    path = folder / RECORDS
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def descendants(pid: int) -> list[psutil.Process]:
    """Every process below one."""
    return psutil.Process(pid).children(recursive=True)


def assert_gone(processes: list[psutil.Process]) -> None:
    """No process of these is left, zombies that nobody reaps aside."""
    _, alive = psutil.wait_procs(processes, timeout=20)
    left = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not left, f"orphans: {left}"


@pytest.fixture(scope="module")
def selector(opencl_infos: list[Any]) -> str:
    """The device that serves: what is tested is the harness."""
    return str(opencl_infos[0].id)


@pytest.fixture(scope="module")
def faults(selector: str, perfport: Any, no_ceilings: Any, tmp_path_factory: Any) -> tuple[Any, Path]:
    """One run of every variant, all in one group: its completed process and its folder."""
    folder = tmp_path_factory.mktemp("faults")
    file = experiment(folder, {})
    return perfport(*command(file, selector, folder / "out"), env=no_ceilings, cwd=folder), folder / "out"


@pytest.fixture(scope="module")
def by_variant(faults: tuple[Any, Path]) -> dict[str, Record]:
    """The records of that run."""
    return {record.identity.variant: record for record in Run(faults[1]).records}


def test_each_case_has_exactly_one_record(faults: tuple[Any, Path]) -> None:
    names = [json.loads(line)["identity"]["variant"] for line in lines(faults[1])]
    assert Counter(names) == Counter([*EXPECTED, *GOOD])


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


def test_a_problem_that_cannot_be_made_fails_its_cases_and_no_others(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    file = experiment(tmp_path, {"problem": "broken"}, {"variants": ["good"]})
    done = perfport(*command(file, selector, tmp_path / "out"), env=no_ceilings, cwd=tmp_path)
    broken, good = Run(tmp_path / "out").records
    assert done.returncode == 4
    assert broken.status is Status.CRASHED and broken.failure and "planted: the problem itself" in broken.failure.reason
    assert good.status.measured


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


LONG = {"variants": ["good", "slow"], "parameters": {"n": [100, 200, 300, 400]}}
CASES = 8


def executed(folder: Path) -> set[str]:
    """What the variants wrote to their log: one ``variant size`` per case that was ever executed."""
    path = folder / "log.txt"
    return set(path.read_text().splitlines()) if path.exists() else set()


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


def named_variants(raw: list[bytes]) -> list[str]:
    """The variants of record lines."""
    return [json.loads(line)["identity"]["variant"] for line in raw]


def test_a_run_needs_resume_to_go_on_in_a_folder(
    faults: tuple[Any, Path], selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    done = perfport(*command(experiment(tmp_path, {}), selector, faults[1]), env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 2 and "--resume" in done.stderr


def test_results_folder_that_cannot_be_written(selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    file = experiment(tmp_path, {"variants": ["good"]})
    done = perfport(*command(file, selector, tmp_path / "file" / "out"), env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert f"--out: {tmp_path / 'file' / 'out'} cannot be written ({tmp_path / 'file'} is not a folder)" in done.stderr


def test_disk_full_in_the_middle(
    selector: str, perfport: Any, no_ceilings: Any, background: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = command(experiment(tmp_path, LONG), selector, out)
    run = background(arguments)
    run.until(lambda: len(lines(out)) >= 2)
    children = descendants(run.process.pid)
    # A later record of this run no longer fits; the environment, which is written anew between two groups, does.
    size = max((out / RECORDS).stat().st_size, 2 * (out / ENVIRONMENT).stat().st_size) + 100
    psutil.Process(run.process.pid).rlimit(resource.RLIMIT_FSIZE, (size, size))
    code = run.process.wait(60)
    errors = run.errors.read_text()
    assert code == 4 and "Traceback" not in errors and RECORDS in errors.splitlines()[-1], errors
    assert_gone(children)
    kept = lines(out)
    assert all(line.endswith(b"\n") for line in kept) and 2 <= len(Run(out).records) == len(kept)
    done = perfport(*arguments, "--resume", env=no_ceilings, cwd=tmp_path)
    assert done.returncode == 0 and len(lines(out)) == CASES and lines(out)[: len(kept)] == kept


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


def test_a_chip_is_held_by_one_run_at_a_time() -> None:
    said: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with chip_lock("A test's own chip", said.append):
            entered.set()

    with chip_lock("A test's own chip", said.append):
        thread = threading.Thread(target=second)
        thread.start()
        deadline = time.monotonic() + 30
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert said == ["waiting for another run on A test's own chip"] and not entered.is_set()
    thread.join(30)
    assert entered.is_set()


def test_a_chip_is_locked_among_users_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that keeps the lock belongs to whoever came first."""
    said: list[str] = []
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", shared)
        with chip_lock("A chip of all users", said.append):
            pass
        if root:
            os.seteuid(65534)
        else:
            (Path(shared) / "perfport-A-chip-of-all-users.lock").chmod(0o444)
        try:
            with chip_lock("A chip of all users", said.append):
                assert not said
        finally:
            if root:
                os.seteuid(0)


def test_pending_keeps_order_and_drops_empty_groups(faults: tuple[Any, Path]) -> None:
    from perfport.measure.sampling import Targets
    from perfport.model.device import DeviceInfo
    from perfport.run.plan import Case, Group

    run = Run(faults[1])
    info = DeviceInfo.model_validate(next(iter(run.environment["devices"].values())))
    cases = [Case(key=record.key, identity=record.identity) for record in run.records]
    group = Group(
        device=info, workload="faulty", problem="double", preset="tiny", parameters={}, inputs={"a": 7},
        targets=Targets(), timeout=1, cases=cases,
    )  # fmt: skip
    assert pending([group], run.records) == []
    (left,) = pending([group], run.records, RETRY["failed"])
    assert [c.key for c in left.cases] == [r.key for r in run.records if r.status.failed]
    (left,) = pending([group], run.records[3:])
    assert left.cases == cases[:3]


def test_a_wrong_work_model_is_loud(selector: str, perfport: Any, tmp_path: Path) -> None:
    file = experiment(tmp_path, {"problem": "exaggerated", "measurement": {"cache": "cold"}})
    done = perfport(*command(file, selector, tmp_path / "out"), cwd=tmp_path)
    (record,) = Run(tmp_path / "out").records
    assert record.status is Status.IMPOSSIBLE and record.problem_bound and record.problem_bound.share.low > 1.02
    assert record.failure and "the declared work, the clock or the ceiling is wrong" in record.failure.reason
    assert done.returncode == 3 and "impossible" in done.stderr and "dram bound" in done.stderr


def test_what_may_do_fewer_operations_is_held_to_bytes_alone(selector: str, perfport: Any, tmp_path: Path) -> None:
    file = experiment(tmp_path, {"problem": "roundabout", "measurement": {"cache": "cold"}})
    for attempt in range(3):  # other load makes a case contended, and is no fault of the bound
        out = tmp_path / str(attempt)
        perfport(*command(file, selector, out), cwd=tmp_path)
        by_name = {record.identity.variant: record for record in Run(out).records}
        if by_name["direct"].status is not Status.CONTENDED:
            break
    assert by_name["good"].status is Status.IMPOSSIBLE and by_name["direct"].status.measured
    counted, moved = by_name["good"].problem_bound, by_name["direct"].problem_bound
    assert counted and counted.binding == "fp32_fma"
    assert moved and moved.terms.keys() == counted.terms.keys() - {"fp32_fma"}


def test_instances_are_timed_apart_and_what_knows_them_is_found_out(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    file = experiment(tmp_path, {"problem": "drawn"}, workers=2)
    done = perfport(*command(file, selector, tmp_path / "out"), env=no_ceilings, cwd=tmp_path)
    by_name = {record.identity.variant: record for record in Run(tmp_path / "out").records}
    good, memorised = by_name["good"], by_name["memorised"]
    assert good.status.measured and good.inputs == {"a": 7, "b": 1007, "c": 2007} == memorised.inputs
    assert good.timing and len(good.timing.wall) == 6, "three rounds by each of two workers"
    apart = {name: found.summary.median for name, found in good.timing.instances.items()}
    pauses = {name: 0.01 * np.random.default_rng(seed).uniform(1.0, 2.0) for name, seed in good.inputs.items()}
    assert {name: apart[name] >= pause for name, pause in pauses.items()} == dict.fromkeys("abc", True), (apart, pauses)
    ordered = zip(*([found.samples[i] for found in good.timing.instances.values()] for i in range(6)), strict=True)
    assert [len(samples) for samples in ordered] == [6, 6, 6]
    for i, sample in enumerate(good.timing.wall):
        assert sample == pytest.approx(geometric_mean([f.samples[i] for f in good.timing.instances.values()]))
    for name in ("raises_elsewhere", "dies_elsewhere"):
        failure = by_name[name].failure
        assert by_name[name].status is Status.CRASHED and failure, name
        assert re.search(r"verify on inputs drawn from seed \d+", failure.reason), failure.reason
    assert memorised.status is Status.WRONG and memorised.verification
    assert memorised.verification.seed not in memorised.inputs.values() and done.returncode == 3


def test_each_run_verifies_on_inputs_of_its_own(selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path) -> None:
    """The same cases, keys and timed inputs; what verification draws is new."""
    seeds, keys = set(), set()
    file = experiment(tmp_path, {"problem": "drawn", "variants": ["memorised"], "instances": 1})
    for number in "12":
        perfport(*command(file, selector, tmp_path / number), env=no_ceilings, cwd=tmp_path)
        (record,) = Run(tmp_path / number).records
        assert record.inputs == {"a": 7} and record.verification
        seeds.add(record.verification.seed)
        keys.add(record.key)
    assert len(seeds) == 2 and len(keys) == 1


def test_threads_of_libraries_sleep_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenBLAS's threads spin for tens of milliseconds after a product, which the next case would pay for."""
    for name in QUIET:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    handle = WorkerHandle([], "nothing")
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
