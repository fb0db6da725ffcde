"""Ceilings of a group: swept once, probed before and after, raised by what a probe gives."""

from __future__ import annotations

import time
from typing import Any

import pytest

from perfport.measure.ceilings import Ceilings
from perfport.measure.ceilings.entry import Ceiling
from perfport.run.messages import CeilingsInUse, CeilingsProbed, StepStarted
from perfport.run.worker import probing
from perfport.run.worker.probing import GroupCeilings
from perfport.run.worker.resources import Resources


def ceilings(rate: float, *names: str) -> Ceilings:
    """Ceilings of equal value."""
    entry = Ceiling(value=rate, low=0.99 * rate, high=1.01 * rate, unit="B/s", samples=9)
    return Ceilings(device="d", driver="1", date="", entries=dict.fromkeys(names or ("dram_read", "fp32_fma"), entry))


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
        monkeypatch.setattr(probing, "load_cached", lambda info: cached)
        monkeypatch.setattr(probing, "store", lambda info, known: self.stored.append(known))
        monkeypatch.setattr(probing, "sweep", lambda device, progress: progress("dram_read") or ceilings(1e10))
        monkeypatch.setattr(probing, "probe_again", self.probe)

    def probe(self, device: Any, known: Ceilings, names: set[str]) -> Ceilings:
        self.probed.append(set(names))
        rate = self.rates.pop(0) if self.rates else self.rate
        return ceilings(rate, *names) if names else known.model_copy(update={"entries": {}})

    def start(self, *wanted: str) -> GroupCeilings:
        return GroupCeilings(self.device, set(wanted), self.resources)


def test_a_device_is_swept_once_and_then_known(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, None)
    bench.start("dram_read")
    assert [known.entries["dram_read"].value for known in bench.stored] == [1e10]
    assert bench.sent[:2] == [
        StepStarted(None, "measuring ceiling dram_read"), StepStarted(None, "probing ceilings before"),
    ]  # fmt: skip
    known = Bench(monkeypatch, ceilings(1e10))
    known.start("dram_read")
    assert not known.stored


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
    assert len(bench.probed) == 3 and not used.disturbed
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
    assert not bench.start("dram_read", "fp32_fma").disturbed
    assert bench.probed == [{"dram_read", "fp32_fma"}, {"dram_read"}]


@pytest.mark.parametrize("rate", [0.43e10, 0.89e10, 1.2e10])
def test_a_ceiling_that_stays_off_is_not_used_and_says_so(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    known = ceilings(1e10)
    known.entries["dram_read"].high = 2e10  # a sweep so noisy that no probe raises it
    bench, pauses = Bench(monkeypatch, known, rate), list[float]()
    monkeypatch.setattr(probing.time, "sleep", pauses.append)
    used = bench.start("dram_read")
    assert len(bench.probed) == probing.ATTEMPTS and pauses == [0.05, 0.1, 0.2], "what disturbed may be over by then"
    assert (used.values["dram_read"].low, used.values["dram_read"].high) == (0.99e10, 2e10)
    assert (
        f"dram_read at {rate / 1e10:.0%} of what is stored" in used.disturbed and "perfport ceilings" in used.disturbed
    )
    bench.rate = 1e10
    used.take(used.probe("again"))
    assert used.disturbed, "a quiet moment afterwards does not make it good"


def test_a_disturbed_probe_does_not_open_the_next_group(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    first = bench.start("dram_read")
    bench.rate = 0.5e10
    first.take(first.probe("after"))
    assert first.disturbed
    bench.rate = 1e10
    assert not bench.start("dram_read").disturbed
    assert len(bench.probed) == 2 + probing.ATTEMPTS


def test_a_probe_just_within_the_limit_is_quiet_and_widens(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10), rate=0.92e10)
    used = bench.start("dram_read")
    assert len(bench.probed) == 1 and not used.disturbed
    assert used.values["dram_read"].low == pytest.approx(0.99 * 0.92e10)
