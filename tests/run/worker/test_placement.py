"""Judgement of a time under ceilings, on ceilings that are made up."""

from __future__ import annotations

from typing import Any, cast

import pytest
import report_data as data

from perfport.measure.ceilings import Ceilings
from perfport.measure.ceilings.entry import Ceiling
from perfport.measure.roofline import measured_ceilings
from perfport.model.errors import DeviceMemoryError
from perfport.model.record import Failure, Record, Status
from perfport.model.work import Work
from perfport.run.worker import placement
from perfport.run.worker.placement import Placement
from perfport.workload import Metric


def ceilings(rate: float, spread: float = 0.01) -> Ceilings:
    """Ceilings of DRAM alone."""
    entry = Ceiling(value=rate, low=(1 - spread) * rate, high=(1 + spread) * rate, unit="B/s", samples=9)
    return Ceilings(device="d", driver="1", date="", entries={"dram_read": entry, "dram_copy": entry})


class Problem:
    """A metric of 1 / time, times a factor that differs by instance."""

    metric = Metric("m", "GB/s", "higher", "a rate")

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def metric_value(self, seconds: float) -> float:
        return self.factor / seconds


class Probed:
    """Ceilings of 10 GB/s, and what a probe of them gives."""

    def __init__(self, probe: Ceilings | None, disturbed: str = "") -> None:
        self.values = measured_ceilings(ceilings(1e10), ceilings(1e10))
        self.given, self.disturbed, self.anew = probe, disturbed, ""
        self.probes: list[str] = []

    def disturbed_for(self, seconds: float) -> str:
        return self.disturbed

    def probe(self, when: str) -> Ceilings:
        self.probes.append(when)
        if self.given is None:
            raise DeviceMemoryError("no room")
        return self.given

    def take(self, probe: Ceilings) -> None:
        self.values = measured_ceilings(probe, probe)


def read(seconds: float, high: float | None = None) -> Record:
    """A record of one that reads 1 GB, whose time's interval may reach further than its samples do."""
    record = data.record("a", seconds, noise=1e-3, ceilings=None, cache="cold")
    record.work, record.traffic = Work(read_bytes=1e9), None
    assert record.timing
    for summary in record.timing.summary.values():
        summary.ci_high = high or summary.ci_high
    return record


def placed(
    probe: Ceilings | None, seconds: float = 0.02, devices: int = 1, *, factors: tuple[float, ...] = (1.0,),
    disturbed: str = "", high: float | None = None,
) -> Any:  # fmt: skip
    """Place a case that moves 1 GB; returns the record and the ceilings."""
    record = read(seconds, high)
    record.status = Status.OK
    if devices > 1:
        record.identity.tunables = {"devices": devices}
    return record, place(record, probe, disturbed, factors)


def placement_of(known: Probed, factors: tuple[float, ...] = (1.0,), kind: str = "gpu") -> Placement:
    """A placement of cases on a device that is made up."""
    info = type("I", (), {"name": "made up", "kind": kind})()
    device: Any = type("D", (), {"info": info})()
    return Placement(device, cast(Any, [Problem(factor) for factor in factors]), cast(Any, known))


def place(
    record: Record, probe: Ceilings | None, disturbed: str = "", factors: tuple[float, ...] = (1.0,), kind: str = "gpu"
) -> Probed:
    """Place a record; returns the ceilings."""
    known = Probed(probe, disturbed)
    placement_of(known, factors, kind).place(record)
    return known


def test_a_slow_enough_time_is_placed_and_nothing_is_probed() -> None:
    record, known = placed(None, seconds=0.2)
    assert record.status is Status.OK and record.problem_bound.share.value == pytest.approx(0.5, rel=0.01)
    assert not known.probes and record.ceilings == known.values
    assert record.metric.low <= record.metric.value == pytest.approx(5, rel=0.01) and record.metric.unit == "GB/s"


def test_a_sweep_in_a_bad_moment_makes_nothing_impossible() -> None:
    record, known = placed(ceilings(8e10))
    assert record.status is Status.OK and known.probes == ["again"]
    assert record.problem_bound.share.value == pytest.approx(5 / 8, rel=0.01)


@pytest.mark.parametrize("probe", [ceilings(1e10), None])
def test_what_no_probe_explains_is_impossible(probe: Ceilings | None) -> None:
    record, _ = placed(probe)
    assert record.status is Status.IMPOSSIBLE
    assert "the declared work, the clock or the ceiling is wrong" in record.failure.reason


def test_what_is_far_below_the_bound_but_for_an_outlier_is_no_result() -> None:
    """An interval that one slow sample makes wide once let 234 % of the bound pass as ``ok``, and be ranked."""
    record, known = placed(ceilings(1e10), 0.05, high=0.15)
    assert record.status is Status.CONTENDED and known.probes == ["again"] and record.problem_bound is None
    assert "of the dram bound), but samples reach 0.15 s, and the ceilings' intervals a" in record.failure.reason


@pytest.mark.parametrize(("share", "status"), [(1.17, Status.CONTENDED), (1.06, Status.OK)])
def test_what_is_far_below_the_bound_but_for_an_unsteady_ceiling_is_no_result(share: float, status: Status) -> None:
    """DRAM whose rate kept changing let 117 % of the bound pass as ``ok``; a little more is within what it allows."""
    record, known = placed(ceilings(1e10, spread=0.16), 0.1 / share, high=1.02 * 0.1 / share)
    assert record.status is status
    assert known.probes == ["again"] or status is Status.OK


def test_a_little_above_the_bound_is_within_what_intervals_allow() -> None:
    record, _ = placed(ceilings(1e10), 0.095, high=0.11)
    assert record.status is Status.OK and record.problem_bound.stale


def test_what_others_disturbed_keeps_that_reason_when_it_is_scattered() -> None:
    record = read(0.05, high=0.15)
    record.status, record.failure = Status.CONTENDED, Failure(reason="others")
    place(record, ceilings(1e10))
    assert record.status is Status.CONTENDED and record.failure.reason == "others"


def test_several_devices_are_not_held_to_the_ceilings_of_one() -> None:
    record: Record
    record, known = placed(None, devices=4)
    assert record.status is Status.OK and record.problem_bound is None and record.ceilings == known.values


def test_the_metric_of_several_instances_is_their_geometric_mean() -> None:
    (one, _), (several, _) = placed(None, 0.2), placed(None, 0.2, factors=(1.0, 4.0))
    assert several.metric.value == pytest.approx(2 * one.metric.value)


def test_on_cpus_alone_compilers_merge_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    monkeypatch.setattr(placement, "place", lambda record, datasheet, *, merged: told.append(merged))
    for kind in ("cpu", "gpu", "accelerator"):
        place(read(0.2), None, kind=kind)
    assert told == [True, False, False]


@pytest.mark.parametrize(("disturbed", "status"), [("", Status.OK), ("moved", Status.CONTENDED)])
def test_only_what_was_disturbed_is_contended(disturbed: str, status: Status) -> None:
    record = read(0.2)
    record.status = Status.OK
    assert placement_of(Probed(None, disturbed)).contend(record) is bool(disturbed) and record.status is status


@pytest.mark.parametrize("devices", [1, 2])
def test_a_probe_that_stayed_disturbed_makes_a_case_contended(devices: int) -> None:
    record, _ = placed(None, 0.2, devices, disturbed="moved")
    assert record.status is Status.CONTENDED and record.failure.reason == "moved"
    assert record.metric and record.problem_bound is None, "nobody knows the ceilings"


def test_what_is_impossible_stays_so_beside_a_disturbed_probe() -> None:
    record, _ = placed(ceilings(0.43e10), disturbed="moved")
    assert record.status is Status.IMPOSSIBLE and "the declared work" in record.failure.reason


def test_a_record_that_is_not_ok_keeps_its_reason() -> None:
    record, known = placed(None, 0.2)
    info = type("I", (), {"name": "made up", "kind": "gpu"})()
    known.disturbed = "moved"
    placement = Placement(cast(Any, type("D", (), {"info": info})()), cast(Any, [Problem()]), cast(Any, known))
    record.status = Status.WRONG
    assert not placement.contend(record) and record.status is Status.WRONG
    assert not placement.contend(record.model_copy(update={"timing": None})), "what is wrong has no time"
    record.status = Status.OK
    assert placement.contend(record) and record.status is Status.CONTENDED
