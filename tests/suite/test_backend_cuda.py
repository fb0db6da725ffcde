"""CUDA without a GPU: every kernel and every variant compiles; what needs a GPU runs where there is one."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from perfport import backend, workload
from perfport.backend import OpenDevice
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.errors import CompileError, UnavailableError, UnsupportedError
from perfport.workload import Session, Setup

TARGETS = ("sm_75", "sm_90")
VARIANTS = [
    (one.name, problem, variant)
    for one in workload.discover().values()
    for problem, variants in one.variants.items()
    for variant, cls in variants.items()
    if cls.role != "peer"
]


@pytest.fixture(scope="module", autouse=True)
def nvrtc() -> None:
    """Skip the module, visibly, without the compiler's wheel."""
    try:
        backend.get("cuda").build("probe.cu", "__kernel void k(__global float *x) {}", {})
    except UnavailableError as error:
        pytest.skip(str(error))


def entries(ptx: str) -> set[str]:
    """Names of the kernels in PTX."""
    return set(re.findall(r"\.entry (\w+)", ptx))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("workload_name", "problem", "variant"), VARIANTS)
def test_every_variant_compiles(workload_name: str, problem: str, variant: str, target: str) -> None:
    found = workload.discover()[workload_name]
    cls, info = found.variant(problem, variant), cuda_info(target)
    try:
        cls.require(info)
    except (UnsupportedError, UnavailableError) as error:
        pytest.skip(str(error))
    chosen = found.problem(problem)
    device = OfflineDevice(info)
    made = chosen(chosen.Parameters.model_validate(chosen.presets["tiny"]), 1)
    setup = Setup(
        Session(device, made, found.folder),  # type: ignore[arg-type]
        {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}, {},
    )  # fmt: skip
    cls(setup)
    assert setup.artifacts and all(f"-arch={target}" in artifact.options for artifact in setup.artifacts)
    compiled = {name for artifact in device.artifacts for name in entries(artifact.listing["ptx"])}
    assert {kernel.name for kernel in setup.kernels} <= compiled
    assert all(f".target {target}" in artifact.listing["ptx"] and artifact.code for artifact in device.artifacts)


@pytest.mark.parametrize("target", TARGETS)
def test_the_flush_compiles(target: str) -> None:
    text = (files("perfport.kernels") / "flush.cl").read_text()
    assert entries(backend.get("cuda").build("flush.cl", text, {}, target).listing["ptx"]) == {"flush"}


def test_cubins_carry_options_that_match_opencl() -> None:
    source = "__kernel void k(__global float *x) { x[0] = 1.0f / x[0]; }"
    artifact = backend.get("cuda").build("k.cl", source, {}, "sm_90")
    assert artifact.code[:4] == b"\x7fELF"
    assert {"-ftz=false", "-prec-div=true", "-prec-sqrt=true"} <= set(artifact.options)
    assert "div.rn.f32" in artifact.listing["ptx"] or "rcp.rn.f32" in artifact.listing["ptx"]


def test_compile_errors_carry_the_log() -> None:
    with pytest.raises(CompileError, match=r"mine\.cl does not compile for -arch=sm_75") as caught:
        backend.get("cuda").build("mine.cl", "\n__kernel void k(__global float *x) { oops(); }", {"A": 1}, "sm_75")
    assert 'identifier "oops" is undefined' in caught.value.log and "mine.cl(2)" in caught.value.log


def test_the_arena_takes_all_of_shared_memory(cuda: OpenDevice) -> None:
    source = """
    __kernel void far(__global int *out, int last) {
        LOCAL_ARENA(int, arena, 1);
        arena[last - get_local_id(0)] = get_local_id(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        out[get_local_id(0)] = arena[last - get_local_id(0)];
    }"""
    artifact = backend.get("cuda").build("far.cl", source, {}, cuda.target)
    out, nbytes = cuda.empty(128), cuda.info.local_memory_bytes
    cuda.launch(cuda.load(artifact).kernel("far"), 1, 32, out, np.int32(nbytes // 4 - 1), local_bytes=nbytes)
    assert np.array_equal(cuda.read(out, np.int32, (32,)), np.arange(32))


def test_clocks_are_read(cuda: OpenDevice) -> None:
    pytest.importorskip("pynvml")
    clocks: dict[str, Any] = cuda.clocks()
    assert clocks["sm_mhz"] > 0 and isinstance(clocks["throttled"], list)
