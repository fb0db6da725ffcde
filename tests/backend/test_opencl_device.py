"""What is an OpenCL device's own: messages of the compiler, memory, queues (test_base.py has the protocol)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.model.errors import CompileError, DeviceMemoryError, UnsupportedError


def refused(code: int) -> cl.Error:
    """An error of the runtime."""
    told: Any = SimpleNamespace(code=lambda: code, routine=lambda: "planted", what=lambda: "planted")
    return cl.RuntimeError(told)


def test_error_lines_refer_to_the_kernel_file(opencl: OpenDevice) -> None:
    with pytest.raises(CompileError) as caught:
        opencl.load(backend.get("opencl").build("mine.cl", "\n\n__kernel void k(void) { oops(); }", {}, None))
    assert "mine.cl:3" in caught.value.log


def test_a_buffer_above_the_largest_is_refused_before_it_is_asked_for(opencl: OpenDevice) -> None:
    nbytes = opencl.info.max_alloc_bytes + 1
    with pytest.raises(DeviceMemoryError, match=f"a buffer of {nbytes} bytes exceeds the largest"):
        opencl.empty(nbytes)


def test_an_image_is_read_and_written_through_one_handle(opencl: OpenDevice) -> None:
    if "images" not in opencl.info.capabilities:
        pytest.skip(f"{opencl.info.id} has no images")
    image = opencl.image(3, 2)
    assert image.read is image.write and (image.width, image.height) == (3, 2)


def test_a_copy_into_an_image_counts_as_a_launch(opencl: OpenDevice) -> None:
    if "images" not in opencl.info.capabilities:
        pytest.skip(f"{opencl.info.id} has no images")
    image, pixels = opencl.image(3, 2), opencl.upload(np.zeros((2, 3, 4), np.float32))
    assert list(opencl.timed(lambda: opencl.copy_to_image(pixels, image)).kernels) == ["copy_buffer_to_image"]


@pytest.mark.parametrize("capabilities", [["opencl"], ["opencl", "full_groups"]], ids=["stated", "tried"])
def test_a_work_group_above_what_the_runtime_states(opencl: OpenDevice, capabilities: list[str]) -> None:
    """It is refused, unless trials have shown that the runtime runs it; if it does not after all, it says so."""
    device: Any = backend.get("opencl").open(opencl.info.model_copy(update={"capabilities": capabilities}))
    artifact = backend.get("opencl").build("mine.cl", "__kernel void k(__global int *x) { x[0] = 1; }", {}, None)
    kernel, buffer = device.load(artifact).kernel("k"), device.empty(4)
    kernel.stated_group = 64
    if "full_groups" not in capabilities:
        kernel.resources["max_work_group"] = 64
        with pytest.raises(UnsupportedError, match="needs a work-group of 128"):
            device.launch(kernel, 1, 128, buffer)
        return
    assert kernel.resources["max_work_group"] == opencl.info.max_work_group
    device.launch(kernel, 1, 128, buffer)
    device.finish()

    def refuses(*args: Any) -> None:
        raise refused(cl.status_code.OUT_OF_RESOURCES)

    kernel.handle = refuses
    with pytest.raises(UnsupportedError, match=r"k in work-groups of 128: .* refuses the launch"):
        device.launch(kernel, 1, 128, buffer)
    with pytest.raises(DeviceMemoryError):
        device.launch(kernel, 1, 64, buffer)


def test_ptx_is_loaded_as_a_binary_no_newer_than_the_driver(
    opencl: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No platform here takes it: what is handed to the runtime is looked at, and its refusal is a compile error."""
    device: Any = backend.get("opencl").open(opencl.info)
    handed = []

    class Program:
        """The runtime's, whose own compiler writes PTX 8.8."""

        def __init__(self, context: Any, first: Any, binaries: Any = None) -> None:
            handed.append((first, binaries))

        def build(self, options: Any = None, cache_dir: Any = None) -> Program:
            if handed[-1][1] is not None:
                raise refused(cl.status_code.BUILD_PROGRAM_FAILURE)
            return self

        def get_info(self, what: Any) -> list[bytes]:
            return [b"// by a driver\n.version 8.8\n.target sm_90\n"]

        def get_build_info(self, of: Any, what: Any) -> str:
            return "planted log"

    monkeypatch.setattr(cl, "Program", Program)
    artifact = backend.get("opencl").assemble("mine.ptx", ".version 9.5\n.target sm_90\n", "dp4a+sm_90")
    assert artifact.options == ("-arch=sm_90",)
    with pytest.raises(CompileError, match=r"mine\.ptx does not compile") as caught:
        device.load(artifact)
    assert caught.value.log == "planted log"
    assert handed[-1] == ([device.device], [b".version 8.8\n.target sm_90\n"])
