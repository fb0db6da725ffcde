"""Two states of the code measured in turn: the order of the cases, the time that it may take, verdicts, the table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import report_data as data
import yaml
from check_data import case, store
from code_repository import git, needs_git

from perfport.measure.ceilings.cached import load_cached
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import Failure, Status
from perfport.nightly import diff as module
from perfport.nightly.checkout import Checkout, changed_files, resolved
from perfport.nightly.diff import BASE, HEAD, TOGETHER, Planned, Sides, judged, measured
from perfport.nightly.finding import Outcome
from perfport.nightly.inturn import ROUNDS, for_sides
from perfport.nightly.place import series_key
from perfport.run.experiment import CaseCheck, Experiment, load

NAMES = ("v0", "v1", "v2")
DEFINITION = {"name": "demo", "experiments": [{"workload": "demo", "problem": "rows", "presets": ["quick"]}]}


def sides(folder: Path, **keys: Any) -> Sides:
    """Two sides, whatever their code is."""
    code = Checkout(Path("code"), Path("repository"), "ab" * 20)
    return Sides({BASE: code, HEAD: None}, Experiment.model_validate({**DEFINITION, **keys}), folder, (), {})


def planned(folder: Path, names: Sequence[str] = NAMES) -> list[Planned]:
    """Cases, the first of which have a kernel that differs."""
    run = store(folder / "model", [case(name) for name in names])
    return [Planned(r.identity, series_key(run, r), 3 - n % 2) for n, r in enumerate(run.records)]


@dataclass
class Machine:
    """Stands for what measures: seconds of a case by side, and how long a case takes to be measured."""

    takes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cost: float = 1e-3
    now: float = 0.0
    called: list[tuple[str, int]] = field(default_factory=list)

    def run_side(self, file: Path, out: Path, workloads: Sequence[str], code: Checkout | None, **how: Any) -> None:
        names = [name for study in load(file).experiments for name in study.variants or ()]
        assert how["limit"] > 0 and load(file).workers == 1
        self.called.append((out.name, len(names)))
        done = min(len(names), int(how["limit"] / self.cost))
        self.now += min(self.cost * len(names), how["limit"])
        records = []
        for name in names[:done]:
            given = self.takes.get(out.name, {}).get(name, 0.05)
            if isinstance(given, dict):
                records.append(case(name, 0.05, seed=len(self.called), workers=1, **given))
            elif given:
                hour = 1 + 0.2 * ((len(self.called) - 1) // 2 % 5)  # a machine that is never the same
                records.append(case(name, given * hour, seed=len(self.called), workers=1))
        store(out, records)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """In place of processes and the clock."""
    made = Machine()
    monkeypatch.setattr(module, "run_side", made.run_side)
    monkeypatch.setattr(module.time, "monotonic", lambda: made.now)
    return made


def test_verdicts(tmp_path: Path, machine: Machine) -> None:
    loud = {"status": Status.CONTENDED, "failure": Failure(reason="others")}
    crashed = {"status": Status.CRASHED, "failure": Failure(reason="signal 11")}
    machine.takes = {
        BASE: {"new": 0, "loud": 0.05, "failing": 0.05},
        HEAD: {"slow": 0.06, "fast": 0.04, "loud": loud, "failing": crashed, "gone": 0,
               "wrong": {"status": Status.WRONG, "failure": Failure(reason="y is off")}},
    }  # fmt: skip
    names = ["slow", "fast", "same", "new", "loud", "failing", "gone", "wrong"]
    both, wanted = sides(tmp_path), planned(tmp_path, names)
    judgement = judged(both, wanted, measured(both, wanted, 1e9, lambda _: None), "main")
    found = {finding.place.variant: finding for finding in judgement.findings}
    assert {name: finding.outcome.value for name, finding in found.items()} == {
        "slow": "slower", "fast": "faster", "same": "same", "new": "new", "loud": "cannot tell", "failing": "failed",
        "gone": "vanished", "wrong": "wrong",
    }  # fmt: skip
    assert found["slow"].ratio and found["slow"].ratio.value == pytest.approx(5 / 6, rel=0.02)
    assert found["loud"].ratio and found["loud"].why == "5 of 5 rounds contended: others"
    assert found["loud"].without == "contended", "the base was not"
    assert found["gone"].why == "no result with the head's code" and found["new"].why == "not in the base"
    assert found["same"].why == "compared with main, 5 times in turn, 5 workers measured it again"
    assert [side for side, _ in machine.called] == [BASE, HEAD, HEAD, BASE] * 2 + [BASE, HEAD]


@pytest.mark.parametrize(("left", "rounds"), [(1e9, ROUNDS), (62.0, 3), (50.0, 3), (6.0, 1), (1.0, 1)])
def test_it_ends_in_the_time_given(tmp_path: Path, machine: Machine, left: float, rounds: int) -> None:
    """Ten cases of a second: a round takes 20 s, and three rounds are needed."""
    machine.cost = 1.0
    both, wanted = sides(tmp_path), planned(tmp_path, [f"v{n}" for n in range(10)])
    held = measured(both, wanted, left, lambda _: None)
    assert machine.now <= left + 1.0
    most = max(map(len, held.values()))
    assert most == rounds and len(held[wanted[0].series]) == most, "of the first case there are as many as of any"
    if left == 50.0:
        assert machine.called[0][1] == 10 and machine.called[2][1] == 7, "fewer cases, that three rounds of them fit"


def test_some_cases_after_the_others(tmp_path: Path, machine: Machine) -> None:
    both, wanted = sides(tmp_path), planned(tmp_path, [f"v{n}" for n in range(TOGETHER + 3)])
    assert {len(each) for each in measured(both, wanted, 1e9, lambda _: None).values()} == {ROUNDS}
    assert [number for _, number in machine.called] == [TOGETHER] * 2 * ROUNDS + [3] * 2 * ROUNDS


def test_without_time_for_three_rounds_there_is_no_verdict(tmp_path: Path, machine: Machine) -> None:
    machine.takes, machine.cost = {HEAD: {"v0": 0.1}}, 10.0
    both, wanted = sides(tmp_path), planned(tmp_path)
    judgement = judged(both, wanted, measured(both, wanted, 65.0, lambda _: None), "main")
    assert {finding.outcome for finding in judgement.findings} == {Outcome.CANNOT_TELL}
    assert {finding.why for finding in judgement.findings} <= {
        f"{n} rounds in the time given; 3 are needed" for n in (1, 2)
    }
    assert judgement.colour == "yellow"


def test_what_the_time_did_not_allow_has_not_vanished(tmp_path: Path, machine: Machine) -> None:
    """The head's side of the first round was cut off after two of three cases."""
    machine.cost = 1.0
    both, wanted = sides(tmp_path), planned(tmp_path)
    rounds = measured(both, wanted, 5.0, lambda _: None)
    assert sorted(rounds) == sorted(each.series for each in wanted[:2])
    judgement = judged(both, wanted, rounds, "main")
    assert {finding.outcome for finding in judgement.findings} == {Outcome.CANNOT_TELL}


def test_nothing_measured_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="nothing was measured in the time given"):
        judged(sides(tmp_path), planned(tmp_path), {}, "main")


def test_a_new_default_is_compared_with_the_old_one(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [case("v0", tunables={"group": 128}), case("v1")])
    old = {series_key(run, record): record for record in run.records}
    (wanted, *_) = planned(tmp_path, ["v0"])
    found = module._of(wanted, old)
    assert found and found.identity.tunables == {"group": 128}
    twice = store(tmp_path / "twice", [case("v0", tunables={"group": g}) for g in (64, 128)])
    assert module._of(wanted, {series_key(twice, record): record for record in twice.records}) is None


def test_what_only_judges_is_not_given_to_code_of_any_age() -> None:
    check = {"threshold": 0.5, "min_judged": 0.1}
    made = Experiment.model_validate({**DEFINITION, "check": check, "count": True})
    made.experiments[0] = made.experiments[0].model_copy(update={"check": CaseCheck(threshold=0.5), "count": True})
    assert "check" not in (told := for_sides(made)) and "count" not in told


def test_no_ceilings_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = DeviceInfo(**data.device(data.POCL))
    for name, value in module._without_ceilings(tmp_path / "cache", [info]).items():
        monkeypatch.setenv(name, value)
    held = load_cached(info)
    assert held is not None and not held.entries


@needs_git
def test_what_differs_between_commits_and_the_working_tree(tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text("1")
    (tmp_path / "b.cl").write_text("1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "a.cl").write_text("2")
    git(tmp_path, "commit", "-qam", "second")
    (tmp_path / "new\n.cl").write_text("")
    (tmp_path / os.fsdecode(b"caf\xe9.cl")).write_text("")
    first, second = resolved(tmp_path, "HEAD^"), resolved(tmp_path, "HEAD")
    assert changed_files(tmp_path, first, second) == {tmp_path / "a.cl"}
    new = {tmp_path / "new\n.cl", tmp_path / os.fsdecode(b"caf\xe9.cl")}
    assert changed_files(tmp_path, second, None) == new
    for name in ("nowhere", "--all", ""):
        with pytest.raises(UsageError, match="is no commit of the repository"):
            resolved(tmp_path, name)
    with pytest.raises(InfrastructureError, match="git does not say what differs"):
        changed_files(tmp_path, "0" * 40, None)


def test_cases_whose_kernels_differ_come_first(tmp_path: Path, opencl_infos: list[DeviceInfo]) -> None:
    root = Path(__file__).parents[2]
    file = tmp_path / "e.yaml"
    studies = [{"workload": "svm_rbf", "problem": name, "presets": ["tiny"]} for name in ("arg_extrema", "rbf_rows")]
    file.write_text(yaml.safe_dump({"name": "e", "experiments": studies}))

    def listed(*names: str) -> list[tuple[str, int]]:
        changed = frozenset((root / name).resolve() for name in names)
        cases = module.planned_cases(file, load(file), module.Options(), opencl_infos[:1], changed)
        return [(each.identity.problem, each.changed) for each in cases]

    assert {changed for _, changed in listed("README.md")} == {0}
    assert {changed for _, changed in listed("suite/perfport/measure/sampling.py")} == {1}
    kernels = listed("workloads/svm_rbf/kernels/rbf_rows.cl")
    assert kernels[0] == ("rbf_rows", 3) and kernels[-1][1] == 0
    assert [changed for _, changed in kernels] == sorted((changed for _, changed in kernels), reverse=True)
