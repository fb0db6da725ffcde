"""Reads of cache levels and constant memory: sets, levels, and what is no level."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ceilings_bench import SMALL, made, some

from perfport.backend.offline import cuda_info
from perfport.measure.ceilings import (
    KINDS,
    Ceiling,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.caches import CURVES, CacheRead, Level, levels
from perfport.measure.ceilings.kind import Rate, Shape
from perfport.model.device import DeviceInfo

H100 = cuda_info("sm_90").model_copy(
    update={"name": "NVIDIA H100 80GB HBM3", "compute_units": 132, "last_level_cache_bytes": 50 << 20}
)


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


class Synthetic(CacheRead):
    """A level whose rates are a function of the set's size and of how many samples were taken before."""

    def samples(self, bench: Any, shape: Shape, count: int) -> list[float]:
        """As the function says."""
        TAKEN.append(shape["set_bytes"])
        return [RATE[0](shape["set_bytes"], len(TAKEN))] * count


TAKEN: list[int] = []
RATE: list[Callable[[int, int], float]] = []
SHAPE = {"width": 4, "unroll": 4, "group": 256, "groups": 132}


def verdict(monkeypatch: pytest.MonkeyPatch, rate: Callable[[int, int], float], own: int = 128) -> str:
    """What is said of an H100's first level, 256 KiB on each of 132 units, with these rates by size in KiB."""
    TAKEN.clear()
    monkeypatch.setattr(sys.modules[__name__], "RATE", [lambda nbytes, taken: rate(nbytes >> 10, taken)])
    bench: Any = SimpleNamespace(info=H100, cpu=False, nbytes=4 << 30)
    level, shape = Synthetic("l1_read", "B/s", 1, ("l2_read",)), {**SHAPE, "set_bytes": own << 10}
    entry = made(100.0, shape=shape, curve=level.curve(bench, shape, 100.0))
    assert len({nbytes for nbytes, _ in entry.curve}) == len(entry.curve)
    return level.absent(bench, entry, {"l2_read": made(20.0), "dram_read": made(10.0)})


def flat(size: int) -> float:
    """Fast within 256 KiB, with what the loop costs in small sets."""
    return (100.0 if size >= 64 else 93.0) if size <= 256 else 12.0


@pytest.mark.parametrize(
    ("rate", "own", "curves"),
    [
        (lambda size, taken: flat(size), 128, 1),
        (lambda size, taken: flat(size) * (0.5 if size == 64 and taken < 9 else 1.0), 128, 1),
        (lambda size, taken: flat(size) * (0.6 if taken <= 7 else 1.0), 128, 2),
        (lambda size, taken: flat(size) * min(1.0, 0.4 + 0.03 * taken), 128, 3),
        (lambda size, taken: flat(size) * (0.7 if size == 64 else 1.0), 128, 1),
        (lambda size, taken: flat(size) * (0.6 if size == 64 else 1.0), 32, 1),
    ],
    ids=["quiet", "one point disturbed", "first curve disturbed", "clock ramp", "one slow size", "small best set"],
)
def test_a_level_shows_through_disturbances(
    rate: Callable[[int, int], float], own: int, curves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdict(monkeypatch, rate, own) == ""
    assert len(TAKEN) == 7 * curves, "a curve is taken again only while it shows no plateau"


@pytest.mark.parametrize(
    "rate",
    [
        lambda size, taken: 100.0 * min(1.0, size / 128),
        lambda size, taken: 100.0 if size == 128 else 60.0 if size < 256 else 10.0,
        lambda size, taken: 100.0 if size in (16, 128) else 60.0,
    ],
    ids=["rising", "a peak", "a peak and one more"],
)
def test_a_curve_without_a_plateau_is_none_however_often_it_is_taken(
    rate: Callable[[int, int], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no plateau" in verdict(monkeypatch, rate) and len(TAKEN) == 7 * CURVES


def test_a_gpu_without_a_profile_has_sets_for_its_first_level() -> None:
    """An H100 has no profile; sized for 16 KiB, no set was left that a work-group could read in eight steps."""
    assert levels(H100)[1].nbytes == 256 << 10
    for capability in (None, "6.1", "9.0"):  # unknown, and one that the table leaves out
        info = H100.model_copy(update={"compute_capability": capability})
        bench: Any = SimpleNamespace(info=info, cpu=False, nbytes=4 << 30)
        for full in (False, True):
            level = KINDS["l1_read"]
            shapes = list(level.shapes(bench, full))
            assert shapes, (capability, full)
            nbytes = levels(info)[1].nbytes
            assert all(8 * 16 * shape["unroll"] * shape["group"] <= nbytes for shape in shapes)
            assert {shape["set_bytes"] * shape["groups"] for shape in shapes} == {
                132 * nbytes // part for part in (8, 4, 2)
            }


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
