"""Sweeps, probes, and ceilings raised by a probe."""

from __future__ import annotations

from typing import Any

import pytest
from ceilings_bench import SmallBench, made

from perfport.backend import OpenDevice
from perfport.measure.ceilings import (
    KINDS,
    Ceiling,
    Ceilings,
    Renewal,
    kind,
    probe_again,
    raise_to,
    renewed,
    sweep,
    sweeping,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import NoCeilingError, label
from perfport.measure.roofline import moved


def test_a_sweep_of_a_small_set(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "Bench", SmallBench)
    monkeypatch.setattr(kind, "SAMPLE_S", 0.0)
    for one in {type(one) for one in KINDS.values()}:
        plain = one.shapes
        monkeypatch.setattr(one, "shapes", lambda self, bench, full, plain=plain: list(plain(self, bench, full))[:2])
    told: list[str] = []
    monkeypatch.setattr(sweeping, "wait_until_quiet", lambda device, limit: "")
    monkeypatch.setattr(sweeping.Watch, "reason", lambda self: "")
    before = device.allocated
    found = sweep(device, progress=told.append)
    assert device.allocated == before, "memory is given back"
    assert set(found.entries).isdisjoint(found.absent) and {*found.entries, *found.absent} == set(KINDS)
    measured = [name for name in KINDS if set(KINDS[name].needs) <= set(device.info.capabilities)]
    assert told == [sweeping.WAITING, *(f"measuring ceiling {name}" for name in measured)]
    assert not found.contended
    may_lack = {"l1_read", "l2_read", "l3_read", "gather_l1", "gather_l2", "tf32_mma", "bf16_mma", "int8_mma"}
    assert set(KINDS) - may_lack - {"grid_barrier"} <= set(found.entries)
    assert all(found.absent.values()), "every absent ceiling has its reason"
    for name, one in found.entries.items():
        rounded = 1e-12 * one.value  # the median of equal samples is a mean, and so may be its interval's end
        assert 0 < one.low <= one.value + rounded and one.value <= one.high + rounded and one.unit == KINDS[name].unit
        assert 1 <= len(one.sweep) <= 2 and one.samples == 15 and 0 < one.spread <= 1
        assert label(one.shape) in one.sweep and set(one.clocks) == {"before", "after"}
    assert Ceilings.model_validate_json(found.model_dump_json()) == found
    names = ["dram_read", "fp32_fma", "launch_latency", "of another device"]
    again = probe_again(device, found, names)
    assert set(again.entries) == set(names[:3]) and device.allocated == before
    for name, one in again.entries.items():
        assert one.shape == found.entries[name].shape and one.samples == 5 and 0 < one.low <= one.value * (1 + 1e-12)


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
    assert raised.entries["fp32_fma"] == first["fp32_fma"] and raised.date == "then", "it is as old as its sweep"


@pytest.mark.parametrize(
    ("direction", "stored", "probe", "raised"),
    [
        ("higher", (80, 71, 97), (94, 91, 97), True),
        ("higher", (80, 71, 97), (94, 87, 97), False),
        ("higher", (80, 71, 97), (87, 86, 88), False),
        ("lower", (80, 62, 90), (65, 63, 67), True),
        ("lower", (80, 62, 90), (65, 63, 73), False),
        ("lower", (80, 62, 90), (73, 72.5, 74), False),
    ],
)
def test_the_wide_interval_of_a_disturbed_sweep_excuses_no_probe(
    direction: Any, stored: tuple[float, ...], probe: tuple[float, ...], raised: bool
) -> None:
    """All probes of a quiet device lay in it, 20 % above its value: every group of a run was contended."""
    first, second = (
        Ceilings(device="d", driver="", date="then", entries={"int32_logic": Ceiling(
            **dict(zip(("value", "low", "high"), values, strict=True)), unit="op/s", direction=direction
        )})
        for values in (stored, probe)
    )  # fmt: skip
    found = raise_to(first, second)
    assert found.entries["int32_logic"].value == (probe if raised else stored)[0]
    assert not (raised and moved(found, second))


@pytest.mark.parametrize(("value", "raised"), [(2e-6, True), (4e-6, False), (3e-6, False)])
def test_where_lower_is_better_a_probe_that_gives_less_corrects(value: float, raised: bool) -> None:
    first = {"grid_barrier": made(3e-6, unit="s", direction="lower")}
    known = Ceilings(device="d", driver="", date="then", entries=first)
    now = known.model_copy(update={"entries": {"grid_barrier": made(value, unit="s", direction="lower")}})
    assert raise_to(known, now).entries["grid_barrier"].value == (value if raised else 3e-6)


def test_a_probe_that_is_no_ceiling_says_why(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(self: object, bench: Bench, shape: object, count: int) -> list[float]:
        raise NoCeilingError("1 of 2 work-groups gave up")

    monkeypatch.setattr(type(KINDS["grid_barrier"]), "samples", give_up)
    entries = {"grid_barrier": made(3e-6, unit="s", direction="lower")}
    known = Ceilings(device=device.info.id, driver="", date="", entries=entries, absent={"l1_read": "no plateau"})
    again = probe_again(device, known)
    assert not again.entries and again.absent == {"grid_barrier": "1 of 2 work-groups gave up"}


class Quiet:
    """Foreign load while so many ceilings are measured, and looks that wait for its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: set[str], ends: bool) -> None:
        self.measured: list[str] = []
        self.tried: list[Any] = []
        self.waits = 0
        self.ends = ends
        self.busy = busy
        bench = type("B", (), {"close": lambda self: None, "nbytes": 1, "info": INFO, "device": None})
        monkeypatch.setattr(sweeping, "Bench", lambda device: bench())
        monkeypatch.setattr(sweeping, "Watch", lambda device: self)
        monkeypatch.setattr(sweeping, "_measure", self._measure)
        monkeypatch.setattr(sweeping, "wait_until_quiet", self._wait)
        monkeypatch.setattr(sweeping.time, "sleep", lambda seconds: None)

    def elapsed(self) -> float:
        """Each ceiling but the launches takes long enough to be judged."""
        return 0.1 if self.measured[-1] == "launch_latency" else 1.0

    def reason(self) -> str:
        return "others used 50%" if self.measured[-1] in self.busy else ""

    def _wait(self, device: object, limit: float) -> str:
        assert limit == sweeping.WAIT_S
        self.waits += 1
        if self.ends and self.waits > 1:
            self.busy = set()
        return "others used 50%" if self.busy else ""

    def _measure(self, bench: object, kind: Any, full: bool, before: Ceiling | None) -> tuple[Ceiling | None, str]:
        self.measured.append(kind.name)
        self.tried.append(before and before.shape)
        return (None, "no plateau") if kind.name == "l1_read" else (made(float(len(self.measured))), "")


INFO: Any = type("I", (), {"id": "d", "driver": "1", "capabilities": ["mma"]})()
DEVICE: Any = type("D", (), {"info": INFO})()
NAMES = ("dram_read", "l1_read", "fp32_fma", "launch_latency", "grid_barrier")


def test_a_sweep_beside_foreign_load_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load outlasts both waits: the ceilings beside it are marked, and those that are not there, too."""
    quiet = Quiet(monkeypatch, {"l1_read", "grid_barrier"}, ends=False)
    swept = sweep(DEVICE, names=NAMES)
    assert quiet.measured == [*NAMES] and quiet.waits == 2, "not measured again while the load lasts"
    reason = "others used 50%"
    assert swept.contended == dict.fromkeys(("l1_read", "launch_latency", "grid_barrier"), reason), (
        "launches are too short to be judged alone"
    )
    assert swept.entries.keys() == {*NAMES} - {"l1_read"} and swept.absent == {"l1_read": "no plateau"}


def test_what_a_load_disturbed_is_measured_again_when_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = Quiet(monkeypatch, {"fp32_fma"}, ends=True)
    swept = sweep(DEVICE, names=NAMES)
    assert quiet.measured == [*NAMES, "fp32_fma"] and not swept.contended
    assert swept.entries["fp32_fma"].value == 6.0


def test_single_ceilings_are_swept_beside_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = Quiet(monkeypatch, set(), ends=True)
    known = {name: made(100.0, shape={"of": name}) for name in ("dram_read", "fp32_fma")}
    swept = sweep(DEVICE, names=["fp32_fma"], known=known)
    assert quiet.measured == ["fp32_fma"] and quiet.tried == [{"of": "fp32_fma"}], "what won before is tried too"
    assert swept.entries == {"fp32_fma": made(1.0)}


def test_the_shape_that_won_before_is_tried_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "SAMPLE_S", 0.0)
    shapes = list(KINDS["fp32_fma"].shapes(bench, False))[:2]
    monkeypatch.setattr(type(KINDS["fp32_fma"]), "shapes", lambda self, bench, full: shapes[:1])
    for before in shapes:
        measured, _ = sweeping._measure(bench, KINDS["fp32_fma"], False, made(1.0, shape=before))
        assert measured and measured.sweep.keys() == {label(shapes[0]), label(before)}


def late(value: float) -> Ceiling:
    return made(value, unit="s", direction="lower")


def renewal(*names: str) -> Renewal:
    return Renewal(run="r", date="now", reason="a probe", names=[*names])


def test_what_was_swept_again_replaces_the_old() -> None:
    known = Ceilings(
        device="d", driver="", date="then", entries={"dram_read": made(1.0), "fp32_fma": made(2.0)},
        absent={"l1_read": "no plateau"}, contended={"dram_read": "busy"},
    )  # fmt: skip
    fresh = known.model_copy(
        update={
            "date": "now", "entries": {"dram_read": made(3.0), "l1_read": made(4.0)}, "absent": {"fp32_fma": "gone"},
            "contended": {},
        }
    )  # fmt: skip
    part = renewed(known, fresh, renewal("dram_read"))
    assert part.entries == {"dram_read": made(3.0), "fp32_fma": made(2.0)} and part.date == "then"
    assert part.absent == known.absent and not part.contended
    (note,) = part.renewals
    assert note.names == ["dram_read"] and note.told == "dram_read 1 as stored, 3 now" and not note.outcome
    whole = renewed(known, fresh, renewal("dram_read", "fp32_fma", "l1_read"))
    assert whole.entries == fresh.entries and whole.absent == fresh.absent and whole.date == "now"


def test_what_was_disturbed_again_replaces_nothing_that_was_trusted() -> None:
    known = Ceilings(
        device="d", driver="", date="then", entries={"dram_read": made(1.0), "fp32_fma": made(2.0)},
        contended={"fp32_fma": "busy then"},
    )  # fmt: skip
    fresh = known.model_copy(
        update={
            "date": "now", "entries": {"dram_read": made(3.0), "fp32_fma": made(4.0)},
            "contended": dict.fromkeys(("dram_read", "fp32_fma"), "busy now"),
        }
    )  # fmt: skip
    after = renewed(known, fresh, renewal("dram_read", "fp32_fma"))
    assert after.entries == {"dram_read": made(1.0), "fp32_fma": made(4.0)}, "disturbed for disturbed: the later"
    assert after.contended == {"fp32_fma": "busy now"} and after.date == "then", "as old as what stays"
    assert after.renewals[0].outcome == "dram_read is as it was: busy now"


@pytest.mark.parametrize(("new", "busy"), [(4.0, False), (1.0, False), (4.0, True), (1.0, True)])
def test_of_a_ceiling_that_a_time_exceeds_the_better_value_counts_and_both_are_kept(new: float, busy: bool) -> None:
    """Whatever else used the device meanwhile: that makes nothing better."""
    known = Ceilings(device="d", driver="", date="then", entries={"dram_read": made(2.0), "empty_span": late(2.0)})
    entries = {"dram_read": made(new), "empty_span": late(4 / new)}
    contended = dict.fromkeys(entries, "busy") if busy else {}
    fresh = known.model_copy(update={"date": "now", "entries": entries, "contended": contended})
    after = renewed(known, fresh, renewal(*entries), exceeded=entries)
    assert after.entries == (entries if new == 4.0 else known.entries) and not after.contended
    (told,) = after.renewals
    assert told.before["dram_read"].value == 2.0 and told.fresh["dram_read"].value == new
    assert told.told.startswith(f"dram_read 2 as stored, {new:g} now, empty_span 2 as stored")
    why = "the new sweep gave no more, busy" if busy else "the new sweep gave no more"
    assert told.outcome == ("" if new == 4.0 else f"dram_read is as it was: {why}; empty_span is as it was: {why}")


def test_a_ceiling_that_cannot_be_swept_any_more_stays_where_a_time_exceeds_it() -> None:
    known = Ceilings(device="d", driver="", date="then", entries={"dram_read": made(2.0)})
    fresh = known.model_copy(update={"entries": {}, "absent": {"dram_read": "no room"}})
    after = renewed(known, fresh, renewal("dram_read"), exceeded=["dram_read"])
    assert after.entries == known.entries and not after.absent and not after.renewals[0].told


def test_a_ceiling_above_theory_is_flagged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = list(KINDS["fp32_fma"].shapes(bench, False))[:1]
    monkeypatch.setattr(type(KINDS["fp32_fma"]), "shapes", lambda self, bench, full: shapes)
    for limit, above in ((1.0, True), (1e20, False), (None, False)):
        monkeypatch.setattr(sweeping, "theory", lambda name, info, limit=limit: (limit, "invented"))
        found, _ = sweeping._measure(bench, KINDS["fp32_fma"], False)
        assert found is not None and found.above_theory == above and found.theory == limit


def test_values_that_are_kept_are_sampled_for_longer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []

    def samples(self: object, bench: Bench, shape: object, count: int) -> list[float]:
        seen.append((count, bench.keeps))
        return [1.0] * count

    monkeypatch.setattr(type(KINDS["fp32_fma"]), "samples", samples)
    monkeypatch.setattr(sweeping, "Bench", lambda device: bench)
    monkeypatch.setattr(bench, "close", lambda: None)
    measured, _ = sweeping._measure(bench, KINDS["fp32_fma"], False)
    assert {*seen} == {(sweeping.SWEEP_SAMPLES, False), (sweeping.FINAL_SAMPLES, True)} and not bench.keeps
    known = Ceilings(device="d", driver="1", date="", full=False, working_set_bytes=1, entries={"fp32_fma": measured})
    sweeping.probe_again(bench.device, known)
    assert seen[-1] == (sweeping.PROBE_SAMPLES, True) and not bench.keeps
