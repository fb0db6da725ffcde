"""The worker's judgement of a time under ceilings, on ceilings that are made up."""

from __future__ import annotations

from typing import Any

import pytest
import report_data as data

from perfport.measure.ceilings import Ceilings
from perfport.measure.ceilings.entry import Ceiling
from perfport.measure.roofline import measured_ceilings
from perfport.model.errors import DeviceMemoryError
from perfport.model.record import Record, Status
from perfport.model.work import Work
from perfport.run import worker
from perfport.run.worker import GroupRun, Live
from perfport.workload import Metric


def ceilings(rate: float) -> Ceilings:
    entry = Ceiling(value=rate, low=0.99 * rate, high=1.01 * rate, unit="B/s", samples=9)
    return Ceilings(device="d", driver="1", date="", entries={"dram_read": entry, "dram_copy": entry})


class _Problem:
    metric = Metric("m", "GB/s", "higher", "a rate")

    def metric_value(self, seconds: float) -> float:
        return 1 / seconds


class _Variant:
    unit, fewer_operations = None, False


def placed(monkeypatch: pytest.MonkeyPatch, probe: Ceilings | None) -> tuple[Record, list[Any], list[Any]]:
    """A case of 1 GB in 20 ms (50 GB/s), where the sweep gave 10 GB/s; what was sent and stored."""
    stored: list[Any] = []
    sent: list[Any] = []
    monkeypatch.setattr(worker, "store", lambda info, found: stored.append(found))
    run = GroupRun.__new__(GroupRun)
    run.send, run.known, run.datasheet = sent.append, ceilings(1e10), {}
    run.ceilings = measured_ceilings(run.known, run.known)
    run.problems = {"a": _Problem()}  # type: ignore[dict-item]
    run.workload = type("W", (), {"problem": lambda self, name: _Problem})()  # type: ignore[assignment]
    run.group = type("G", (), {"problem": "p"})()  # type: ignore[assignment]
    run.device = type("D", (), {"info": type("I", (), {"id": "d", "kind": "gpu"})()})()  # type: ignore[assignment]

    def again(when: str) -> Ceilings:
        if probe is None:
            raise DeviceMemoryError("no room")
        return probe

    monkeypatch.setattr(run, "_probe", again)
    record = data.record("a", 0.02, noise=1e-3)
    record.status, record.work, record.traffic = Status.OK, Work(read_bytes=1e9), None
    assert record.timing
    record.timing.cache = "cold"
    case: Any = type("C", (), {"key": record.key})()
    run._place(Live(case, _Variant, record), record.timing)  # type: ignore[arg-type]
    return record, sent, stored


def test_a_sweep_in_a_bad_moment_makes_nothing_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    record, sent, stored = placed(monkeypatch, ceilings(8e10))
    assert record.status is Status.OK and record.problem_bound
    assert record.problem_bound.share.value == pytest.approx(5 / 8, rel=0.01)
    assert [found.entries["dram_read"].value for found in stored] == [8e10], "the next run knows it, too"
    assert any(message[0] == "ceilings" for message in sent)


@pytest.mark.parametrize("probe", [ceilings(1e10), None])
def test_what_no_probe_explains_is_impossible(monkeypatch: pytest.MonkeyPatch, probe: Ceilings | None) -> None:
    record, _, stored = placed(monkeypatch, probe)
    assert record.status is Status.IMPOSSIBLE and record.failure and not stored
    assert "the declared work, the clock or the ceiling is wrong" in record.failure.reason


def test_several_devices_are_not_held_to_the_ceilings_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "record", _by_four(data.record))
    record, _, _ = placed(monkeypatch, ceilings(1e10))
    assert record.identity.device_count == 4
    assert record.status is Status.OK and record.problem_bound is None and record.ceilings


def _by_four(make: Any) -> Any:
    def made(*args: Any, **keys: Any) -> Record:
        record: Record = make(*args, **keys)
        identity = record.identity.model_copy(update={"tunables": {"devices": 4}})
        return record.model_copy(update={"identity": identity, "problem_bound": None})

    return made
