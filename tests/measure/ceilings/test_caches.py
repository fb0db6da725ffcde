"""Reads of cache levels and constant memory: sets, levels, and what is no level."""

from __future__ import annotations

import numpy as np
import pytest
from ceilings_bench import SMALL, made, some

from perfport.measure.ceilings import (
    KINDS,
    Ceiling,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.caches import CacheRead, Level, levels
from perfport.measure.ceilings.kind import Rate
from perfport.model.device import DeviceInfo


@pytest.mark.parametrize("name", ["l1_read", "l2_read", "l3_read"])
def test_cache_kernels_read_their_sets(bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of ones: what every work-item adds up is the number of words that it read."""
    found = {1: Level(64 << 10, False), 2: Level(256 << 10, False), 3: Level(1 << 20, True)}
    monkeypatch.setattr("perfport.measure.ceilings.caches.levels", lambda info: found)
    one = KINDS[name]
    assert isinstance(one, CacheRead)
    bench.device.write(bench.array(0), np.ones(SMALL // 4, np.float32))
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 2)
        chosen.run()
        items = shape["groups"] * shape["group"]
        sums = bench.device.read(bench.out(items), np.float32, (items,)).astype(np.float64)
        assert 4 * sums.sum() == chosen.amount == 2 * shape["groups"] * shape["set_bytes"], shape


def test_private_sets_lie_apart_and_shared_ones_are_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's work-groups have sets of their own of every level."""
    found = {1: Level(64 << 10, False), 3: Level(64 << 10, True)}
    monkeypatch.setattr("perfport.measure.ceilings.caches.levels", lambda info: found)
    for name, private in (("l1_read", True), ("l3_read", False)) if bench.cpu else (("l1_read", True),):
        one = KINDS[name]
        assert isinstance(one, CacheRead)
        shape = some(bench, name)[0]
        words, groups, group = shape["set_bytes"] // 4, shape["groups"], shape["group"]
        host = np.zeros(SMALL // 4, np.float32)
        host[: words * groups] = np.repeat(np.arange(1.0, groups + 1), words)
        bench.device.write(bench.array(0), host)
        one.execution(bench, shape, 1).run()
        sums = bench.device.read(bench.out(groups * group), np.float32, (groups, group)).astype(np.float64).sum(1)
        assert np.array_equal(sums, words * (np.arange(groups) + 1.0 if private else np.ones(groups)))


def test_the_constant_kernel_reads_what_is_counted(bench: Bench) -> None:
    one = KINDS["constant_read"]
    assert isinstance(one, Rate)
    for shape in some(bench, "constant_read"):
        chosen = one.execution(bench, shape, 1)
        table = bench.buffer("constant", 1)
        bench.device.write(table, np.ones(table.nbytes // 4, np.float32))
        chosen.run()
        items = shape["groups"] * shape["group"]
        sums = bench.device.read(bench.out(items), np.float32, (items,)).astype(np.float64)
        # Each work-item multiplies by a factor of its own, close to 1.
        factors = 1.0 + 0.001 * (np.arange(items) % shape["group"])
        assert np.allclose(sums / factors, chosen.amount / 4 / items, rtol=1e-4), shape


def level_entry(rates: dict[int, float], own: int, groups: int) -> Ceiling:
    curve = [(float(nbytes), rate) for nbytes, rate in rates.items()]
    return made(rates[own], shape={"set_bytes": own, "groups": groups}, curve=curve)


@pytest.mark.parametrize(
    ("rates", "reason"),
    [
        ({8: 100.0, 16: 99.0, 32: 95.0, 64: 60.0, 128: 30.0}, ""),
        ({8: 20.0, 16: 99.0, 32: 40.0, 64: 60.0, 128: 30.0}, "no plateau"),
        ({8: 100.0, 16: 99.0, 32: 95.0, 64: 98.0, 128: 97.0}, "as fast as within"),
        ({8: 100.0, 16: 99.0, 32: 95.0}, ""),
    ],
)
def test_a_level_is_a_plateau_with_a_fall(
    rates: dict[int, float], reason: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last case has no set beyond the level: reads from DRAM stand for them."""
    monkeypatch.setattr("perfport.measure.ceilings.caches.levels", lambda info: {1: Level(64, False)})
    entry = level_entry(rates, 16, bench.info.compute_units)
    found = KINDS["l1_read"].absent(bench, entry, {"dram_read": made(50.0)})
    assert reason in found and bool(found) == bool(reason)


def test_a_level_no_faster_than_the_one_behind_does_not_show(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfport.measure.ceilings.caches.levels", lambda info: {1: Level(64, False)})
    entry = level_entry({8: 100.0, 16: 99.0, 32: 95.0, 64: 60.0, 128: 30.0}, 16, bench.info.compute_units)
    assert KINDS["l1_read"].absent(bench, entry, {"l2_read": made(95.0)}) == "the level behind it is as fast"
    assert not KINDS["l1_read"].absent(bench, entry, {"l2_read": made(50.0)})


def test_the_levels_of_a_device() -> None:
    cpu = DeviceInfo(
        id="a:b:0", backend="opencl", platform="p", name="n", chip="c", kind="cpu", compute_units=1, memory_bytes=1,
        max_alloc_bytes=1, local_memory_bytes=1, max_work_group=1,
    )  # fmt: skip
    found = levels(cpu)
    assert all(level.nbytes > 0 for level in found.values())
    assert [found[number].nbytes for number in sorted(found)] == sorted(level.nbytes for level in found.values())
    if 1 in found:
        assert not found[1].shared
    gpu = cpu.model_copy(update={"kind": "gpu", "name": "NVIDIA H200", "last_level_cache_bytes": 60 << 20})
    assert levels(gpu) == {1: Level(256 << 10, False), 2: Level(60 << 20, True)}
