"""Which devices a selector of users names."""

from __future__ import annotations

import pytest

from perfport.model.device import DeviceInfo

SIZES = {"compute_units": 1, "memory_bytes": 1, "max_alloc_bytes": 1, "local_memory_bytes": 1, "max_work_group": 1}
POCL = DeviceInfo(
    id="opencl:pocl:0", backend="opencl", platform="Portable Computing Language", name="cpu-skylake Tesla V",
    chip="Skylake", kind="cpu", **SIZES,
)  # fmt: skip
NVIDIA = DeviceInfo(
    id="opencl:nvidia:0", backend="opencl", platform="NVIDIA CUDA", name="Tesla V100", chip="GV100", kind="gpu", **SIZES
)
CUDA = NVIDIA.model_copy(update={"id": "cuda:nvidia:0", "backend": "cuda"})


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        ("all", [POCL, NVIDIA, CUDA]),
        ("CPU", [POCL]),
        ("gpu", [NVIDIA, CUDA]),
        ("cuda", [CUDA]),  # not the OpenCL platform that NVIDIA calls so
        ("opencl", [POCL, NVIDIA]),
        ("nvidia", [NVIDIA, CUDA]),
        ("opencl:pocl", [POCL]),
        ("opencl:poc", []),
        ("cuda:nvidia:0", [CUDA]),
        ("tesla", [NVIDIA, CUDA]),  # of a CPU the name is not looked at
        ("portable", [POCL]),
    ],
)
def test_selectors(selector: str, named: list[DeviceInfo]) -> None:
    assert [device for device in (POCL, NVIDIA, CUDA) if device.matches(selector)] == named


def test_platforms_over_one_processor_agree_on_it_and_equal_chips_do_not() -> None:
    cuda = CUDA.model_copy(update={"pci": "0000:3B:00.0"})
    opencl = NVIDIA.model_copy(update={"pci": "0000:3b:00.0"})
    other = NVIDIA.model_copy(update={"pci": "0000:5e:00.0"})
    assert cuda.processor == opencl.processor != other.processor
    assert POCL.processor == "Skylake" == POCL.model_copy(update={"id": "opencl:intel:0"}).processor
