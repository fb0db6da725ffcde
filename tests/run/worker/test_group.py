"""One group: instances sampled in turn, verification on inputs of its own, times held to bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import pytest
from faulty_runs import FAULTY, command, experiment

from perfport import backend
from perfport.measure.agreement import Agreed, Agreement
from perfport.measure.ceilings import Ceiling, Ceilings, store, sweep
from perfport.measure.sampling import Targets
from perfport.model.record import Identity, Status
from perfport.run.cases import Case, Group
from perfport.run.messages import CaseFinished, CeilingsInUse
from perfport.run.worker import live, probing, stored
from perfport.run.worker.group import GroupRun
from perfport.run.worker.probing import ATTEMPTS
from perfport.run.worker.resources import Resources
from perfport.store.results import Run

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
