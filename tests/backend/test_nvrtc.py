"""CUDA C++ compiled without a GPU: options, error messages, constants."""

from __future__ import annotations

import pytest

from perfport.backend import nvrtc
from perfport.model.errors import CompileError, UnavailableError


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    """Skip the module, visibly, without the compiler's wheel."""
    try:
        nvrtc.version()
    except UnavailableError as error:
        pytest.skip(str(error))


def test_cubins_carry_options_that_match_opencl() -> None:
    source = "__kernel void k(__global float *x) { x[0] = 1.0f / x[0]; }"
    artifact = nvrtc.build("k.cl", source, {}, "sm_90")
    assert artifact.code[:4] == b"\x7fELF"
    assert {"-ftz=false", "-prec-div=true", "-prec-sqrt=true"} <= set(artifact.options)
    assert "div.rn.f32" in artifact.listing["ptx"] or "rcp.rn.f32" in artifact.listing["ptx"]


def test_compile_errors_carry_the_log() -> None:
    with pytest.raises(CompileError, match=r"mine\.cl does not compile for -arch=sm_75") as caught:
        nvrtc.build("mine.cl", "\n__kernel void k(__global float *x) { oops(); }", {"A": 1}, "sm_75")
    assert 'identifier "oops" is undefined' in caught.value.log and "mine.cl(2)" in caught.value.log


def test_ptx_alone_is_that_of_the_cubin() -> None:
    source = "__kernel void k(__global float *x) { x[get_global_id(0)] = VALUE; }"
    ptx = nvrtc.build_ptx("k.cl", source, {"VALUE": "1.0f"}, "sm_90")
    assert ".entry k" in ptx and ".target sm_90" in ptx and nvrtc.version().startswith("nvrtc ")
    assert (
        ptx.split("{", 1)[1] == nvrtc.build("k.cl", source, {"VALUE": "1.0f"}, "sm_90").listing["ptx"].split("{", 1)[1]
    )
    with pytest.raises(CompileError, match=r"k\.cl does not compile for -arch=compute_75"):
        nvrtc.build_ptx("k.cl", "__kernel void k() { oops(); }", {}, "sm_75")


def test_constants_are_read_and_not_folded() -> None:
    source = """
    CONSTANT_TABLE(float, table, 2) = {1.5f, 2.5f};
    __kernel EXPLICIT_VECTORS(float4) void k(__global float *x, int zero) { x[0] = CONSTANT_AT(table, 1, zero); }"""
    ptx = nvrtc.build("k.cl", source, {}, "sm_90").listing["ptx"]
    assert ".const .align 4" in ptx and "ld.const.f32" in ptx
