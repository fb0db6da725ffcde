"""PTX assembled without a GPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from perfport.backend import OpenDevice, assembler
from perfport.backend.cuda import CudaBackend
from perfport.model.errors import CompileError, UnavailableError

PTX = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .b64 %rd<2>;
	.reg .b32 %r<2>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, 0x3FC00000;
	st.global.u32 [%rd1], %r1;
	ret;
}
"""


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """Skip the module, visibly, without the assembler's wheel."""
    try:
        assembler.assemble("probe", PTX, ("-arch=sm_90",))
    except UnavailableError as error:
        pytest.skip(str(error))


def test_threads_assemble_side_by_side() -> None:
    with ThreadPoolExecutor(2) as pool:
        cubins = [cubin for cubin, _ in pool.map(lambda _: assembler.assemble("k", PTX, ("-arch=sm_90",)), range(4))]
    assert cubins[0][:4] == b"\x7fELF" and cubins == [cubins[0]] * 4


def test_what_does_not_assemble_is_named_with_the_log() -> None:
    with pytest.raises(CompileError, match=r"bad\.ptx does not assemble for -arch=sm_90") as caught:
        assembler.assemble("bad.ptx", PTX.replace("st.global", "store.global"), ("-arch=sm_90",))
    assert "any known instruction" in caught.value.log
    with pytest.raises(CompileError, match=r"k: nvJitLink refuses -nonsense \(status \d+\)"):
        assembler.assemble("k", PTX, ("-nonsense",))


def test_the_artifact_is_a_cubin_and_its_ptx() -> None:
    artifact = CudaBackend().assemble("k.ptx", PTX, "sm_90")
    assert artifact.code[:4] == b"\x7fELF" and artifact.options == ("-arch=sm_90",) and artifact.listing["ptx"] == PTX


def test_assembled_code_runs(cuda: OpenDevice) -> None:
    ptx = CudaBackend().ptx(
        "k.cl", "__kernel void k(__global float *x) { x[get_global_id(0)] = 1.5f; }", {}, cuda.target
    )
    out = cuda.empty(128)
    cuda.launch(cuda.load(CudaBackend().assemble("k", ptx, cuda.target)).kernel("k"), 1, 32, out)
    assert np.array_equal(cuda.read(out, np.float32, (32,)), np.full(32, 1.5))
