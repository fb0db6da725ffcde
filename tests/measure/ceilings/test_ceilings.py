"""Ceilings: every one runs and gives a sane rate, its kernels do the work that is counted, and results are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.measure.cache import CacheFlush
from perfport.measure.ceilings import (
    KINDS,
    Ceiling,
    Ceilings,
    cache_file,
    entry,
    kind,
    load_cached,
    probe_again,
    raise_to,
    store,
    sweep,
    sweeping,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.caches import CacheRead, Level, levels
from perfport.measure.ceilings.kind import Rate, Shape, label
from perfport.measure.ceilings.matrix import DEPTH, SLICES, WORDS, MatrixRate, operands
from perfport.measure.ceilings.streams import Stream
from perfport.measure.ceilings.theory import theory
from perfport.measure.roofline import INTEGER_CEILINGS, INTEGER_UNITS, SPECIAL_CEILINGS
from perfport.model.device import DeviceInfo
from perfport.model.errors import UnavailableError, UnsupportedError

SMALL = 3 << 20
RATES = [name for name, one in KINDS.items() if isinstance(one, Rate) and not one.needs]


@pytest.fixture
def bench(device: OpenDevice) -> Iterator[Bench]:
    """A bench with small arrays and a warm cache."""
    made = small(device)
    yield made
    made.close()


class SmallBench(Bench):
    """Small arrays, and no flush between samples."""

    def __init__(self, device: OpenDevice) -> None:
        super().__init__(device)
        self.nbytes = SMALL

    def flush(self) -> None:
        """Leave the cache alone."""


def small(device: OpenDevice) -> Bench:
    return SmallBench(device)


def some(bench: Bench, name: str, full: bool = False) -> list[Shape]:
    """The quick shapes of a ceiling, each form of the kernel once."""
    found: dict[tuple[Any, ...], Shape] = {}
    for shape in KINDS[name].shapes(bench, full):
        found.setdefault(tuple(v for key, v in shape.items() if key not in ("groups", "group", "set_bytes")), shape)
    return list(found.values())


def test_the_bounds_find_their_ceilings() -> None:
    named = {"dram_read", "dram_copy", "fp32_fma", "l1_read", "l2_read", "local_read", "atomic_global_many"}
    named |= {"atomic_local_many", *INTEGER_CEILINGS, *INTEGER_UNITS, *SPECIAL_CEILINGS}
    assert named <= set(KINDS)
    assert {one.unit for one in KINDS.values()} == {"B/s", "FLOP/s", "op/s", "s"}
    assert [name for name, one in KINDS.items() if one.direction == "lower"] == ["launch_latency"]


def test_the_full_set_holds_the_axes_of_the_sweep(bench: Bench) -> None:
    shapes = list(KINDS["fp32_fma"].shapes(bench, True))
    axes = {axis: {shape[axis] for shape in shapes} for axis in ("chains", "width", "quadratic")}
    assert axes == {"chains": {1, 2, 4, 8, 12, 16}, "width": {1, 4, 8, 16}, "quadratic": {0, 1}}
    streams = list(KINDS["dram_copy"].shapes(bench, True))
    assert {"stride", "chunk"} <= {shape["walk"] for shape in streams} and {shape["width"] for shape in streams} == {
        1,
        4,
        8,
        16,
    }
    for name in KINDS:
        quick = {label(shape) for shape in KINDS[name].shapes(bench, False)}
        if name not in ("l1_read", "l2_read", "l3_read", "tf32_mma", "bf16_mma", "int8_mma"):
            assert quick, name
        assert len(quick) <= len({label(shape) for shape in KINDS[name].shapes(bench, True)}), name


def test_the_read_kernel_reads_everything_once(bench: Bench) -> None:
    stream, device = KINDS["dram_read"], bench.device
    assert isinstance(stream, Stream)
    device.write(bench.array(0), np.ones(SMALL // 4, np.float32))
    for shape in some(bench, "dram_read"):
        chosen = stream.execution(bench, shape)
        items = shape["groups"] * shape["group"]
        device.fill(bench.out(items), 0)
        chosen.run()
        sums = device.read(bench.out(items), np.float32, (items,)).astype(np.float64)
        assert sums.sum() == SMALL / 4 and chosen.amount == SMALL, shape


@pytest.mark.parametrize(("name", "arrays"), [("dram_copy", 2), ("dram_triad", 3)])
def test_copy_and_triad_write_everything(bench: Bench, name: str, arrays: int) -> None:
    rng, device, stream = np.random.default_rng(5), bench.device, KINDS[name]
    assert isinstance(stream, Stream)
    inputs = [rng.normal(size=SMALL // 4).astype(np.float32) for _ in range(arrays - 1)]
    for number, data in enumerate(inputs):
        device.write(bench.array(number), data)
    expected = inputs[0] if name == "dram_copy" else inputs[0] + np.float32(0.4) * inputs[1]
    for shape in some(bench, name):
        device.fill(bench.array(arrays - 1), 0xFF)
        chosen = stream.execution(bench, shape)
        chosen.run()
        found = device.read(bench.array(arrays - 1), np.float32, (SMALL // 4,))
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6) and chosen.amount == arrays * SMALL, shape


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


@pytest.mark.parametrize("name", ["local_read", "local_conflict"])
def test_local_kernels_read_what_is_counted(bench: Bench, name: str) -> None:
    one = KINDS[name]
    assert isinstance(one, Rate)
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 1)
        tile = bench.buffer("tile", 1)
        bench.device.write(tile, np.ones(tile.nbytes // 4, np.float32))
        chosen.run()
        items = shape["groups"] * shape["group"]
        sums = bench.device.read(bench.out(items), np.float32, (items,)).astype(np.float64)
        assert 4 * sums.sum() == chosen.amount, shape


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


@pytest.mark.parametrize("name", [name for name in RATES if name in {"fp32_fma", "exp", "rsqrt"}])
def test_floating_point_chains_stay_finite(bench: Bench, name: str) -> None:
    one = KINDS[name]
    assert isinstance(one, Rate)
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 4)
        lanes = shape["groups"] * shape["group"] * shape["width"]
        bench.device.fill(bench.out(lanes), 0xFF)
        chosen.run()
        found = bench.device.read(bench.out(lanes), np.float32, (lanes,))
        assert np.isfinite(found).all() and (found != 0).any(), shape
        per_step = {"fp32_fma": 2}.get(name, 1) * shape["chains"] * lanes
        assert chosen.amount == 512 * per_step, shape


def _integer_step(name: str, x: np.ndarray, c: int) -> np.ndarray:
    if name == "int32_mad":
        return x * x + np.uint32(c)
    if name == "int32_logic":
        return ((x << np.uint32(5)) ^ x) + np.uint32(c)
    return np.uint32(c) + sum(((x >> np.uint32(8 * byte)) & np.uint32(255)) ** np.uint32(2) for byte in range(4))


@pytest.mark.parametrize(("name", "operations"), [("int32_mad", 2), ("int32_logic", 3), ("dp4a", 8)])
def test_integer_chains_do_every_step(bench: Bench, name: str, operations: int) -> None:
    one = KINDS[name]
    c = one.constants[1]  # type: ignore[attr-defined]
    for shape in some(bench, name):
        chosen = one.execution(bench, shape, 1)  # type: ignore[attr-defined]
        chosen.run()
        items, width, chains = shape["groups"] * shape["group"], shape["width"], shape["chains"]
        found = bench.device.read(bench.out(items * width), np.uint32, (items, width))
        expected = np.zeros(items, np.uint32)
        for chain in range(chains):
            x = np.arange(items, dtype=np.uint32) + np.uint32(3 + 2 * chain)
            for _ in range(128):
                x = _integer_step(name, x, c)
            expected += x
        assert np.array_equal(found, np.repeat(expected[:, None], width, 1)), shape
        assert chosen.amount == operations * 128 * chains * items * width


@pytest.mark.parametrize("name", [name for name in RATES if name.startswith("atomic")])
def test_atomics_count_up(bench: Bench, name: str) -> None:
    one = KINDS[name]
    assert isinstance(one, Rate)
    for shape in some(bench, name, full=True):
        chosen = one.execution(bench, shape, 3)
        counters = bench.buffer("counters", 1)
        bench.device.fill(counters, 0)
        chosen.run()
        found = bench.device.read(counters, np.uint32, (counters.nbytes // 4,)).astype(np.int64)
        assert found.sum() == chosen.amount, shape
        used, per_space = int((found > 0).sum()), shape["groups"] if "local" in name else 1
        assert used == per_space if name.endswith("one") else used > 16 * per_space, shape


@pytest.mark.parametrize("name", list(KINDS))
def test_every_ceiling_gives_a_rate(device: OpenDevice, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the machinery of the sweep, at small scale."""
    monkeypatch.setattr(kind, "SAMPLE_S", 0.0)
    monkeypatch.setattr(
        "perfport.measure.ceilings.caches.levels", lambda info: dict.fromkeys((1, 2, 3), Level(1 << 15, False))
    )
    one, bench = KINDS[name], small(device)
    if not set(one.needs) <= set(device.info.capabilities):
        bench.close()
        pytest.skip(f"{device.info.id} has no {', '.join(one.needs)}")
    before = device.allocated
    try:
        for number, shape in enumerate(list(one.shapes(bench, False))[:2]):
            try:
                values = one.samples(bench, shape, 3)
            except UnsupportedError:  # a work-group that is too large for this device
                assert number > 0
                continue
            assert len(values) == 3 and all(math.isfinite(value) and value > 0 for value in values), shape
    finally:
        bench.close()
    assert device.allocated == before


@pytest.mark.parametrize("name", ["h2d_pageable", "h2d_pinned", "d2h_pageable", "d2h_pinned"])
def test_transfers_move_the_bytes(bench: Bench, name: str) -> None:
    one = KINDS[name]
    shape = next(iter(one.shapes(bench, True)))
    host = bench.host(one.pinned, shape["bytes"])  # type: ignore[attr-defined]
    buffer = bench.buffer(f"transfer {shape['bytes']}", shape["bytes"])
    to_device = name.startswith("h2d")
    bench.device.fill(buffer, 7)
    host[:] = 9
    one.samples(bench, shape, 1)
    assert (host == (9 if to_device else 7)).all()
    assert (bench.device.read(buffer, np.uint8, (shape["bytes"],)) == (9 if to_device else 7)).all()


def test_matrix_kernels_multiply_as_often_as_counted(cuda: OpenDevice) -> None:
    """Operands of one: every result is the number of products that went into it."""
    if "mma" not in cuda.info.capabilities:
        pytest.skip(f"{cuda.info.id} has no mma")
    ones = {"tf32": 0x3F800000, "bf16": 0x3F803F80, "int8": 0x01010101}
    for name in ("tf32_mma", "bf16_mma", "int8_mma"):
        one, bench = KINDS[name], small(cuda)
        assert isinstance(one, MatrixRate)
        for shape in some(bench, name):
            chosen = one.execution(bench, shape, 1)
            cuda.write(bench.buffer(f"operands {one.operand}", 1), np.full(WORDS, ones[one.operand], np.uint32))
            chosen.run()
            items = shape["groups"] * shape["group"]
            kind_ = np.int32 if one.operand == "int8" else np.float32
            found = cuda.read(bench.out(items), kind_, (items,)).astype(np.float64)
            results = 128 * SLICES if shape["path"] == "wgmma" else 4 * shape["chains"]
            assert (found == 32 * results * DEPTH[one.operand]).all(), shape
            assert 2 * found.sum() == chosen.amount, shape
        bench.close()


def test_operands_of_matrix_units_are_not_zero() -> None:
    for name in ("tf32", "bf16", "int8"):
        words = operands(name, 4096)
        assert words.shape == (4096,) and words.dtype == np.uint32
        assert np.array_equal(words, operands(name, 4096)), "seeded"
        halves = words.view({"tf32": np.uint32, "bf16": np.uint16, "int8": np.uint8}[name])
        assert (halves != 0).all() and len(np.unique(halves)) > 100


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90"])
def test_every_kernel_compiles_for_cuda(target: str) -> None:
    try:
        backend.get("cuda").build("probe.cu", "__kernel void k(__global float *x) {}", {})
    except UnavailableError as error:
        pytest.skip(str(error))
    info = cuda_info(target).model_copy(update={"last_level_cache_bytes": 40 << 20})
    device = OfflineDevice(info)
    bench = SmallBench(device)  # type: ignore[arg-type]
    instructions: dict[str, str] = {}
    for name, one in KINDS.items():
        if not set(one.needs) <= set(info.capabilities):
            assert target == "sm_75" and name.endswith("_mma")
            continue
        first = len(device.artifacts)
        for shape in some(bench, name):
            if isinstance(one, Rate):
                one.execution(bench, shape, 1)
            elif isinstance(one, Stream):
                one.execution(bench, shape)
        instructions[name] = "\n".join(artifact.listing["ptx"] for artifact in device.artifacts[first:])
    assert all(artifact.code[:4] == b"\x7fELF" for artifact in device.artifacts)
    arches = {option for artifact in device.artifacts for option in artifact.options if option.startswith("-arch")}
    assert arches == {f"-arch={target}", *(["-arch=sm_90a"] if target == "sm_90" else [])}
    assert "dp4a" in instructions["dp4a"] and "st.global.cs" in instructions["dram_copy"]
    if target != "sm_75":
        for name, types in (("tf32_mma", "tf32.tf32"), ("bf16_mma", "bf16.bf16"), ("int8_mma", "s8.s8")):
            found = set(re.findall(r"(wgmma\.mma_async|mma\.sync)\.\S+" + types, instructions[name]))
            assert found == ({"wgmma.mma_async", "mma.sync"} if target == "sm_90" else {"mma.sync"})


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
    assert set(KINDS) - {"l1_read", "l2_read", "l3_read", "tf32_mma", "bf16_mma", "int8_mma"} <= set(found.entries)
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


def made(value: float, **more: Any) -> Ceiling:
    """A ceiling with an interval of 1 % to either side."""
    return Ceiling(value=value, low=0.99 * value, high=1.01 * value, **{"unit": "B/s", **more})


def test_a_probe_raises_and_never_lowers() -> None:
    first = {"dram_read": made(100.0, sweep={"a": 1.0}), "fp32_fma": made(50.0)}
    known = Ceilings(device="d", driver="", date="then", entries=first)
    lower = known.model_copy(update={"date": "now", "entries": {"dram_read": made(80.0)}})
    assert raise_to(known, lower) is known
    higher = known.model_copy(update={"date": "now", "entries": {"dram_read": made(120.0)}})
    raised = raise_to(known, higher)
    assert raised.entries["dram_read"].value == 120.0 and raised.entries["dram_read"].sweep == {"a": 1.0}
    assert raised.entries["fp32_fma"] == first["fp32_fma"] and raised.date == "now"


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


H200 = cuda_info("sm_90").model_copy(update={"name": "NVIDIA H200", "compute_units": 132, "clock_mhz": 1980})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dram_read", 4.8e12), ("fp32_fma", 66.908e12), ("bf16_mma", 1070.5e12), ("tf32_mma", 535.3e12),
        ("int8_mma", 2141.0e12), ("local_read", 33.454e12), ("local_conflict", 1.0454e12), ("int32_mad", 33.454e12),
        ("atomic_global_one", None), ("launch_latency", None), ("l2_read", None), ("h2d_pinned", 63.015e9),
    ],
)  # fmt: skip
def test_theory_by_data_sheet_and_clock(name: str, expected: float | None) -> None:
    value, basis = theory(name, H200)
    assert value == (pytest.approx(expected, rel=1e-3) if expected else None) and bool(basis) == bool(expected)
    assert theory(name, H200.model_copy(update={"name": "another", "clock_mhz": None})) == (None, "")


def test_a_ceiling_above_theory_is_flagged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = list(KINDS["fp32_fma"].shapes(bench, False))[:1]
    monkeypatch.setattr(type(KINDS["fp32_fma"]), "shapes", lambda self, bench, full: shapes)
    for limit, above in ((1.0, True), (1e20, False), (None, False)):
        monkeypatch.setattr(sweeping, "theory", lambda name, info, limit=limit: (limit, "invented"))
        found, _ = sweeping._measure(bench, KINDS["fp32_fma"], False)
        assert found is not None and found.above_theory == above and found.theory == limit


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


def test_kernels_are_compiled_once_for_all_benches_of_a_device(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every group of cases is probed before and after, each time on a bench of its own."""
    asked: list[str] = []
    load = opencl.load
    monkeypatch.setattr(opencl, "load", lambda artifact: asked.append(artifact.source_hash) or load(artifact))
    vars(opencl).pop("_ceiling_modules", None)
    for _ in range(2):
        bench = small(opencl)
        bench.kernel("empty.cl", "empty", {})
        bench.close()
    assert len(asked) == 1
