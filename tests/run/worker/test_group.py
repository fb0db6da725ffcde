"""One group: instances sampled in turn, verification on inputs of its own, times held to bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from faulty_runs import FAULTY, command, experiment

from perfport import backend
from perfport.measure.agreement import Agreed, Agreement
from perfport.measure.ceilings import Ceiling, Ceilings, store, sweep
from perfport.measure.sampling import Targets
from perfport.model.record import Energy, Identity, Interval, Status
from perfport.run.cases import Case, Group
from perfport.run.messages import CaseFinished, CeilingsInUse, StepStarted
from perfport.run.worker import audit, group, live, probing, stored
from perfport.run.worker.audit import Audit
from perfport.run.worker.energy import UNMEASURED
from perfport.run.worker.group import DeviceLostError, GroupRun
from perfport.run.worker.probing import ATTEMPTS
from perfport.run.worker.resources import Resources
from perfport.store.results import Run
from perfport.workload import Session

# Ceilings are swept and probed, on a machine that is busy with other tests.
pytestmark = [pytest.mark.any_device, pytest.mark.minutes, pytest.mark.timeout(900)]
#: What the problems here are bound by: a sweep of all ceilings takes minutes beside other tests.
BOUND_BY = ("dram_copy", "dram_read", "fp32_fma")
Known = Callable[[float], dict[str, str]]


@pytest.fixture(scope="module")
def swept(selector: str, opencl_infos: Any) -> Ceilings:
    """What the device gives."""
    info = next(info for info in opencl_infos if info.id == selector)
    found = sweep(backend.get(info.backend).open(info), names=BOUND_BY)
    return found.model_copy(update={"contended": {}})  # by tests beside this one: a run would begin with a new sweep


@pytest.fixture
def known(
    swept: Ceilings, selector: str, opencl_infos: Any, no_ceilings: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Known:  # fmt: skip
    """Store so many times what the device gives; returns the environment of a command that finds it."""

    def plant(factor: float) -> dict[str, str]:
        of = {name: factor * np.array([e.value, e.low, e.high]) for name, e in swept.entries.items()}
        times = {name: dict(zip(("value", "low", "high"), values, strict=True)) for name, values in of.items()}
        entries = {name: entry.model_copy(update=times[name]) for name, entry in swept.entries.items()}
        with monkeypatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
            (info,) = (info for info in opencl_infos if info.id == selector)
            store(info, swept.model_copy(update={"entries": entries}))
        return {**no_ceilings, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    return plant


def test_a_wrong_work_model_is_loud(selector: str, perfport: Any, known: Known, tmp_path: Path) -> None:
    file = experiment(tmp_path, {"problem": "exaggerated", "measurement": {"cache": "cold"}})
    done = perfport(*command(file, selector, tmp_path / "out"), env=known(1.0), cwd=tmp_path)
    (record,) = Run(tmp_path / "out").records
    assert record.status is Status.IMPOSSIBLE and record.problem_bound and record.problem_bound.share.low > 1.02
    assert record.failure and "the declared work, the clock or the ceiling is wrong" in record.failure.reason
    assert "swept again after the group: dram_copy" in record.failure.reason
    assert done.returncode == 3 and "impossible" in done.stderr and "dram bound" in done.stderr
    *_, swept = Run(tmp_path / "out").environment["ceilings"][selector]["renewals"]
    assert swept["verdict"] and {"dram_copy", "dram_read"} <= set(swept["names"])
    values = [swept[when]["dram_read"]["value"] for when in ("before", "fresh")]
    assert record.ceilings["dram_read"].value >= max(values)


def test_probes_that_stay_off_end_a_group_contended_and_excuse_nothing(
    selector: str, perfport: Any, swept: Ceilings, known: Known, tmp_path: Path
) -> None:
    """On a device whose stored ceilings are three times what it gives: what is impossible under them stays so."""
    studies = [{"variants": ["good"]}, {"problem": "exaggerated"}]
    file = experiment(tmp_path, *({**study, "measurement": {"cache": "cold"}} for study in studies))
    done = perfport(*command(file, selector, tmp_path / "out"), env=known(3.0), cwd=tmp_path)
    run = Run(tmp_path / "out")
    by_problem = {record.identity.problem: record for record in run.records}
    good, exaggerated = by_problem["double"], by_problem["exaggerated"]
    assert good.status is Status.CONTENDED and good.failure, done.stderr
    assert re.search(r"dram_read at \d\d?%.* of what is stored|other processes", good.failure.reason), good.failure
    assert exaggerated.status is Status.IMPOSSIBLE and done.returncode == 3
    before = [probe for probe in run.environment["probes"] if probe["when"] == "before"]
    assert len(before) >= ATTEMPTS, "probed again and again"
    for kept in ("value", "high"):
        stored = 3 * getattr(swept.entries["dram_read"], kept)
        assert getattr(good.ceilings["dram_read"], kept) == pytest.approx(stored), "and the probes widen nothing"


def group_of(opencl: Any) -> Group:
    """Three cases from a warm cache, one of them wrong."""
    names = ("good", "also_good", "wrong")
    identities = [
        Identity(
            workload="faulty", problem="double", variant=name, devices=[opencl.info.id], backend="opencl",
            tunables={"shade": 1} if name == "good" else {},
        )
        for name in names
    ]  # fmt: skip
    cases = [Case(key=identity.variant, identity=identity) for identity in identities]
    targets = Targets(cache="warm", min_samples=3, max_samples=3, time_budget=0.05)
    return Group(
        device=opencl.info, workload="faulty", problem="double", preset="tiny", parameters={"n": 1000},
        inputs={"a": 7}, targets=targets, timeout=60, cases=cases,
    )  # fmt: skip


def undisturbed(monkeypatch: pytest.MonkeyPatch, contended: str = "", disturbed: str = "") -> None:
    """Let nothing beside this test decide on cases: others take no time and clocks agree, or so it is told."""
    monkeypatch.setattr(live.Live, "contention", lambda self: contended)
    monkeypatch.setattr(Agreement, "check", lambda *_: Agreed(1e-5, disturbed))


@pytest.mark.parametrize("off", [0.5, 1.0, 1.2])
def test_a_probe_after_the_group_that_stays_off_takes_its_results_back(
    opencl: Any, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    """One that gives more corrects the ceiling, however wide the interval of its sweep."""
    sent: list[Any] = []
    resources = Resources("run", [str(FAULTY)], lambda message: sent.append(deepcopy(message)))  # as a pipe does
    resources._devices[opencl.info.id] = opencl
    entry = Ceiling(value=1e18, low=0.8e18, high=1.3e18, unit="FLOP/s", samples=9)
    known = Ceilings(device="d", driver="1", date=datetime.now(UTC).isoformat(), entries={"fp32_fma": entry})
    slow = {"fp32_fma": entry.model_copy(update={"value": 1e18 * off, "low": 1e18 * off, "high": 1e18 * off})}
    probes = [known, *[known.model_copy(update={"entries": slow})] * ATTEMPTS]
    monkeypatch.setattr(stored, "load_cached", lambda info: known)
    monkeypatch.setattr(stored, "store", lambda info, ceilings: None)
    monkeypatch.setattr(stored, "wait_until_quiet", lambda device, limit: "others use the processor")
    monkeypatch.setattr(probing, "probe_again", lambda *_: probes.pop(0))
    undisturbed(monkeypatch)
    GroupRun(group_of(opencl), resources).run()
    told = [(m.record.key, m.record.status.value) for m in sent if isinstance(m, CaseFinished)]
    assert sorted(told[:3]) == [("also_good", "ok"), ("good", "ok"), ("wrong", "wrong")]
    assert sorted(told[3:]) == ([("also_good", "contended"), ("good", "contended")] if off < 1 else [])


def under_low_ceilings(
    opencl: Any, monkeypatch: pytest.MonkeyPatch, gives: float, busy: str = "", contended: str = "", disturbed: str = ""
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Run a group where one operation per second is stored, and a new sweep gives so many; its records and renewals.

    ``busy`` is why the sweep is contended, ``contended`` and ``disturbed`` why the cases are.
    """
    sent: list[Any] = []
    resources = Resources("run", [str(FAULTY)], lambda message: sent.append(deepcopy(message)))
    resources._devices[opencl.info.id] = opencl
    slow, fresh = (Ceiling(value=rate, low=rate, high=rate, unit="FLOP/s", samples=9) for rate in (1.0, gives))
    known = Ceilings(device="d", driver="1", date=datetime.now(UTC).isoformat(), entries={"fp32_fma": slow})
    swept = {"entries": {"fp32_fma": fresh}, "contended": {"fp32_fma": busy} if busy else {}}
    monkeypatch.setattr(stored, "load_cached", lambda info: known)
    monkeypatch.setattr(stored, "store", lambda info, ceilings: None)
    monkeypatch.setattr(stored, "sweep", lambda *_: known.model_copy(update=swept))
    monkeypatch.setattr(probing, "probe_again", lambda device, stored, names: stored)
    undisturbed(monkeypatch, contended, disturbed)
    GroupRun(group_of(opencl), resources).run()
    told = [message.record for message in sent if isinstance(message, CaseFinished)]
    return told, [message for message in sent if isinstance(message, CeilingsInUse)][-1].values["renewals"]


@pytest.mark.parametrize("busy", ["", "others use the processor"])
@pytest.mark.parametrize(("gives", "status"), [(1e18, Status.OK), (0.5, Status.IMPOSSIBLE)])
def test_nothing_is_said_to_be_impossible_before_its_ceiling_was_swept_again(
    opencl: Any, monkeypatch: pytest.MonkeyPatch, gives: float, status: Status, busy: str
) -> None:
    """Honest times exceed what is stored; the better of both values decides, and both are kept."""
    told, (noted,) = under_low_ceilings(opencl, monkeypatch, gives, busy)
    assert [record.status for record in told] == [Status.WRONG, status, status], "and each once"
    for record in told[1:]:
        assert record.ceilings["fp32_fma"].value == max(1.0, gives)
        assert (record.problem_bound.share.value < 1) == (record.failure is None) == (status is Status.OK)
        if record.failure:
            assert "swept again after the group: fp32_fma 1 as stored, 0.5 now" in record.failure.reason
    assert noted["reason"] == "times exceed fp32_fma" and noted["run"] == "run" and noted["verdict"]
    assert noted["before"]["fp32_fma"]["value"] == 1.0 and noted["fresh"]["fp32_fma"]["value"] == gives


@pytest.mark.parametrize("why", [{"contended": "others use it"}, {"disturbed": "others use it"}])
def test_a_contended_case_stays_so_when_a_new_sweep_makes_it_possible(
    opencl: Any, monkeypatch: pytest.MonkeyPatch, why: dict[str, str]
) -> None:
    told, _ = under_low_ceilings(opencl, monkeypatch, 1e18, **why)
    assert [(record.status, record.failure.reason) for record in told[1:]] == [(Status.CONTENDED, "others use it")] * 2


class InProcess:
    """Groups that run in this process, under ceilings that nothing reaches and with nothing beside them.

    Attributes
    ----------
    sent : list
        Messages of all groups, as a pipe copies them.
    cls : dict
        The problems by name, to be changed.
    """

    def __init__(self, opencl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[Any] = []
        self.opencl, self.monkeypatch = opencl, monkeypatch
        self.resources = Resources("run", [str(FAULTY)], lambda message: self.sent.append(deepcopy(message)))
        self.resources._devices[opencl.info.id] = opencl
        self.cls = self.resources.workload("faulty").problems
        high = Ceiling(value=1e18, low=1e18, high=1e18, unit="FLOP/s", samples=9)
        entries = {"fp32_fma": high, "dram_copy": high, "dram_read": high}
        known = Ceilings(device="d", driver="1", date=datetime.now(UTC).isoformat(), entries=entries)
        monkeypatch.setattr(stored, "load_cached", lambda info: known)
        monkeypatch.setattr(probing, "probe_again", lambda device, stored, names: stored)
        undisturbed(monkeypatch)

    def made(self, *names: str, problem: str = "double", cold: bool = False, energy: bool = False, **keys: Any) -> Any:
        """Make a group of these variants, and return it before it runs; ``keys`` of `Group`."""
        identities = {
            name: Identity(
                workload="faulty", problem=problem, variant=name, devices=[self.opencl.info.id], backend="opencl",
                tunables={"shade": 1} if name in ("good", "driven_peer") else {},
            )
            for name in names
        }  # fmt: skip
        cases = [Case(key=name, identity=identity) for name, identity in identities.items()]
        targets = Targets(
            cache="cold" if cold else "warm", min_samples=3, max_samples=3, time_budget=0.04, energy=energy
        )
        given = {
            "device": self.opencl.info, "workload": "faulty", "problem": problem, "preset": "tiny",
            "parameters": {"n": 1000}, "inputs": {"a": 7}, "targets": targets, "timeout": 60, "cases": cases,
        }  # fmt: skip
        return GroupRun(Group(**{**given, **keys}), self.resources)

    def run(self, *names: str, **keys: Any) -> dict[str, Any]:
        """Run a group of these variants; return the last record of each."""
        self.made(*names, **keys).run()
        return {record.key: record for record in self.told}

    @property
    def told(self) -> list[Any]:
        """The records that were sent, in order."""
        return [message.record for message in self.sent if isinstance(message, CaseFinished)]

    def steps(self, key: str | None) -> list[str]:
        """Return the steps that were announced of a case."""
        return [message.step for message in self.sent if isinstance(message, StepStarted) and message.key == key]

    def noting(self, owner: Any, name: str) -> list[Any]:
        """Let a method go on as it is, and note its arguments."""
        noted: list[Any] = []
        before = getattr(owner, name)
        self.monkeypatch.setattr(owner, name, lambda *given: (noted.append(given[1:]), before(*given))[1])
        return noted


@pytest.fixture
def here(opencl: Any, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(opencl, monkeypatch)


def test_the_steps_of_a_case_are_announced_before_they_are_taken(here: InProcess) -> None:
    here.monkeypatch.setattr(audit, "secrets", SimpleNamespace(randbelow=lambda most: 0))  # each timed one is compared
    record = here.run("good", verify_seed=5)["good"]
    opening = ["opening the device", "making inputs and references"]
    assert here.steps(None) == [*opening, "probing ceilings before", "probing ceilings after"]
    before, after = ["compile", "verify", "verify on inputs drawn from seed 5", "verify layouts"], ["verify again"]
    between = ["warm-up", *["sampling"] * 3, "comparing clocks"]
    assert here.steps("good") == [*before, *between, *after]
    assert record.status is Status.OK and record.verification.executions >= 6 and record.overheads.wall_s == 1e-5


def test_inputs_of_verification_are_drawn_where_no_seed_is_given(here: InProcess) -> None:
    assert here.made("good", verify_seed=5).drawn.problem.seed == 5
    here.monkeypatch.setattr(group, "secrets", SimpleNamespace(randbelow=lambda most: most - 1))
    drawn = here.made("good").drawn
    assert drawn.problem.seed == 2**31 - 1 and not drawn.timed


def test_inputs_are_exchanged_where_buffers_hold_all_of_them(here: InProcess) -> None:
    assert here.made("good", inputs={"a": 7, "b": 8}).others == {"a": None, "b": None}
    here.monkeypatch.setattr(here.cls["double"], "inputs_by_buffers", True)
    made = here.made("good", inputs={"a": 7, "b": 8}, verify_seed=5)
    assert made.others == {"a": made.drawn, "b": made.drawn} and made._redrawn == []
    here.run("good", verify_seed=5)
    assert "verify again on inputs drawn from seed 5" in here.steps("good")


def test_what_can_change_alone_is_redrawn_for_one_instance(here: InProcess) -> None:
    """And made by building the variant on it, since it has the inputs of no other session."""
    double = here.cls["double"]
    here.monkeypatch.setattr(double, "redrawn", lambda self, seed: double(self.parameters, seed))
    made = here.made("good", inputs={"a": 7, "b": 8}, verify_seed=5)
    first, second = made.others.values()
    assert first not in (None, made.drawn) and second is None and made._redrawn == [first]
    assert first.problem.seed == 5 and not first.timed
    built = here.noting(group, "build")
    assert here.run("good", verify_seed=5)["good"].status is Status.OK
    assert len({id(session) for session, *_ in built if session.problem.seed == 5}) == 2, "and on the drawn inputs"
    assert "verify again on inputs drawn from seed 5" in here.steps("good")


@pytest.mark.parametrize(("problem", "inputs", "timed"), [
    ("double", {"a": 7}, True), ("double", {"a": 7, "b": 8}, False), ("drawn", {"a": 7}, False),
])  # fmt: skip
def test_one_instance_is_timed_on_drawn_inputs_where_data_decide_no_time(
    here: InProcess, problem: str, inputs: dict[str, int], timed: bool
) -> None:
    asked = here.noting(Audit, "exchange")
    here.run("good", problem=problem, inputs=inputs)
    assert asked == [(timed,)] * len(inputs)


@pytest.mark.parametrize("cold", [True, False])
def test_ceilings_are_those_that_the_work_needs_from_that_cache(here: InProcess, cold: bool) -> None:
    asked = []
    here.monkeypatch.setattr(group, "required", lambda work, cold: asked.append(cold) or {"fp32_fma"})
    here.run("good", cold=cold)
    assert asked == [cold]


def test_sessions_are_closed_ahead_of_the_probe_behind_a_group(here: InProcess) -> None:
    closed = here.noting(Session, "close")
    double = here.cls["double"]
    here.monkeypatch.setattr(double, "redrawn", lambda self, seed: double(self.parameters, seed))
    here.run("good", inputs={"a": 7, "b": 8})
    assert len(closed) == 4, "two instances, the drawn inputs and those that are redrawn"


def test_executions_of_earlier_workers_count(here: InProcess) -> None:
    first = here.run("good")["good"]
    first.verification.executions = 100
    made = here.made("good")
    made.group.cases[0].earlier = first
    made.run()
    last = here.told[-1]
    assert last.verification.executions > 100 and set(last.timing.workers) == {0, 1}


def test_the_last_executions_take_a_quarter_of_the_time_budget(here: InProcess) -> None:
    asked = here.noting(Audit, "complete")
    here.run("good")
    assert asked == [(pytest.approx(0.01),)]


def test_of_instances_the_first_tells_the_time_of_the_host(here: InProcess) -> None:
    walls = iter([3.0, 2.0, 1.0])
    here.monkeypatch.setattr(Agreement, "check", lambda *_: Agreed(next(walls)))
    assert here.run("good", inputs={"a": 7, "b": 8, "c": 9})["good"].overheads.wall_s == 3.0


def test_any_instance_that_is_disturbed_makes_the_case_contended(here: InProcess) -> None:
    told = iter(["", "by others", ""])
    here.monkeypatch.setattr(Agreement, "check", lambda *_: Agreed(1.0, next(told)))
    record = here.run("good", inputs={"a": 7, "b": 8, "c": 9})["good"]
    assert record.status is Status.CONTENDED and record.failure.reason == "by others"


def test_what_the_host_drives_has_no_clocks_to_compare_and_all_beside_it_a_wall_time(here: InProcess) -> None:
    here.monkeypatch.setattr(Agreement, "check", lambda self, execution, library: Agreed(float(library)))
    good, driven = here.run("good", "driven_peer", problem="steady").values()
    assert (good.timing.rank, driven.timing.rank) == ("span", "wall")
    assert good.overheads.wall_s == 0.0 and driven.overheads.wall_s is None
    assert len(good.timing.wall) == len(driven.timing.wall) == 3
    alone = here.run("good")["good"]
    assert alone.timing.wall == []


def test_errors_say_what_failed_and_keep_what_is_known_of_it(here: InProcess) -> None:
    ended = here.run("no_compile", "raises", "memory", "good", verify_seed=5)
    status = {name: record.status for name, record in ended.items()}
    assert status == {
        "no_compile": Status.COMPILE_ERROR, "raises": Status.CRASHED, "memory": Status.OUT_OF_MEMORY,
        "good": Status.OK,
    }  # fmt: skip
    assert ended["raises"].failure.reason == "planted: raised in launch"
    assert "Traceback" in ended["raises"].failure.log
    assert "Traceback" not in ended["no_compile"].failure.log and ended["no_compile"].failure.log
    assert all(ended[name].timing is None for name in status if name != "good")


def test_what_fails_when_samples_are_complete_ends_its_case_alone(here: InProcess) -> None:
    complete = Audit.complete

    def fails(self: Audit, seconds: float) -> None:
        if self.built.variant.name == "good":
            raise MemoryError("planted: no memory to compare in")
        complete(self, seconds)

    here.monkeypatch.setattr(Audit, "complete", fails)
    ended = here.run("good", "also_good")
    assert ended["good"].failure.reason == "planted: no memory to compare in" and ended["good"].timing is None
    assert ended["also_good"].status is Status.OK


def test_an_error_without_a_text_is_told_by_its_kind(here: InProcess) -> None:
    def fails(self: Any) -> None:
        raise ZeroDivisionError

    here.monkeypatch.setattr(here.resources.workload("faulty").variants["double"]["also_good"], "fault", fails)
    assert here.run("also_good")["also_good"].failure.reason == "ZeroDivisionError"


def test_an_error_on_drawn_inputs_names_their_seed(here: InProcess) -> None:
    ended = here.run("raises_elsewhere", problem="drawn", verify_seed=5)
    reason = ended["raises_elsewhere"].failure.reason
    assert reason == "planted: not these inputs, verify on inputs drawn from seed 5"


@pytest.mark.parametrize(("name", "lost"), [("raises", True), ("no_compile", False), ("memory", False)])
def test_a_device_that_does_not_survive_a_crash_ends_the_worker(here: InProcess, name: str, lost: bool) -> None:
    failed: list[Any] = []
    send, finish = here.resources.send, type(here.opencl).finish

    def finishes(device: Any) -> None:
        if failed:
            raise OSError("planted: the context is lost")
        finish(device)

    here.monkeypatch.setattr(type(here.opencl), "finish", finishes)
    made = here.made(name)
    made.resources.send = lambda message: (send(message), failed.extend([1] * isinstance(message, CaseFinished)))
    if lost:
        with pytest.raises(DeviceLostError):
            made.run()
    else:
        made.run()
    assert here.told[0].key == name and here.told[0].failure


ENERGY = Energy(
    joules=Interval(value=2.0, low=1.9, high=2.1), domain="d", seconds=5.0, executions=9, loops=5, update_s=0.01,
    idle_watts=1.0,
)  # fmt: skip


def measuring(here: InProcess, *outcomes: Any) -> list[str]:
    """Let energy be these in turn, errors raised; return what will have been measured."""
    left, measured = iter(outcomes), []

    class Meter:
        def __init__(self, device: Any) -> None: ...

        def of(self, live_case: Any, announce: Callable[[], None]) -> Energy:
            announce()
            measured.append(live_case.case.key)
            outcome = next(left)
            if callable(outcome):
                return outcome(live_case)
            return outcome

    here.monkeypatch.setattr(group, "GroupEnergy", Meter)
    return measured


def failing(live_case: Any) -> Energy:
    raise RuntimeError("planted: tired")


def turning_wrong(live_case: Any) -> Energy:
    live_case.record.verification = live_case.record.verification.model_copy(update={"passed": False})
    return ENERGY


def test_energy_is_measured_last_and_what_fails_there_has_no_result(here: InProcess) -> None:
    measured = measuring(here, ENERGY, failing, turning_wrong, ENERGY)
    here.run("good", "also_good", "wrong_late", energy=True)
    assert here.steps(None)[-2:] == ["measuring power at rest", "probing ceilings after"]
    assert measured == ["good", "also_good"], "wrong_late was wrong before"
    here.sent.clear()
    measured = measuring(here, failing, turning_wrong, ENERGY)
    names = ("wrong_when_tired", "raises_when_tired", "good")
    ended = here.run(*names, problem="steady", energy=True)
    assert measured == list(names) and [here.steps(name)[-1] for name in names] == ["energy"] * 3
    assert ended["wrong_when_tired"].status is Status.CRASHED and ended["raises_when_tired"].status is Status.WRONG
    assert ended["good"].status is Status.OK and ended["good"].energy == ENERGY
    assert all(ended[name].timing is None and ended[name].energy is None for name in names[:2])
    assert [record.key for record in here.told] == [*names, *names]
    assert all(record.timing and record.energy == UNMEASURED for record in here.told[:3]), "samples come first"


def test_energy_is_not_asked_of_groups_without_it_nor_of_what_is_known(here: InProcess) -> None:
    measured = measuring(here, ENERGY)
    first = here.run("good")["good"]
    assert first.energy is None and measured == []
    made = here.made("good", energy=True)
    made.group.cases[0].earlier = first
    made.run()
    assert measured == ["good"] and here.told[-1].energy == ENERGY
    here.sent.clear()
    again = here.made("good", energy=True)
    again.group.cases[0].earlier = first.model_copy(update={"energy": ENERGY})
    again.run()
    assert measured == ["good"] and here.told[-1].energy == ENERGY
    assert "measuring power at rest" not in here.steps(None)


def test_what_is_impossible_has_no_energy(opencl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def finished(self: GroupRun, live: Any) -> None:
        live.record.status = Status.IMPOSSIBLE

    here = InProcess(opencl, monkeypatch)
    measured = measuring(here)
    monkeypatch.setattr(GroupRun, "_judge", finished)
    ended = here.run("good", energy=True)
    assert measured == [] and ended["good"].status is Status.IMPOSSIBLE and ended["good"].energy is None


def test_a_wrong_multiplicity_is_loud(selector: str, perfport: Any, known: Known, tmp_path: Path) -> None:
    file = experiment(tmp_path, {"problem": "roundabout", "measurement": {"cache": "cold"}})
    perfport(*command(file, selector, tmp_path / "out"), env=known(1.0), cwd=tmp_path)
    (record,) = Run(tmp_path / "out").records
    assert record.status is Status.IMPOSSIBLE and record.problem_bound and record.problem_bound.binding == "fp32_fma"
    assert record.work and record.work.float_units == {"fp32_fma": 1e12}


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
