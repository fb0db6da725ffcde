"""Suspects measured in turn with the base's code: seen where the code is slower, cleared where the machine was."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import report_data as data
import yaml
from check_data import case, finding, store
from code_repository import git, needs_git, replaced
from commands import experiment

from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, Stopped
from perfport.model.record import Failure, Status
from perfport.nightly import check, checkout, inturn
from perfport.nightly.base import AgainstNights, AgainstRun
from perfport.nightly.check import check_run
from perfport.nightly.checkout import Checkout
from perfport.nightly.finding import Outcome
from perfport.nightly.history import History, add
from perfport.nightly.inturn import ROUNDS, TURNS
from perfport.report.pages.check import view
from perfport.run import plan
from perfport.run.experiment import load
from perfport.run.signals import heeded
from perfport.store.environment import ENVIRONMENT
from perfport.store.results import EXPERIMENT, RECORDS, Run
from perfport.workload import discover


@pytest.mark.minutes
@pytest.mark.timeout(600)
@needs_git
def test_code_that_is_slower_is_seen_beside_the_code_of_the_base(
    repository: Path, tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str]
) -> None:
    """Really measured: one clock sleeps twenty times as long in the second commit, and the other does not."""
    file = tmp_path / EXPERIMENT
    file.write_text(yaml.safe_dump({
        "name": "clocks", "workers": 3, "check": {"threshold": 0.5}, "devices": [opencl_infos[0].id],
        "measurement": {"cache": "warm", "min_samples": 3, "max_samples": 3, "time_budget": 0.2},
        "experiments": [{
            "workload": "nightly", "problem": "double", "variants": ["clock_a", "clock_b"],
            "parameters": {"n": 64, "rounds": 1, "seconds": 0.01},
        }],
    }))  # fmt: skip

    def perfport(*words: object) -> subprocess.CompletedProcess[str]:
        variables = {"PYTHONPATH": str(repository / "suite"), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-m", "perfport.cli", *map(str, words), "--workloads", str(repository / "clocks")]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**no_ceilings, **variables}, cwd=tmp_path
        )

    before, after = tmp_path / "before", tmp_path / "after"
    assert (done := perfport("run", file, "--out", before)).returncode == 0, done.stderr
    first = git(repository, "rev-parse", "HEAD")
    sleep = "time.sleep(self.seconds * self.factor"
    replaced(repository / "clocks/nightly/variants.py", sleep, f"{sleep} * (20 if self.name == 'clock_b' else 1)")
    git(repository, "commit", "-qam", "second")
    assert (done := perfport("run", file, "--out", after)).returncode == 0, done.stderr
    checked = perfport("check", after, "--baseline", before, "--remeasure", "--format", "json")
    assert checked.returncode == 5, checked.stderr
    (found,) = (row for row in json.loads(checked.stdout) if " clock_b " in row["case"])
    assert found["outcome"] == "slower" and found["measured again"] == ROUNDS
    second = git(repository, "rev-parse", "HEAD")
    assert found["since"] == f"source changed ({first[:7]}..{second[:7]}: nightly/variants.py)"
    assert f"; compared with run before by its code (commit {first[:12]}), 5 times in turn" in found["why"]
    assert found["ratio"] < 0.2 and found["seconds before"] < 0.2 < found["seconds"] + 0.1
    ran = [json.loads((side / ENVIRONMENT).read_text()) for side in sorted(after.glob(f"{TURNS}/*/*/base"))]
    assert [each["commit"]["hash"] for each in ran] == [first] * ROUNDS
    assert not list(Path(no_ceilings["TMPDIR"]).glob("perfport-base-*")), "the code of the base is removed"


NAMES = ("v0", "v1", "v2")
COMMIT = "ab" * 20


def sides(tmp_path: Path, **now: float) -> tuple[Run, Run]:
    """A base run that names its commit, and a run whose cases take 8 % longer unless given otherwise."""
    base = store(tmp_path / "base", [case(name, seed=1) for name in NAMES])
    environment = {**base.environment, "commit": {"hash": COMMIT, "dirty": False}}
    (base.folder / ENVIRONMENT).write_text(json.dumps(environment))
    run = store(tmp_path / "now", [case(name, now.get(name, 0.054), seed=2) for name in NAMES], 1)
    return Run(base.folder), run


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Replace what measures: what a case takes by side, or how it ends; returns the sides in the order of the calls."""

    def replace(base: dict[str, Any], now: dict[str, Any], drift: float = 0.3) -> list[str]:
        called: list[str] = []

        def run_side(file: Path, out: Path, workload_paths: Sequence[str], code: Checkout | None) -> None:
            assert load(file).workers == 1
            called.append(out.name)
            takes = base if code else now
            assert (out.name == "base") == (code is not None)
            hour = 1.0 + drift * int(out.parent.name)  # a machine that gets slower all the time
            records = []
            for name in NAMES:
                given = takes.get(name, 0.054)
                given = given[int(out.parent.name)] if isinstance(given, list) else given
                change = given if isinstance(given, dict) else {}
                seconds = hour * (0.054 if isinstance(given, dict) else given)
                records.append(case(name, seconds, seed=len(called), workers=1, **change))
            store(out, records, 2)

        @contextlib.contextmanager
        def checked_out(commit: str) -> Iterator[Checkout]:
            assert commit == COMMIT
            yield Checkout(Path("code"), Path("repository"), commit)

        monkeypatch.setattr(inturn, "run_side", run_side)
        monkeypatch.setattr(inturn, "checked_out", checked_out)
        monkeypatch.setattr(inturn, "_check_keys", lambda *_: None)
        monkeypatch.setattr(check.discovery, "discover", lambda: [DeviceInfo(**data.device(data.POCL))])
        return called

    return replace


def test_a_machine_that_is_slower_by_now_is_no_slower_code(tmp_path: Path, machine: Callable[..., list[str]]) -> None:
    base, run = sides(tmp_path)
    assert len(check_run(run, AgainstRun(base, run)).of(Outcome.SLOWER)) == 3, "by stored times the night is red"
    called = machine({}, {})
    judgement = check_run(run, AgainstRun(base, run), remeasure=True)
    assert not judgement.of(Outcome.SLOWER) and judgement.remeasured and not judgement.one_sided
    assert called == ["base", "now", "now", "base"] * 2 + ["base", "now"], "neither side is always the first"
    found = finding(judgement, "v1")
    assert found.ratio and abs(math.log(found.ratio.value)) < 0.01, "what both sides share in a round cancels"
    assert found.again == ROUNDS and f"(commit {COMMIT[:12]}), 5 times in turn" in found.why
    assert found.before == pytest.approx(found.now, rel=0.01) and (found.now or 0) > 0.06, "seconds of the same minutes"
    later = check_run(run, AgainstRun(base, run), remeasure=True)
    assert len(called) == 2 * ROUNDS and not later.of(Outcome.SLOWER), "what is stored counts, and is not made again"
    (base.folder / ENVIRONMENT).write_text(
        json.dumps({**base.environment, "commit": {"hash": "cd" * 20, "dirty": False}})
    )
    other = check_run(run, AgainstRun(Run(base.folder), run))
    assert len(other.of(Outcome.SLOWER)) == 3 and not other.remeasured, "another base has other code"


@pytest.mark.parametrize(
    ("slower", "driver", "colour", "why"),
    [
        (True, "3.1", "red", f"since source changed ({COMMIT[:7]}..cdcdcdc: w/rows.cl); compared with 4 nights by its"),
        (False, "3.1", "green", f"compared with 4 nights by its code (commit {COMMIT[:12]}), 5 times in turn"),
        (False, "4.0", "yellow", "since driver 3.1 -> 4.0; compared with 4 nights"),
        (True, "4.0", "red", f"since source changed ({COMMIT[:7]}..cdcdcdc: w/rows.cl)"),
    ],
)
def test_suspects_of_a_changed_source_are_measured_in_turn_with_the_night_before(
    tmp_path: Path, machine: Callable[..., list[str]], slower: bool, driver: str, colour: str, why: str
) -> None:
    """That says what the source did; what is left is of the driver, or was the machine."""
    for number in range(4):
        records = [case(name, seed=number) for name in NAMES]
        add(with_code(store(tmp_path / f"n{number}", records, number), COMMIT, 1), tmp_path / "h")
    tonight = store(tmp_path / "now", [case(name, 0.054, seed=9) for name in NAMES], 9, driver=driver)
    run = with_code(tonight, "cd" * 20, 2)
    called = machine({}, {"v1": 0.06} if slower else {})
    judgement = check_run(run, AgainstNights(History(tmp_path / "h"), run, 7), remeasure=True)
    assert judgement.colour == colour and len(called) == 2 * ROUNDS and not judgement.one_sided
    assert finding(judgement, "v1").why.startswith(why)
    assert finding(judgement, "v0").outcome is (Outcome.SLOWER if driver == "4.0" else Outcome.SAME)


def with_code(run: Run, commit: str, digest: int) -> Run:
    """A run that names its commit and the file that its cases are made of."""
    names = [f"demo/rows/{name}" for name in NAMES]
    code = {
        "measuring": "m", "variants": dict.fromkeys(names, str(digest)), "files": {"w/rows.cl": str(digest)},
        "made_of": {name: ["w/rows.cl"] for name in names},
    }  # fmt: skip
    environment = {**run.environment, "commit": {"hash": commit, "dirty": False}, "code": code}
    (run.folder / ENVIRONMENT).write_text(json.dumps(environment))
    return Run(run.folder)


def test_slower_code_is_slower_in_turn(tmp_path: Path, machine: Callable[..., list[str]]) -> None:
    base, run = sides(tmp_path)
    machine({}, {"v1": 0.06})
    judgement = check_run(run, AgainstRun(base, run), remeasure=True)
    assert [found.place.variant for found in judgement.of(Outcome.SLOWER)] == ["v1"]
    assert (ratio := finding(judgement, "v1").ratio) and ratio.value == pytest.approx(0.9, rel=0.01)


def test_a_case_whose_base_fails_is_held_to_what_is_stored(tmp_path: Path, machine: Callable[..., list[str]]) -> None:
    base, run = sides(tmp_path, v0=0.05, v2=0.05)
    crashed = {"status": Status.CRASHED, "failure": Failure(reason="signal 11")}
    machine({"v1": crashed}, {}, drift=0.0)
    judgement = check_run(run, AgainstRun(base, run), remeasure=True)
    found = finding(judgement, "v1")
    assert found.outcome is Outcome.SLOWER and found.again == ROUNDS
    assert "run base as stored (0 rounds in turn with its code: crashed: signal 11)" in found.why


@pytest.mark.parametrize(("contended", "pairs", "again"), [(2, 3, 3), (3, 2, 2)])
def test_three_rounds_without_other_load_are_needed(
    tmp_path: Path, machine: Callable[..., list[str]], contended: int, pairs: int, again: int
) -> None:
    base, run = sides(tmp_path, v0=0.05, v2=0.05)
    load = {"status": Status.CONTENDED, "failure": Failure(reason="other processes")}
    machine({}, {"v1": [load] * contended + [0.06] * (ROUNDS - contended)}, drift=0.0)
    found = finding(check_run(run, AgainstRun(base, run), remeasure=True), "v1")
    assert found.outcome is Outcome.SLOWER and found.again == again
    told = f"{pairs} times in turn" if pairs >= 3 else f"as stored ({pairs} rounds in turn with its code"
    assert told in found.why


def test_a_run_that_is_wrong_in_turn_is_wrong(tmp_path: Path, machine: Callable[..., list[str]]) -> None:
    base, run = sides(tmp_path)
    machine({}, {"v1": {"status": Status.WRONG, "failure": Failure(reason="y is off")}})
    judgement = check_run(run, AgainstRun(base, run), remeasure=True)
    assert [found.place.variant for found in judgement.of(Outcome.WRONG)] == ["v1"]


@pytest.mark.parametrize("digit", "0f")
def test_rounds_of_other_code_do_not_count(tmp_path: Path, machine: Callable[..., list[str]], digit: str) -> None:
    base, run = sides(tmp_path)
    machine({}, {})
    check_run(run, AgainstRun(base, run), remeasure=True)
    records = [record.model_copy(update={"key": f"{15 * digit}{n}"}) for n, record in enumerate(run.records)]
    (run.folder / RECORDS).write_text("".join(f"{record.model_dump_json()}\n" for record in records))
    assert not check_run(Run(run.folder), AgainstRun(base, run)).of(Outcome.SAME)


@pytest.mark.parametrize(("commit", "driver", "why"), [
    (None, "3.1", "run base names no commit of its code"),
    ({"hash": "--output=/etc/passwd", "dirty": False}, "3.1", "run base names no commit of its code"),
    ({"hash": COMMIT, "dirty": True}, "3.1", "run base was measured with uncommitted changes"),
    ({"hash": COMMIT, "dirty": False}, "2.0", "had driver 2.0 in run base and has 3.1 here"),
    ({"hash": COMMIT, "dirty": False}, "3.1", f"commit {COMMIT[:12]} is not in the repository"),
])  # fmt: skip
def test_without_its_code_the_base_stands_as_it_is_stored(
    tmp_path: Path, machine: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch,
    commit: Any, driver: str, why: str,
) -> None:  # fmt: skip
    base, run = sides(tmp_path)
    devices = {data.POCL: {**base.environment["devices"][data.POCL], "driver": driver}}
    (base.folder / ENVIRONMENT).write_text(json.dumps({**base.environment, "commit": commit, "devices": devices}))
    base = Run(base.folder)
    called = machine({}, {})
    if "repository" in why:
        if shutil.which("git") is None:
            pytest.skip("git is not installed")
        (tmp_path / "__init__.py").write_text("")
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "__init__.py")
        git(tmp_path, "commit", "-qm", "m")
        monkeypatch.setattr(checkout, "files", lambda _: tmp_path)
        monkeypatch.setattr(inturn, "checked_out", checkout.checked_out)
    again = {record.key: case(record.identity.variant, seed=9, workers=5) for record in run.records}
    monkeypatch.setattr(check, "measure_again", lambda *_: again)
    judgement = check_run(run, AgainstRun(base, run), remeasure=True)
    assert not called and why in judgement.one_sided and finding(judgement, "v1").again == 5
    assert "not in turn with the base's: " in view(judgement).markdown and why in view(judgement).markdown


def planned(tmp_path: Path, here: list[DeviceInfo], seed: int = 5, **study: Any) -> Run:
    """A run with a record of each case of an experiment."""
    file = experiment(tmp_path, workers=3, report={"path": "x.md"}, study={"problem": "arg_extrema", **study})
    groups = plan.make(load(file), file.name, discover(only="svm_rbf"), here, seed)
    model = data.record("model")
    return data.store(tmp_path, [
        model.model_copy(update={"identity": case.identity, "key": case.key, "seed": seed})
        for group in groups for case in group.cases
    ])  # fmt: skip


@pytest.mark.parametrize("size", [{"presets": ["tiny", "quick"]}, {"presets": None, "parameters": {"n": [65, 131]}}])
def test_what_is_measured_in_turn_is_the_wanted_cases_alone(
    tmp_path: Path, opencl_infos: list[DeviceInfo], size: dict[str, Any]
) -> None:
    """Of several sizes and profiles, with tunables that not every variant has; each by one fresh worker a round."""
    study = {"variants": ["argminmax_fused", "argminmax_wide"], "tunables": {"width": [4, 8]}, **size}
    run = planned(tmp_path, opencl_infos, profiles=["native", "hd7970"], **study)
    first = run.records[0].identity.devices
    every = [record for record in run.records if record.identity.devices == first]
    assert len(every) == 2 * 2 * 3
    workloads = discover(only="svm_rbf")
    for wanted in [[record] for record in every] + [every[:7:3]]:
        definition = inturn._definition(run, wanted)
        kept = (definition.workers, definition.seed, definition.devices, definition.report.path)
        assert kept == (1, 5, first, None) and definition.executor.kind == "local"
        inturn._check_keys(definition, wanted, workloads, opencl_infos)
        groups = plan.make(definition, "", workloads, opencl_infos, 5)
        assert sorted(case.key for group in groups for case in group.cases) == sorted(r.key for r in wanted)
    other = every[0].model_copy(update={"identity": every[0].identity.model_copy(update={"variant": "none"})})
    with pytest.raises(InfrastructureError, match="none is in no entry of its experiment"):
        inturn._definition(run, [other])


def test_cases_that_the_code_here_would_not_measure_so_are_refused(
    tmp_path: Path, opencl_infos: list[DeviceInfo]
) -> None:
    run = planned(tmp_path, opencl_infos[:1], presets=["tiny"])
    workloads, wanted = discover(only="svm_rbf"), run.records
    definition = inturn._definition(run, wanted)
    inturn._check_keys(definition, wanted, workloads, opencl_infos[:1])
    names = sorted(record.identity.variant for record in wanted)
    assert len(names) > 5
    for count in (1, 2, len(names)):
        others = [
            record.model_copy(update={"key": f"{n:016x}"}) if record.identity.variant in names[:count] else record
            for n, record in enumerate(wanted)
        ]
        lost = rf"^{count} cases are no longer what they were in the run \({', '.join(names[: min(count, 5)])}\)$"
        with pytest.raises(InfrastructureError, match=lost):
            inturn._check_keys(definition, others, workloads, opencl_infos[:1])
    broken = opencl_infos[0].model_copy(update={"healthy": False})
    with pytest.raises(InfrastructureError, match=f"^{len(names)} cases"):
        inturn._check_keys(definition, wanted, workloads, [broken])


def test_devices_are_those_of_the_base(tmp_path: Path) -> None:
    """By their drivers; one that the cases do not ask for, or that the base alone has, is no matter."""
    base = data.store(tmp_path / "base", [])
    infos = {id_: DeviceInfo(**data.device(id_)) for id_ in (data.POCL, data.INTEL, data.GPU)}
    on = {id_: data.record("a", device=id_, ceilings=None) for id_ in infos}
    against = AgainstRun(base, base)
    against._check_devices(list(on.values()), list(infos.values()))
    newer = infos[data.INTEL].model_copy(update={"driver": "9"})
    against._check_devices([on[data.POCL]], [infos[data.POCL], newer])
    for here, told in (([], "none"), ([infos[data.INTEL].model_copy(update={"healthy": False})], "none"), ([newer], 9)):
        told = f"^{data.INTEL} had driver 3.1 in run {base.name} and has {told} here$"
        with pytest.raises(InfrastructureError, match=told):
            against._check_devices([on[data.POCL], on[data.INTEL]], [infos[data.POCL], *here])
    unknown = data.store(tmp_path / "none", [], {**base.environment, "devices": None})
    with pytest.raises(
        InfrastructureError, match=f"^{data.POCL} had driver None in run {unknown.name} and has 3.1 here$"
    ):
        AgainstRun(unknown, unknown)._check_devices([on[data.POCL]], list(infos.values()))


def test_a_side_is_a_run_of_its_own_code_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process gets, and that one which ends badly counts as long as it has left records."""
    package = tmp_path / "code" / "suite" / "perfport"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cli.py").write_text(
        "import json, os, pathlib, sys\n"
        "out = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
        "out.mkdir()\n"
        "(out / 'records.jsonl').write_text(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
        "print('on', file=sys.stdout); print('both', file=sys.stderr); sys.exit(5)\n"
    )
    monkeypatch.setenv("PLANTED", "1")
    code = Checkout(tmp_path / "code", tmp_path / "repository", COMMIT)
    own = tmp_path / "repository" / "own"
    for number in range(2):  # the folder of the round is there, for its second side
        out = tmp_path / "000" / f"side{number}"
        inturn.run_side(tmp_path / "file", out, [str(own), "/elsewhere"], code)
        words, environment = json.loads((out / RECORDS).read_text())
        paths = ["--workloads", str(tmp_path / "code" / "own"), "--workloads", "/elsewhere"]
        assert words == ["run", str(tmp_path / "file"), "--out", str(out), *paths]
        assert {"PLANTED": "1", **code.environment()}.items() <= environment.items()
        assert sorted(out.with_suffix(".log").read_text().split()) == ["both", "on"]


def test_a_side_that_does_not_start_says_why(tmp_path: Path) -> None:
    file = tmp_path / EXPERIMENT
    file.write_text("name: [")
    with pytest.raises(InfrastructureError, match=r"the code does not run here: .*experiment.yaml"):
        inturn.run_side(file, tmp_path / "000" / "now", [], None)
    broken = Checkout(tmp_path, tmp_path, COMMIT)
    (tmp_path / "suite" / "perfport").mkdir(parents=True)
    (tmp_path / "suite" / "perfport" / "__init__.py").write_text("raise SystemExit('planted')")
    with pytest.raises(InfrastructureError, match=f"the code of commit {COMMIT[:12]} does not run here: planted"):
        inturn.run_side(file, tmp_path / "001" / "base", [], broken)


def test_a_signal_ends_the_side_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on measuring beside whatever comes next, and hold the chip."""
    ended = tmp_path / "ended"
    side = (
        "import os, pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(ended)!r}).write_text('in order'), sys.exit()))\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "time.sleep(20)\n"
    )
    program = tmp_path / "side"
    program.write_text(f"#!{sys.executable}\n{side}")
    program.chmod(0o755)
    monkeypatch.setattr(inturn.sys, "executable", str(program))
    with pytest.raises(Stopped), heeded():
        inturn.run_side(tmp_path / EXPERIMENT, tmp_path / "000" / "now", [], None)
    assert ended.read_text() == "in order"
