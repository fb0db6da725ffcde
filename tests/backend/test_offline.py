"""The device that compiles and never runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import nvidia_opencl
import pytest

from perfport import backend
from perfport.backend import OpenDevice
from perfport.backend.base import Artifact
from perfport.backend.offline import OfflineDevice, cuda_info, nvidia_opencl_info


@pytest.mark.parametrize(
    ("target", "capability", "matrix"),
    [("sm_75", "7.5", set()), ("sm_80", "8.0", {"mma"}), ("sm_90", "9.0", {"mma", "wgmma"})],
)
def test_a_target_is_described_as_a_device(target: str, capability: str, matrix: set[str]) -> None:
    info = cuda_info(target)
    assert (info.compute_capability, info.kind, info.backend) == (capability, "gpu", "cuda")
    assert {"mma", "wgmma"} & set(info.capabilities) == matrix
    assert OfflineDevice(info).target == target


def test_it_keeps_what_it_is_asked_to_load_and_runs_nothing() -> None:
    device: Any = OfflineDevice(cuda_info("sm_90"))
    artifact = Artifact("cuda", "k.cl", b"", (), "digest", "cubin")
    kernel, ran = device.load(artifact).kernel("k"), []
    buffer = device.upload(np.ones(3, np.float32))
    device.launch(kernel, 1, 1, buffer)
    times = device.timed(lambda: ran.append(1))
    assert device.artifacts == [artifact] and kernel.name == "k"
    assert buffer.nbytes == 12 and not device.read(buffer, np.float32, (3,)).any()
    assert not ran and (times.span, times.launches) == (0.0, 0) and device.clocks() == {}


@pytest.mark.parametrize("backend_name", ["opencl", "cuda", "offline"])
def test_every_device_implements_the_whole_protocol(backend_name: str) -> None:
    from perfport.backend import cuda_device, opencl_device

    assert backend.NAMES == ("opencl", "cuda")
    devices = {"opencl": opencl_device.OpenCLDevice, "cuda": cuda_device.CudaDevice, "offline": OfflineDevice}
    asked = {name for name, member in vars(OpenDevice).items() if callable(member) and not name.startswith("_")}
    assert {"launch", "timed", "copy_to_image"} <= asked
    assert not {name for name in asked if not callable(getattr(devices[backend_name], name, None))}


def test_nvidias_opencl_is_described_as_trials_find_it() -> None:
    """But for what PoCL's compiler alone takes, which a GPU's description has."""
    found = nvidia_opencl.tried("9.0")
    assert set(nvidia_opencl_info("sm_90").capabilities) == set(found.capabilities) - {"vnni"}
