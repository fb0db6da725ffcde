"""Energy of a group: measured by workers after all samples, with counters of files; a bad case stops no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_powercap import RANGE, consuming, server
from faulty_runs import command, experiment

from perfport.machine.energy_counter import CounterError
from perfport.model.record import Energy, Interval, Record, Status
from perfport.run.worker import energy as module
from perfport.run.worker.energy import UNMEASURED, GroupEnergy
from perfport.store.results import Run

pytestmark = pytest.mark.any_device

WATTS = 30.0
ENERGY = Energy(
    joules=Interval(value=2.0, low=1.9, high=2.1), domain="d", seconds=5.0, executions=9, loops=5, update_s=0.01,
    idle_watts=1.0,
)  # fmt: skip


def on_files(
    selector: str, perfport: Any, environment: dict[str, str], folder: Path, *variants: str, **keys: Any
) -> tuple[dict[str, Record], list[Record], Any]:
    """Run variants with energy, two packages consuming `WATTS` each; the last records, all of them, and the outcome."""
    measurement = {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm", "energy": True}
    study = {"problem": "steady", "variants": list(variants)}
    file = experiment(folder, study, measurement=measurement, **{"timeout": 30, **keys})
    packages = server(folder / "powercap", RANGE - 10_000_000)
    where = {**os.environ, **environment, "FAULTY_POWERCAP": str(folder / "powercap")}
    with consuming(packages, WATTS, RANGE - 10_000_000):
        done = perfport(*command(file, selector, folder / "out"), env=where, cwd=folder)
    run = Run(folder / "out")
    stored = [Record.model_validate_json(line) for line in (folder / "out" / "records.jsonl").read_text().splitlines()]
    return {record.identity.variant: record for record in run.records}, stored, done


def test_each_case_has_its_energy_and_timing_is_stored_before(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    names = ("good", "driven_peer", "wrong_when_tired", "raises_when_tired")
    last, stored, done = on_files(selector, perfport, no_ceilings, tmp_path, *names)
    for name in names[:2]:
        record = last[name]
        assert record.status.measured and record.energy, done.stderr
        if record.energy.absent:  # other work on this machine
            assert "other processes used" in record.energy.absent
            continue
        assert record.energy.watts == pytest.approx(2 * WATTS, rel=0.5)
        assert record.energy.idle_watts == pytest.approx(2 * WATTS, rel=0.5)
        assert record.energy.domain == "processor packages (RAPL: package-0, package-1)"
    statuses = {Status.WRONG: "wrong_when_tired", Status.CRASHED: "raises_when_tired"}
    for status, name in statuses.items():
        assert last[name].status is status
        assert last[name].timing is None and last[name].metric is None and last[name].energy is None
    reason = last["raises_when_tired"].failure
    assert reason and reason.reason == "planted: tired"
    first = stored[: len(names)]
    assert sorted(record.identity.variant for record in first) == sorted(names), "all samples come first"
    assert all(record.timing and record.energy and record.energy == UNMEASURED for record in first)


def test_a_worker_that_dies_in_a_loop_takes_no_timing_along(
    selector: str, perfport: Any, no_ceilings: Any, tmp_path: Path
) -> None:
    """And what one worker has measured, the next one keeps."""
    names = ("good", "dies_when_tired")
    last, stored, done = on_files(selector, perfport, no_ceilings, tmp_path, *names, workers=2)
    assert last["good"].status.measured and last["dies_when_tired"].status.measured, done.stderr
    assert last["dies_when_tired"].energy == UNMEASURED and last["dies_when_tired"].timing
    assert last["good"].energy and last["good"].energy != UNMEASURED
    assert last["good"].timing and set(last["good"].timing.workers) == {0, 1}
    measured = {record.energy.model_dump_json() for record in stored if record.energy and record.energy.joules}
    assert len(measured) <= 1, "none where other work disturbs both"
    assert done.returncode == 0


def case(**change: Any) -> Any:
    """What `GroupEnergy` asks of a case: two instances, whose outputs are poisoned and compared."""
    said: list[str] = []
    built = SimpleNamespace(poison=lambda scratch: said.append("poisoned"), launch=lambda: said.append("launched"))
    audit = SimpleNamespace(compare=lambda: said.append("compared"))
    identity = SimpleNamespace(device_count=change.get("devices", 1))
    return SimpleNamespace(
        said=said, record=SimpleNamespace(identity=identity), cls=SimpleNamespace(host=change.get("host", False)),
        instances={"a": built, "b": built}, audits={"a": audit, "b": audit},
    )  # fmt: skip


def group(monkeypatch: pytest.MonkeyPatch, energy: Callable[..., Energy], kind: str = "gpu") -> GroupEnergy:
    """A group on a device whose meter measures what ``energy`` returns."""
    monkeypatch.setattr(module, "open_counter", lambda info: None)
    monkeypatch.setattr(module, "Meter", lambda counter: SimpleNamespace(energy=energy))
    device = SimpleNamespace(info=SimpleNamespace(kind=kind), finish=lambda: None, clocks=dict)
    return GroupEnergy(cast(Any, device))


def executed(loads: list[Any]) -> Energy:
    for load in loads:
        load.run(0.0, lambda: 0.0)
    return ENERGY


def test_outputs_are_poisoned_before_and_compared_after_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    live = case()
    assert group(monkeypatch, executed).of(live, lambda: None) == ENERGY
    assert live.said == ["poisoned"] * 2 + ["launched"] * 2 + ["compared"] * 2


@pytest.mark.parametrize("executed_first", [0, 1])
def test_a_counter_that_fails_makes_energy_absent_and_hides_no_wrong_output(
    monkeypatch: pytest.MonkeyPatch, executed_first: int
) -> None:
    """What was executed before is compared; what was not still holds poison."""

    def fails(loads: list[Any]) -> Energy:
        executed(loads[:executed_first])
        raise CounterError("the counter went back by 3 J")

    live = case()
    monkeypatch.setattr(module, "Watch", lambda device: SimpleNamespace(reason=lambda: "other processes used 40%"))
    found = group(monkeypatch, fails).of(live, lambda: None)
    assert found == Energy(absent="the counter went back by 3 J"), "which others' work does not hide"
    assert live.said == ["poisoned"] * 2 + ["launched", "compared"] * executed_first


def test_no_counter_or_not_of_what_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = group(monkeypatch, executed)
    several = measured.of(case(devices=2), lambda: None)
    assert several.absent and several.absent.startswith("several devices")
    beside = measured.of(case(host=True), lambda: None)
    assert beside.absent and "works on the host" in beside.absent
    assert group(monkeypatch, executed, "cpu").of(case(host=True), lambda: None) == ENERGY

    def no_counter(info: Any) -> None:
        raise CounterError("no counter here")

    monkeypatch.setattr(module, "open_counter", no_counter)
    without = GroupEnergy(cast(Any, SimpleNamespace(info=SimpleNamespace(kind="gpu"))))
    live = case()
    assert without.of(live, lambda: None) == Energy(absent="no counter here") and live.said == []


def test_energy_beside_foreign_load_is_that_of_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Watch", lambda device: SimpleNamespace(reason=lambda: "other processes used 40%"))
    live = case()
    assert group(monkeypatch, executed).of(live, lambda: None) == Energy(absent="other processes used 40%")
    assert live.said[-1] == "compared", "and outputs are compared all the same"
