"""Ceilings: the kernels do the work that their rates are computed from, and results are kept per device and driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfport import ceilings
from perfport.backend import OpenDevice
from perfport.cache import CacheFlush
from perfport.ceilings import NAMES, Ceiling, Ceilings, _Probe, cache_file, load_cached, probe_again, store, sweep

SMALL = 3 << 20


@pytest.fixture
def probe(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A probe over a small working set, whose arrays hold known values."""
    monkeypatch.setattr(ceilings, "CacheFlush", NoFlush)
    made = _Probe(device)
    made.nbytes = SMALL
    yield made
    for buffer in [*made._arrays, made._out]:
        buffer.free()


def some(probe: _Probe, name: str) -> list[dict[str, Any]]:
    """Every distinct width, walk and unrolling of a ceiling's shapes, at one size of the launch each."""
    found = {}
    for shape in probe.shapes(name, full=False):
        found[tuple(value for key, value in shape.items() if key not in ("groups", "group"))] = shape
    return list(found.values())


def test_the_read_kernel_reads_everything_once(probe: _Probe, device: OpenDevice) -> None:
    array = probe._array(0)
    device.write(array, np.ones(SMALL // 4, np.float32))
    shapes = some(probe, "dram_read")
    assert len(shapes) >= 4
    for shape in shapes:
        device.fill(probe._out, 0)
        execute, amount = probe.launcher("dram_read", shape)
        execute()
        sums = device.read(probe._out, np.float32, (probe._out.nbytes // 4,)).astype(np.float64)
        assert sums.sum() == SMALL / 4 and amount == SMALL, shape


@pytest.mark.parametrize(("name", "arrays"), [("dram_copy", 2), ("dram_triad", 3)])
def test_copy_and_triad_write_everything(probe: _Probe, device: OpenDevice, name: str, arrays: int) -> None:
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=SMALL // 4).astype(np.float32) for _ in range(arrays - 1)]
    for number, data in enumerate(inputs):
        device.write(probe._array(number), data)
    expected = inputs[0] if name == "dram_copy" else inputs[0] + np.float32(0.4) * inputs[1]
    for shape in some(probe, name):
        device.fill(probe._array(arrays - 1), 0xFF)
        execute, amount = probe.launcher(name, shape)
        execute()
        found = device.read(probe._array(arrays - 1), np.float32, (SMALL // 4,))
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6) and amount == arrays * SMALL, shape


def test_the_arithmetic_kernel_stays_finite_and_depends_on_every_chain(probe: _Probe, device: OpenDevice) -> None:
    for shape in some(probe, "fp32_fma"):
        execute, amount = probe.launcher("fp32_fma", shape)
        device.fill(probe._out, 0xFF)
        execute()
        items = shape["groups"] * shape["group"]
        found = device.read(probe._out, np.float32, (items,))
        assert np.isfinite(found).all() and (found != 0).any() and amount > 0, shape
        assert amount % (2 * shape["chains"] * shape["width"] * items) == 0


class Small(_Probe):
    """A probe of a few shapes over a small working set, in a warm cache."""

    def __init__(self, device: OpenDevice) -> None:
        super().__init__(device)
        self.nbytes = SMALL

    def shapes(self, name: str, full: bool) -> list[dict[str, Any]]:
        return list(super().shapes(name, full))[:3]


class NoFlush:
    """Leaves the cache alone."""

    def __init__(self, device: OpenDevice) -> None: ...

    def __call__(self) -> None: ...

    def close(self) -> None: ...


def test_a_sweep_of_a_small_set(device: OpenDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "_Probe", Small)
    monkeypatch.setattr(ceilings, "CacheFlush", NoFlush)
    told: list[str] = []
    before = device.allocated
    found = sweep(device, progress=told.append)
    assert told == list(NAMES) == list(found.entries) and device.allocated == before, "memory is given back"
    for name, entry in found.entries.items():
        assert 0 < entry.low <= entry.value <= entry.high and entry.unit == NAMES[name]
        assert len(entry.sweep) == 3 and entry.samples >= 7 and 0 < entry.spread <= 1
        assert ceilings._label(entry.shape) in entry.sweep
    again = probe_again(device, found)
    assert {"dram_read", "fp32_fma"} <= set(again.entries) <= set(NAMES) and device.allocated == before
    for name, entry in again.entries.items():
        assert entry.shape == found.entries[name].shape and entry.samples == 5 and 0 < entry.low <= entry.value


def one_ceiling(device: OpenDevice) -> Ceilings:
    entry = Ceiling(value=2.0, low=1.0, high=3.0, unit="B/s", shape={"width": 4})
    return Ceilings(device=device.info.id, driver=device.info.driver, date="d", entries={"dram_read": entry})


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
    monkeypatch.setattr(ceilings, "SWEEP_VERSION", ceilings.SWEEP_VERSION + 1)
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


def test_the_flush_reads_more_than_the_cache_and_gives_it_back(device: OpenDevice) -> None:
    before = device.allocated
    flush = CacheFlush(device)
    cache = device.info.last_level_cache_bytes or 0
    assert device.allocated - before >= min(max(cache, 64 << 20), 512 << 20, device.info.max_alloc_bytes) // 4096 * 4096
    flush()
    items = flush._groups * flush._group
    sums = device.read(flush._out, np.uint32, (items,)).astype(np.uint64)
    words = flush._buffer.nbytes // 4
    assert int(sums.sum()) % 2**32 == words * 0x01010101 % 2**32, "every word is read once"
    flush.close()
    assert device.allocated == before
