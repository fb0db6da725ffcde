"""Ceilings of a group: swept once, probed before and after, raised by what a probe gives."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from perfport.measure.ceilings import Ceilings
from perfport.measure.ceilings.entry import Ceiling
from perfport.model.record import Bound, Interval
from perfport.run.messages import CeilingsInUse, CeilingsProbed
from perfport.run.worker import probing, stored
from perfport.run.worker.probing import GroupCeilings
from perfport.run.worker.resources import Resources

NOW = datetime.now(UTC).isoformat()


def ceilings(rate: float, *names: str) -> Ceilings:
    """Ceilings of equal value."""
    entry = Ceiling(value=rate, low=0.99 * rate, high=1.01 * rate, unit="B/s", samples=9)
    return Ceilings(device="d", driver="1", date=NOW, entries=dict.fromkeys(names or ("dram_read", "fp32_fma"), entry))


class Bench:
    """A device whose ceilings are what a test says; what was stored, sent and probed of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cached: Ceilings | None, rate: float = 1e10) -> None:
        self.stored: list[Ceilings] = []
        self.sent: list[Any] = []
        self.probed: list[set[str]] = []
        self.rate = rate
        self.rates: list[float] = []  # of the next probes, before `rate`
        self.device: Any = type("D", (), {"info": type("I", (), {"id": "d"})()})()
        self.resources = Resources("run", [], self.sent.append)
        self.swept: list[set[str]] = []
        monkeypatch.setattr(stored, "load_cached", lambda info: cached)
        monkeypatch.setattr(stored, "store", lambda info, known: self.stored.append(known))
        monkeypatch.setattr(stored, "sweep", self.sweep)
        monkeypatch.setattr(stored, "wait_until_quiet", lambda device, limit: "")
        monkeypatch.setattr(probing, "probe_again", self.probe)

    def sweep(self, device: Any, full: bool, progress: Any, names: set[str], known: Any) -> Ceilings:
        self.swept.append(set(names))
        return ceilings(self.rate, *names)

    def probe(self, device: Any, known: Ceilings, names: set[str]) -> Ceilings:
        self.probed.append(set(names))
        rate = self.rates.pop(0) if self.rates else self.rate
        return ceilings(rate, *names) if names else known.model_copy(update={"entries": {}})

    def start(self, *wanted: str) -> GroupCeilings:
        return GroupCeilings(self.device, set(wanted), self.resources)


def test_only_what_the_device_has_is_probed_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    used = bench.start("dram_read", "tf32_mma")
    used.probe("after")
    assert bench.probed == [{"dram_read"}] * 2 and set(used.values) == {"dram_read", "fp32_fma"}
    probes = [message.probe for message in bench.sent if isinstance(message, CeilingsProbed)]
    assert [(probe["when"], probe["device"], set(probe["entries"])) for probe in probes] == [
        ("before", "d", {"dram_read"}), ("after", "d", {"dram_read"}),
    ]  # fmt: skip


def test_a_probe_that_gives_more_raises_the_ceiling_for_later_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10), rate=8e10)
    used = bench.start("dram_read")
    assert used.values["dram_read"].value == 8e10 and used.values["fp32_fma"].value == 1e10
    assert [known.entries["dram_read"].value for known in bench.stored] == [8e10]
    (told,) = [message for message in bench.sent if isinstance(message, CeilingsInUse)]
    assert told.device == "d" and told.values["entries"]["dram_read"]["value"] == 8e10


def test_a_fresh_probe_of_the_group_before_serves_where_it_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    bench.start("dram_read").probe("after")
    bench.start("dram_read")
    assert len(bench.probed) == 2, "just now, and of all that is needed"
    bench.start("dram_read", "fp32_fma")
    assert len(bench.probed) == 3, "another ceiling is needed"
    _, probe = bench.resources.probes["d"]
    bench.resources.probes["d"] = (time.monotonic() - probing.PROBE_AGE_S - 1, probe)
    bench.start("dram_read")
    assert len(bench.probed) == 4, "too old"


def test_a_ceiling_that_moved_is_probed_again_until_it_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    bench.rates = [0.43e10, 0.6e10]
    used = bench.start("dram_read", "fp32_fma")
    assert len(bench.probed) == 3 and not used.disturbed_for(1.0)
    assert used.values["dram_read"].low == pytest.approx(0.99e10), "the disturbed probes widen nothing"
    told = [message.probe["entries"] for message in bench.sent if isinstance(message, CeilingsProbed)]
    assert [entries["dram_read"]["value"] for entries in told] == [0.43e10, 0.6e10, 1e10], "and are stored"


def test_only_what_moved_is_probed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    calm, busy = ceilings(1e10, "fp32_fma").entries, ceilings(0.5e10, "dram_read").entries
    both = ceilings(1e10).model_copy(update={"entries": {**calm, **busy}})

    def first(device: Any, known: Ceilings, names: set[str]) -> Ceilings:
        monkeypatch.setattr(probing, "probe_again", bench.probe)
        bench.probed.append(set(names))
        return both

    monkeypatch.setattr(probing, "probe_again", first)
    assert not bench.start("dram_read", "fp32_fma").disturbed_for(1.0)
    assert bench.probed == [{"dram_read", "fp32_fma"}, {"dram_read"}]


@pytest.mark.parametrize("rate", [0.43e10, 0.89e10, 1.105e10])
def test_a_ceiling_that_stays_off_is_not_used_and_says_so(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    known = ceilings(1e10)
    known.entries["dram_read"].high = 2e10  # so noisy a sweep that only a probe wholly beyond 10 % raises it
    bench, pauses = Bench(monkeypatch, known, rate), list[float]()
    monkeypatch.setattr(probing.time, "sleep", pauses.append)
    used = bench.start("dram_read")
    assert len(bench.probed) == probing.ATTEMPTS and pauses == [0.05, 0.1, 0.2], "what disturbed may be over by then"
    assert (used.values["dram_read"].low, used.values["dram_read"].high) == (0.99e10, 2e10)
    assert f"dram_read at {rate / 1e10:.0%} of what is stored" in used.disturbed_for(
        1.0
    ) and "perfport ceilings" in used.disturbed_for(1.0)
    bench.rate = 1e10
    used.take(used.probe("again"))
    assert used.disturbed_for(1.0), "a quiet moment afterwards does not make it good"


def test_a_noisy_sweep_is_raised_by_a_probe_wholly_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interval allows the probe; without the correction, every group of a quiet device would be disturbed."""
    known = ceilings(1e10)
    known.entries["dram_read"].high = 2e10
    bench = Bench(monkeypatch, known, rate=1.2e10)
    used = bench.start("dram_read")
    assert used.values["dram_read"].value == 1.2e10 and len(bench.probed) == 1 and not used.disturbed_for(1.0)


def test_an_empty_execution_that_is_off_is_nothing_to_a_long_case(monkeypatch: pytest.MonkeyPatch) -> None:
    known = ceilings(5e-6, "empty_span", "dram_read")
    bench = Bench(monkeypatch, known, rate=3e-6)
    monkeypatch.setattr(probing.time, "sleep", lambda _: None)
    used = bench.start("empty_span")
    assert "empty_span at 60% of what is stored" in used.disturbed_for(15e-6), "13 % of the case"
    assert not used.disturbed_for(25e-6), "8 % of it"
    bench.rate = 4.4e-6  # less far off after the group
    used.take(used.probe("after"))
    assert used.disturbed_for(15e-6), "the worst of the probes counts"
    bench.rate = 3e-6
    both = bench.start("empty_span", "dram_read")
    assert "dram_read at 60%" in (reason := both.disturbed_for(25e-6)) and "empty_span" not in reason


def test_any_other_ceiling_that_is_off_matters_to_a_case_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "dram_read", "fp32_fma", "launch_latency"
    bench = Bench(monkeypatch, ceilings(5e-6, *names), rate=3e-6)
    monkeypatch.setattr(probing.time, "sleep", lambda _: None)
    for name in names:
        assert f"{name} at 60%" in bench.start(name).disturbed_for(1e3)


def test_a_disturbed_probe_does_not_open_the_next_group(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    first = bench.start("dram_read")
    bench.rate = 0.5e10
    first.take(first.probe("after"))
    assert first.disturbed_for(1.0)
    bench.rate = 1e10
    assert not bench.start("dram_read").disturbed_for(1.0)
    assert len(bench.probed) == 2 + probing.ATTEMPTS


def test_a_probe_just_within_the_limit_is_quiet_and_widens(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10), rate=0.92e10)
    used = bench.start("dram_read")
    assert len(bench.probed) == 1 and not used.disturbed_for(1.0)
    assert used.values["dram_read"].low == pytest.approx(0.99 * 0.92e10)


def test_ceilings_that_others_disturbed_disturb_a_group_that_they_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = {"dram_read": "others used 50%"}
    bench = Bench(monkeypatch, ceilings(1e10).model_copy(update={"contended": busy}))
    monkeypatch.setattr(stored, "wait_until_quiet", lambda device, limit: "others used 50%")
    assert "dram_read are not to be trusted: others disturbed their sweep" in bench.start("dram_read").disturbed_for(
        1.0
    )
    assert not bench.start("fp32_fma").disturbed_for(1.0)


def record(binding: str, low: float, **others: float) -> Any:
    """A case whose share of this bound is at least so much; ``others``: further terms, relative to the binding one."""
    share = Interval(value=low + 0.01, low=low, high=low + 0.02)
    bound = Bound(seconds=1.0, low=1.0, high=1.0, binding=binding, terms={binding: 1.0, **others}, share=share)
    return type("R", (), {"problem_bound": bound})()


@pytest.mark.parametrize(
    ("binding", "low", "swept"),
    [
        ("dram", 1.01, [{"dram_read"}]),
        ("fp32_fma", 1.01, [{"fp32_fma"}]),
        ("dram", 0.99, []),
        ("tf32_mma", 1.5, []),
    ],
)
def test_a_time_beyond_its_bound_has_the_ceiling_swept_again(
    monkeypatch: pytest.MonkeyPatch, binding: str, low: float, swept: list[set[str]]
) -> None:
    """Of the pair that memory's term is made of, the device has one; of ceilings that it has not, none is swept."""
    bench = Bench(monkeypatch, ceilings(1e10))
    used = bench.start("dram_read", "fp32_fma")
    bench.rates = [1e10]
    bench.rate = 2e10  # of the sweep
    assert used.end([record(binding, low), type("R", (), {"problem_bound": None})()]) == bool(swept)
    assert bench.swept == swept and not used.disturbed_for(1.0)
    for name in ("dram_read", "fp32_fma"):
        assert used.values[name].value == (2e10 if swept and name in swept[0] else 1e10)
    if swept:
        told = [message for message in bench.sent if isinstance(message, CeilingsInUse)][-1]
        assert told.values["renewals"][0]["reason"] == f"times exceed {', '.join(swept[0])}"


def test_what_is_impossible_has_all_that_it_exceeds_swept_again_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10, "dram_read", "dram_copy", "fp32_fma", "exp"))
    for number, gives in enumerate((1e10, 2e10, 1.5e10)):
        used = bench.start("dram_read", "dram_copy", "fp32_fma", "exp")
        bench.rates, bench.rate = [bench.rate], gives
        assert used.end([record("fp32_fma", 1.5, dram=0.7, exp=0.6)]) == (gives == 2e10)
        assert bench.swept[number] == {"fp32_fma", "dram_read", "dram_copy"}, "exp allows the time"
        bench.rate = max(1e10, used.values["dram_read"].value)
        expected = 1e10 if number == 0 else 2e10
        assert used.values["fp32_fma"].value == expected, "the better of what was stored and what came out"
        was = 1e10 if number < 2 else 2e10
        assert f"fp32_fma {was:.4g} as stored, {gives:.4g} now" in used.anew
        monkeypatch.setattr(stored, "load_cached", lambda info: bench.stored[-1])
        bench.resources.probes.clear()
        bench.rates = []


def test_a_probe_that_stays_off_has_its_ceiling_swept_again_after_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group's results are not trusted all the same; the next group's are, and the ceiling may be lower."""
    bench = Bench(monkeypatch, ceilings(1e10), rate=0.5e10)
    monkeypatch.setattr(probing.time, "sleep", lambda seconds: None)
    used = bench.start("dram_read")
    assert used.disturbed_for(1.0) and not bench.swept, "not while the group's buffers are there"
    assert used.end([]) and bench.swept == [{"dram_read"}] and used.disturbed_for(1.0)
    assert used.values["dram_read"].value == 0.5e10
    monkeypatch.setattr(stored, "load_cached", lambda info: bench.stored[-1])
    after = bench.start("dram_read")
    assert not after.disturbed_for(1.0) and after.values["dram_read"].value == 0.5e10
    bench.rate = 0.2e10
    moved_on = bench.start("dram_read")
    assert not moved_on.end([]) and len(bench.swept) == 1, "once in a run"


def test_a_probe_that_gives_up_disturbs_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10, "dram_read", "grid_barrier"))
    monkeypatch.setattr(probing.time, "sleep", lambda seconds: None)
    probe, failures = bench.probe, [2]

    def give_up(device: Any, known: Ceilings, names: set[str]) -> Ceilings:
        now = probe(device, known, names)
        if "grid_barrier" not in names or not failures[0]:
            return now
        failures[0] -= 1
        kept = {name: entry for name, entry in now.entries.items() if name != "grid_barrier"}
        return now.model_copy(update={"entries": kept, "absent": {"grid_barrier": "1 of 2 work-groups gave up"}})

    monkeypatch.setattr(probing, "probe_again", give_up)
    assert not bench.start("dram_read", "grid_barrier").disturbed_for(1.0)
    assert bench.probed == [{"dram_read", "grid_barrier"}, {"grid_barrier"}, {"grid_barrier"}]
    failures[0] = 99
    bench.resources.probes.clear()
    used = bench.start("dram_read", "grid_barrier")
    assert (
        "grid_barrier: 1 of 2 work-groups gave up" in used.disturbed_for(1.0)
        and used.values["grid_barrier"].value == 1e10
    )
