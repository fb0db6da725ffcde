"""PTX of others as NVIDIA's OpenCL takes it: what NVRTC and the generators write, changed where it has to be."""

from __future__ import annotations

import re

import pytest

from perfport.backend import assembler, ptx
from perfport.backend.cuda import CudaBackend

KERNELS = """
__kernel void one(__global const float *RESTRICT a, uint n, __global float *b) {
    LOCAL_ARENA(float, box, 64);
    uint i = get_local_id(0);
    box[i] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) b[i] = box[63 - i];
}
__kernel void two(__global float *b) { b[0] = 1.0f; }
"""


@pytest.fixture(scope="module")
def compiled() -> str:
    pytest.importorskip("cupy")
    return CudaBackend().ptx("k.cl", KERNELS, {}, "sm_80")


def test_pointers_are_declared_and_local_memory_has_a_size(compiled: str) -> None:
    text = ptx.for_opencl(compiled, 256)
    parameters = re.findall(r"\.param [^,)]*", text.split("{")[0])
    assert [".ptr .global .align 4" in parameter for parameter in parameters] == [True, False, True]
    assert text.count(".ptr") == 3, "of both kernels"
    assert ".extern" not in text and ".shared .align 16 .b8 perfport_arena_[256];" in text
    assembler.assemble("k.ptx", text, ["-arch=sm_80"])


def test_what_is_declared_already_stays_so(compiled: str) -> None:
    once = ptx.for_opencl(compiled, 256)
    assert ptx.for_opencl(once, 512) == once


def test_functions_that_are_no_kernels_keep_their_parameters() -> None:
    text = ".func (.param .b64 result) f(.param .u64 x) { }\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{ }"
    assert ptx.for_opencl(text, 0).count(".ptr") == 1 and "f(.param .u64 x)" in ptx.for_opencl(text, 0)


@pytest.mark.parametrize(
    ("named", "newest", "becomes"),
    [
        ("9.5", (9, 0), "9.0"),
        ("9.0", (9, 0), "9.0"),
        ("8.7", (9, 0), "8.7"),
        ("8.10", (8, 9), "8.9"),
        ("7.8", None, "7.8"),
    ],
)
def test_a_version_that_the_driver_does_not_know(named: str, newest: tuple[int, int] | None, becomes: str) -> None:
    text = ptx.at_most(f"// made by x\n.version {named}\n.target sm_90\n", newest)
    assert text == f"// made by x\n.version {becomes}\n.target sm_90\n"


def test_a_text_without_a_version() -> None:
    assert ptx.version("\x7fELF") is None and ptx.at_most("nothing", (8, 0)) == "nothing"
