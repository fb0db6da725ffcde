"""Stored ceilings: swept where there are none, swept again where they are not to be trusted, once per run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perfport.backend import OpenDevice
from perfport.measure.ceilings import Ceilings, cache_file, load_cached, store
from perfport.measure.ceilings.cached import AGE_LIMIT
from perfport.measure.ceilings.entry import Ceiling, Renewal
from perfport.run.messages import CeilingsInUse, StepStarted
from perfport.run.worker import stored
from perfport.run.worker.resources import Resources
from perfport.run.worker.stored import StoredCeilings

BUSY = "other processes used 60% of the processor meanwhile"


def ceilings(rate: float, age: timedelta = timedelta(0), **more: Any) -> Ceilings:
    """Two ceilings of equal value, swept so long ago."""
    entry = Ceiling(value=rate, low=0.99 * rate, high=1.01 * rate, unit="B/s", samples=9)
    date = (datetime.now(UTC) - age).isoformat(timespec="seconds")
    return Ceilings(device="d", driver="1", date=date, entries={"dram_read": entry, "fp32_fma": entry}, **more)


class Bench:
    """A device whose sweeps give what a test says, in a cache that a test has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cached: Ceilings | None, busy: str = "") -> None:
        self.cache, self.busy = cached, busy
        self.swept: list[list[str] | None] = []
        self.waited: list[float] = []
        self.sent: list[Any] = []
        self.contended: dict[str, str] = {}
        self.device: Any = type("D", (), {"info": type("I", (), {"id": "d"})()})()
        monkeypatch.setattr(stored, "load_cached", lambda info: self.cache)
        monkeypatch.setattr(stored, "store", lambda info, known: setattr(self, "cache", known))
        monkeypatch.setattr(stored, "sweep", self.sweep)
        monkeypatch.setattr(stored, "wait_until_quiet", lambda device, limit: self.waited.append(limit) or self.busy)

    def sweep(
        self, device: Any, full: bool = False, progress: Any = None, names: Collection[str] | None = None,
        known: Mapping[str, Ceiling] | None = None,
    ) -> Ceilings:  # fmt: skip
        self.swept.append(None if names is None else sorted(names))
        assert names is None or (self.cache and known == self.cache.entries), "shapes that won before are tried"
        progress("measuring ceiling dram_read")
        fresh = ceilings(2e10, contended=self.contended)
        kept = {name: entry for name, entry in fresh.entries.items() if names is None or name in names}
        return fresh.model_copy(update={"entries": kept})

    def start(self, run: str = "run") -> StoredCeilings:
        return StoredCeilings(self.device, Resources(run, [], self.sent.append))


def test_a_device_is_swept_once_and_then_known(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, None)
    first = bench.start()
    assert bench.swept == [None] and bench.cache == first.known and not first.untrusted(["dram_read"])
    assert bench.sent == [StepStarted(None, "measuring ceiling dram_read")]
    assert bench.start().known == first.known and len(bench.swept) == 1


def test_a_first_sweep_beside_foreign_load_is_kept_with_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not trusted: who is bound by it is told so, and the next run with a quiet machine sweeps it again."""
    bench = Bench(monkeypatch, None, busy=BUSY)
    bench.contended = {"dram_read": BUSY}
    first = bench.start("one")
    told = first.untrusted(["dram_read", "fp32_fma"])
    assert "dram_read" in told and "fp32_fma" not in told and BUSY in told
    assert not first.untrusted(["fp32_fma"]), "whose sweep was quiet"
    bench.contended = {}
    again = bench.start("two")
    assert bench.swept == [None], "no sweep while the machine is contended"
    assert again.untrusted(["dram_read"]) and again.known.renewals[0].outcome == f"all are as they were: {BUSY}"
    bench.busy = ""
    after = bench.start("three")
    assert bench.swept == [None, ["dram_read"]] and not after.known.contended and not after.untrusted(["dram_read"])
    assert bench.waited == [0.0, 0.0], "a run does not wait"


def test_old_ceilings_are_swept_again_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10, AGE_LIMIT + timedelta(days=6)))
    found = bench.start()
    assert bench.swept == [["dram_read", "fp32_fma"]] and found.known.entries["dram_read"].value == 2e10
    (noted,) = found.known.renewals
    assert noted.run == "run" and noted.reason == "they were swept 20 days ago" and not noted.outcome
    assert bench.sent[0] == StepStarted(None, "sweeping ceilings again: they were swept 20 days ago")
    assert bench.sent[-1] == CeilingsInUse("d", found.known.model_dump()), "what the run's folder keeps"
    assert bench.cache == found.known and not found.untrusted(["dram_read"])
    bench.start()
    assert len(bench.swept) == 1, "young again"


def test_old_ceilings_on_a_busy_machine_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10, AGE_LIMIT + timedelta(days=6)), busy=BUSY)
    found = bench.start()
    assert not bench.swept and found.known.entries["dram_read"].value == 1e10
    assert found.untrusted(["dram_read"]) == (
        "the ceilings dram_read are not to be trusted: they were swept 20 days ago"
    )


def test_a_stale_file_in_the_cache_is_swept_again(
    opencl: OpenDevice, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real cache: a file of long ago, and one without a date."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for number, date in enumerate(("2020-01-01T00:00:00+00:00", "")):
        store(opencl.info, ceilings(1e10).model_copy(update={"date": date}))
        assert cache_file(opencl.info).exists()
        bench = Bench(monkeypatch, None)
        monkeypatch.setattr(stored, "load_cached", load_cached)
        monkeypatch.setattr(stored, "store", store)
        bench.cache = load_cached(opencl.info)
        StoredCeilings(opencl, Resources(str(number), [], bench.sent.append))
        kept = load_cached(opencl.info)
        assert kept and kept.entries["dram_read"].value == 2e10 and len(bench.swept) == 1 and len(kept.renewals) == 1


def test_a_device_is_swept_again_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the next worker of the run, which reads of it in the cache; a further run may again."""
    bench = Bench(monkeypatch, ceilings(1e10))
    first = bench.start()
    assert first.renew("a probe", ["dram_read"]) and not first.renew("a probe", ["dram_read"])
    assert not bench.start().renew("another probe", ["fp32_fma"])
    assert bench.swept == [["dram_read"]]
    assert bench.start("another").renew("a probe", ["fp32_fma"]) and bench.swept[1:] == [["fp32_fma"]]


def test_a_verdict_is_worth_a_sweep_each_time_and_beside_foreign_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is replaced is the worse of both; and it takes nothing from what else is swept again in the run."""
    bench = Bench(monkeypatch, ceilings(1e10), busy=BUSY)
    found = bench.start()
    assert found.renew("times exceed it", ["dram_read"], ["dram_read"], verdict=True)
    assert found.known.entries["dram_read"].value == 2e10 and not bench.waited, "the sweep waits by itself"
    assert not found.renew("times exceed it", ["dram_read"], ["dram_read"], verdict=True), "it gives no more"
    assert bench.swept == [["dram_read"]] * 2 and bench.cache and len(bench.cache.renewals) == 2
    assert all(renewal.verdict for renewal in bench.cache.renewals)
    bench.busy = ""
    assert found.renew("a probe", ["fp32_fma"]) and not found.renew("a probe", ["fp32_fma"])


def test_nothing_to_renew_is_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    assert not bench.start().renew("", []) and not bench.waited and not bench.sent


def test_a_busy_machine_is_an_attempt_that_replaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10), busy=BUSY)
    found = bench.start()
    assert not found.renew("a probe", ["dram_read"]) and not bench.swept
    (told,) = [message for message in bench.sent if isinstance(message, CeilingsInUse)]
    assert [Renewal(**noted).outcome for noted in told.values["renewals"]] == [f"all are as they were: {BUSY}"]
    assert not found.untrusted(["dram_read"]), "the probe says what is to be said"


def test_a_probe_that_gives_more_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, ceilings(1e10))
    found = bench.start()
    found.raise_by(ceilings(0.9e10))
    assert found.known.entries["dram_read"].value == 1e10
    found.raise_by(ceilings(3e10))
    assert found.known.entries["dram_read"].value == 3e10 and bench.cache == found.known
