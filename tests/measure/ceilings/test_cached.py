"""Ceilings in the cache of the user, one file per device, driver and sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfport.backend import OpenDevice
from perfport.measure.ceilings import (
    Ceiling,
    Ceilings,
    cache_file,
    entry,
    load_cached,
    store,
)


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
