"""A CUDA device: what it reserves for a kernel, without a GPU; the rest where there is one."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfport.backend import OpenDevice, nvrtc
from perfport.backend.cuda_device import STATIC_LOCAL_BYTES, CudaDevice, CudaModule


def test_all_who_ask_for_a_kernel_share_what_is_reserved_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = pytest.importorskip("cupy_backends.cuda.api.driver")
    limits: dict[int, int] = {}
    monkeypatch.setattr(driver, "funcGetAttribute", lambda attribute, function: 64)
    monkeypatch.setattr(driver, "funcSetAttribute", lambda function, attribute, value: limits.update({function: value}))
    functions = {"a": 1, "b": 2}
    module = CudaModule(SimpleNamespace(get_function=lambda name: SimpleNamespace(ptr=functions[name])))
    module.kernel("a").reserve(100_000)
    module.kernel("a").reserve(60_000)  # of another setup: the limit must not fall
    module.kernel("b").reserve(STATIC_LOCAL_BYTES)
    assert limits == {1: 100_000}
    assert module.kernel("a") is module.kernel("a") and module.kernel("b").name == "b"


def test_pools_of_both_libraries_are_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[str] = []
    device: Any = object.__new__(CudaDevice)
    pool = SimpleNamespace(free_all_blocks=lambda: emptied.append("cupy"))
    device.cupy = SimpleNamespace(get_default_memory_pool=lambda: pool)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    device.trim()
    assert emptied == ["cupy"], "PyTorch is not imported for it"
    torch = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: emptied.append("torch")))
    monkeypatch.setitem(sys.modules, "torch", torch)
    device.trim()
    assert emptied == ["cupy", "cupy", "torch"]


def test_the_arena_takes_all_of_shared_memory(cuda: OpenDevice) -> None:
    source = """
    __kernel void far(__global int *out, int last) {
        LOCAL_ARENA(int, arena, 1);
        arena[last - get_local_id(0)] = get_local_id(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        out[get_local_id(0)] = arena[last - get_local_id(0)];
    }"""
    artifact = nvrtc.build("far.cl", source, {}, cuda.target)
    out, nbytes = cuda.empty(128), cuda.info.local_memory_bytes
    cuda.launch(cuda.load(artifact).kernel("far"), 1, 32, out, np.int32(nbytes // 4 - 1), local_bytes=nbytes)
    assert np.array_equal(cuda.read(out, np.int32, (32,)), np.arange(32))


def test_clocks_are_read(cuda: OpenDevice) -> None:
    pytest.importorskip("pynvml")
    clocks: dict[str, Any] = cuda.clocks()
    assert clocks["sm_mhz"] > 0 and isinstance(clocks["throttled"], list)
