"""What is OpenCL's own: names, targets, opening by id (test_base.py has the protocol)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.model.device import DeviceInfo
from perfport.model.errors import UnsupportedError


def test_slugs() -> None:
    from perfport.backend.opencl import _slug

    named = {
        "Portable Computing Language": "pocl",
        "Intel(R) OpenCL": "intel",
        "NVIDIA CUDA": "nvidia",
        "Some (New) Thing!": "some-new-thing",
        "AMD Accelerated Parallel Processing": "amd",
        "***": "unknown",
    }
    assert {name: _slug(name) for name in named} == named


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ({"pci_bus_id_nv": 0x3B, "pci_slot_id_nv": 0, "pci_domain_id_nv": 0}, "0000:3b:00.0"),
        ({"pci_bus_id_nv": 0, "pci_slot_id_nv": 0x1F << 3 | 2}, "0000:00:1f.2"),
        ({"pci_bus_id_nv": 1}, ""),
        ({}, ""),
    ],
)
def test_the_address_on_the_bus(told: dict[str, int], address: str) -> None:
    from perfport.backend.opencl import _pci

    assert _pci(cast(Any, SimpleNamespace(**told))) == address


def test_building_needs_no_device_and_keeps_line_numbers() -> None:
    artifact = backend.get("opencl").build("mine.cl", "kernel text", {"B": 2, "A": 1}, None)
    assert '#line 1 "mine.cl"\nkernel text' in artifact.code.decode()
    assert artifact.options[-2:] == ("-DA=1", "-DB=2") and "-cl-std=CL1.2" in artifact.options


def test_platforms_over_one_processor_share_its_name(opencl_infos: list[DeviceInfo]) -> None:
    chips = {info.chip for info in opencl_infos if info.kind == "cpu"}
    assert len(chips) <= 1 and not any(chip.startswith("pthread") for chip in chips)


def test_a_device_that_is_not_here(opencl: OpenDevice) -> None:
    other = opencl.info.model_copy(update={"id": "opencl:none:9", "name": "none", "driver": "0"})
    with pytest.raises(UnsupportedError, match="opencl:none:9 is not visible"):
        backend.get("opencl").open(other)


def test_features_of_a_target_are_macros_of_the_dialect() -> None:
    def flags(target: str | None) -> set[str]:
        options = backend.get("opencl").build("mine.cl", "", {}, target).options
        return {option for option in options if option.startswith("-DPERFPORT")}

    assert flags(None) == set() and flags("sm_90") == set()
    assert flags("dp4a+wide_loads+sm_90") == {"-DPERFPORT_DP4A", "-DPERFPORT_WIDE_LOADS"}
    assert flags("warp_sync+") == {"-DPERFPORT_WARP_SYNC"}


def test_cuda_c_becomes_ptx_with_arenas_of_fixed_size() -> None:
    pytest.importorskip("cupy")
    source = "__kernel void k(__global float *x) { LOCAL_ARENA(float, box, N); box[0] = x[0]; x[1] = box[N - 1]; }"
    artifact = backend.get("opencl").build("mine.cu", source, {"N": 40000}, "dp4a+sm_90")
    text = artifact.code.decode()
    assert artifact.form == "ptx" and ".target sm_90\n" in text and ".param .u64 .ptr .global" in text
    assert "perfport_arena_[160000]" in text and ".extern" not in text
    assert {"-arch=sm_90", "-DN=40000"} <= set(artifact.options)
