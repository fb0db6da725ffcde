"""CUDA without a GPU: every kernel and every variant compiles; what needs a GPU runs where there is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from perfport import backend, workload
from perfport.backend import OpenDevice, cuda
from perfport.backend.cuda import CudaBackend
from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.model.errors import CompileError, UnavailableError, UnsupportedError
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
def nvrtc() -> Iterator[None]:
    """Skip the module, visibly, without the compiler's wheel. What several variants share is compiled once."""
    try:
        backend.get("cuda").build("probe.cu", "__kernel void k(__global float *x) {}", {})
    except UnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "_compile", cache(cuda._compile))
        yield


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
    try:
        made = chosen(chosen.Parameters.model_validate(chosen.presets["tiny"]), 1)
    except UnavailableError as error:
        pytest.skip(str(error))
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
    text = (files("perfport.measure.kernels") / "flush.cl").read_text()
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


def test_ptx_is_compiled_and_assembled_apart() -> None:
    cuda = CudaBackend()
    ptx = cuda.ptx("k.cl", "__kernel void k(__global float *x) { x[get_global_id(0)] = 1.0f; }", {}, "sm_90")
    assert entries(ptx) == {"k"} and ".target sm_90" in ptx and cuda.compiler.startswith("nvrtc ")
    artifact = cuda.assemble("k.ptx", ptx, "sm_90")
    assert artifact.code[:4] == b"\x7fELF" and artifact.options == ("-arch=sm_90",) and artifact.listing["ptx"] == ptx
    with ThreadPoolExecutor(2) as pool:
        assert [made.code for made in pool.map(lambda _: cuda.assemble("k", ptx, "sm_90"), range(4))] == [
            artifact.code
        ] * 4
    with pytest.raises(CompileError, match=r"bad\.ptx does not assemble for -arch=sm_90") as caught:
        cuda.assemble("bad.ptx", ptx.replace("st.global", "store.global"), "sm_90")
    assert "any known instruction" in caught.value.log
    with pytest.raises(CompileError, match=r"k\.cl does not compile for -arch=compute_75"):
        cuda.ptx("k.cl", "__kernel void k() { oops(); }", {}, "sm_75")


def test_constants_are_read_and_not_folded() -> None:
    source = """
    CONSTANT_TABLE(float, table, 2) = {1.5f, 2.5f};
    __kernel EXPLICIT_VECTORS(float4) void k(__global float *x, int zero) { x[0] = CONSTANT_AT(table, 1, zero); }"""
    ptx = backend.get("cuda").build("k.cl", source, {}, "sm_90").listing["ptx"]
    assert ".const .align 4" in ptx and "ld.const.f32" in ptx


def test_assembled_code_runs(cuda: OpenDevice) -> None:
    ptx = CudaBackend().ptx(
        "k.cl", "__kernel void k(__global float *x) { x[get_global_id(0)] = 1.5f; }", {}, cuda.target
    )
    out = cuda.empty(128)
    cuda.launch(cuda.load(CudaBackend().assemble("k", ptx, cuda.target)).kernel("k"), 1, 32, out)
    assert np.array_equal(cuda.read(out, np.float32, (32,)), np.full(32, 1.5))


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
