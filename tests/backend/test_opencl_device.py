"""What is an OpenCL device's own: messages of the compiler, memory, queues (test_base.py has the protocol)."""

from __future__ import annotations

import numpy as np
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.model.errors import CompileError, DeviceMemoryError


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
