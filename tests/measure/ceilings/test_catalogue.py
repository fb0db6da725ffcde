"""Every ceiling runs, compiles for each target and gives a sane rate."""

from __future__ import annotations

import math
import re

import pytest
from ceilings_bench import SmallBench, small, some

from perfport import backend
from perfport.backend import OpenDevice
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.measure.ceilings import (
    KINDS,
    kind,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.caches import Level
from perfport.measure.ceilings.kind import NoCeilingError, Rate, label
from perfport.measure.ceilings.streams import Stream
from perfport.measure.roofline import INTEGER_CEILINGS, INTEGER_UNITS, SPECIAL_CEILINGS
from perfport.model.errors import UnavailableError, UnsupportedError

#: Ceilings that a device without caches that it tells of has not.
OF_LEVELS = ("l1_read", "l2_read", "l3_read", "gather_l1", "gather_l2")


def test_the_bounds_find_their_ceilings() -> None:
    named = {"dram_read", "dram_copy", "fp32_fma", "l1_read", "l2_read", "local_read", "atomic_global_many"}
    named |= {"atomic_local_many", *INTEGER_CEILINGS, *INTEGER_UNITS, *SPECIAL_CEILINGS}
    assert named <= set(KINDS)
    assert {one.unit for one in KINDS.values()} == {"B/s", "FLOP/s", "op/s", "s"}
    lower = [name for name, one in KINDS.items() if one.direction == "lower"]
    assert lower == ["launch_latency", "empty_span", "grid_barrier"]


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
        if name not in (*OF_LEVELS, "tf32_mma", "bf16_mma", "int8_mma"):
            assert quick, name
        assert len(quick) <= len({label(shape) for shape in KINDS[name].shapes(bench, True)}), name


@pytest.mark.parametrize("name", list(KINDS))
def test_every_ceiling_gives_a_rate(device: OpenDevice, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the machinery of the sweep, at small scale."""
    monkeypatch.setattr(kind, "SAMPLE_S", 0.0)
    for module in ("caches", "gathers"):
        known = dict.fromkeys((1, 2, 3), Level(1 << 15, False))
        monkeypatch.setattr(f"perfport.measure.ceilings.{module}.levels", lambda info, known=known: known)
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
            except NoCeilingError:  # a CPU's work-groups need not run at the same time
                assert bench.cpu and name == "grid_barrier"
                continue
            assert len(values) == 3 and all(math.isfinite(value) and value > 0 for value in values), shape
    finally:
        bench.close()
    assert device.allocated == before


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
    assert "ld.shared.u32" in instructions["gather_local"] and "st.shared.u32" in instructions["gather_local"]
    assert {"atom.global", "membar", "bar.sync"} <= set(re.findall(
        r"\b(atom\.global|membar|fence\.acq_rel\.gpu|bar\.sync|ld\.volatile)", instructions["grid_barrier"]
    ))  # fmt: skip
    if target != "sm_75":
        for name, types in (("tf32_mma", "tf32.tf32"), ("bf16_mma", "bf16.bf16"), ("int8_mma", "s8.s8")):
            found = set(re.findall(r"(wgmma\.mma_async|mma\.sync)\.\S+" + types, instructions[name]))
            assert found == ({"wgmma.mma_async", "mma.sync"} if target == "sm_90" else {"mma.sync"})
