"""Ceilings in the cache of the user, one file per device, driver and sweep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ceilings_bench import made

from perfport.backend import OpenDevice
from perfport.measure.ceilings import (
    Ceiling,
    Ceilings,
    cache_file,
    entry,
    load_cached,
    outdated,
    store,
)
from perfport.measure.ceilings.cached import AGE_LIMIT


def one_ceiling(device: OpenDevice) -> Ceilings:
    found = {"dram_read": Ceiling(value=2.0, low=1.0, high=3.0, unit="B/s", shape={"width": 4})}
    return Ceilings(device=device.info.id, driver=device.info.driver, date="d", entries=found)


def test_ceilings_are_kept_per_device_and_driver(
    device: OpenDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    info = device.info
    assert load_cached(info) is None
    store(info, one_ceiling(device))
    assert load_cached(info) == one_ceiling(device)
    changes: list[dict[str, Any]] = [
        {"driver": "another"}, {"chip": "another"}, {"uuid": "another"}, {"compute_units": 1 << 20}, {"id": "a:b:9"},
        {"capabilities": [*info.capabilities, "wgmma"]},
    ]  # fmt: skip
    for change in changes:
        assert load_cached(info.model_copy(update=change)) is None, change
    monkeypatch.setattr(entry, "SWEEP_VERSION", entry.SWEEP_VERSION + 1)
    assert load_cached(info) is None


@pytest.mark.parametrize("content", ["", "{", "{}", '{"entries": 3}'])
def test_a_spoilt_cache_is_no_cache(
    device: OpenDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = cache_file(device.info)
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert load_cached(device.info) is None


def test_a_cache_that_cannot_be_written_is_no_error(
    device: OpenDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    store(device.info, one_ceiling(device))
    assert load_cached(device.info) is None


NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("date", "reason"),
    [
        (NOW.isoformat(), ""),
        ((NOW - AGE_LIMIT).isoformat(), ""),
        ((NOW - AGE_LIMIT - timedelta(hours=1)).isoformat(), "they were swept 14 days ago"),
        ("2026-10-01T00:00:00+02:00", "they were swept 53 days ago"),
        ((NOW + timedelta(hours=20)).isoformat(), ""),
        ((NOW + timedelta(days=3)).isoformat(), "they were swept in the future"),
        ("", "nobody knows when they were swept"),
        ("yesterday", "nobody knows when they were swept"),
        ("2026-11-23T10:00:00", "nobody knows when they were swept"),
    ],
)
def test_stored_ceilings_age(date: str, reason: str) -> None:
    entries = {"dram_read": made(1.0), "fp32_fma": made(1.0)}
    known = Ceilings(device="d", driver="", date=date, entries=entries, absent={"l1_read": "no plateau"})
    expected = ["dram_read", "fp32_fma", "l1_read"] if reason else []
    assert outdated(known, NOW) == (reason, expected), "what is absent may be there another time"
    assert outdated(known.model_copy(update={"entries": {}}), NOW) == ("", []), "nothing that could have changed"


def test_ceilings_that_others_disturbed_are_not_to_be_trusted() -> None:
    entries = {"dram_read": made(1.0), "fp32_fma": made(1.0)}
    busy = {"fp32_fma": "other processes used 80% of the processor meanwhile"}
    known = Ceilings(device="d", driver="", date=NOW.isoformat(), entries=entries, contended=busy)
    assert outdated(known, NOW) == ("others disturbed their sweep", ["fp32_fma"])
