"""Sweeps, probes, and ceilings raised by a probe."""

from __future__ import annotations

import pytest
from ceilings_bench import SmallBench, made

from perfport.backend import OpenDevice
from perfport.measure.ceilings import (
    KINDS,
    Ceilings,
    kind,
    probe_again,
    raise_to,
    sweep,
    sweeping,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import label


def test_a_sweep_of_a_small_set(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "Bench", SmallBench)
    monkeypatch.setattr(kind, "SAMPLE_S", 0.0)
    for one in {type(one) for one in KINDS.values()}:
        plain = one.shapes
        monkeypatch.setattr(one, "shapes", lambda self, bench, full, plain=plain: list(plain(self, bench, full))[:2])
    told: list[str] = []
    before = device.allocated
    found = sweep(device, progress=told.append)
    assert device.allocated == before, "memory is given back"
    assert set(found.entries).isdisjoint(found.absent) and {*found.entries, *found.absent} == set(KINDS)
    assert told == [name for name in KINDS if set(KINDS[name].needs) <= set(device.info.capabilities)]
    may_lack = {"l1_read", "l2_read", "l3_read", "gather_l1", "gather_l2", "tf32_mma", "bf16_mma", "int8_mma"}
    assert set(KINDS) - may_lack - {"grid_barrier"} <= set(found.entries)
    assert all(found.absent.values()), "every absent ceiling has its reason"
    for name, one in found.entries.items():
        assert 0 < one.low <= one.value <= one.high and one.unit == KINDS[name].unit
        assert 1 <= len(one.sweep) <= 2 and one.samples == 15 and 0 < one.spread <= 1
        assert label(one.shape) in one.sweep and set(one.clocks) == {"before", "after"}
    assert Ceilings.model_validate_json(found.model_dump_json()) == found
    names = ["dram_read", "fp32_fma", "launch_latency", "of another device"]
    again = probe_again(device, found, names)
    assert set(again.entries) == set(names[:3]) and device.allocated == before
    for name, one in again.entries.items():
        assert one.shape == found.entries[name].shape and one.samples == 5 and 0 < one.low <= one.value


def test_a_probe_of_nothing_needs_no_memory(device: OpenDevice) -> None:
    known = Ceilings(device=device.info.id, driver="", date="", entries={})
    before = device.allocated
    assert probe_again(device, known, ["dram_read"]).entries == {} and device.allocated == before


def test_a_probe_raises_and_never_lowers() -> None:
    first = {"dram_read": made(100.0, sweep={"a": 1.0}), "fp32_fma": made(50.0)}
    known = Ceilings(device="d", driver="", date="then", entries=first)
    lower = known.model_copy(update={"date": "now", "entries": {"dram_read": made(80.0)}})
    assert raise_to(known, lower) is known
    higher = known.model_copy(update={"date": "now", "entries": {"dram_read": made(120.0)}})
    raised = raise_to(known, higher)
    assert raised.entries["dram_read"].value == 120.0 and raised.entries["dram_read"].sweep == {"a": 1.0}
    assert raised.entries["fp32_fma"] == first["fp32_fma"] and raised.date == "now"


def test_a_ceiling_above_theory_is_flagged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = list(KINDS["fp32_fma"].shapes(bench, False))[:1]
    monkeypatch.setattr(type(KINDS["fp32_fma"]), "shapes", lambda self, bench, full: shapes)
    for limit, above in ((1.0, True), (1e20, False), (None, False)):
        monkeypatch.setattr(sweeping, "theory", lambda name, info, limit=limit: (limit, "invented"))
        found, _ = sweeping._measure(bench, KINDS["fp32_fma"], False)
        assert found is not None and found.above_theory == above and found.theory == limit
