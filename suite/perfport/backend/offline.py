"""A device that compiles and never runs: what a variant's kernels become for a target that is not here.

Continuous integration compiles every portable kernel for CUDA with it, and ``perfport show --ptx`` prints from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.device import DeviceInfo
from .base import Artifact, Times, target_of
from .cuda import matrix_capabilities


@dataclass
class OfflineKernel:
    """A kernel's name."""

    name: str
    resources: dict[str, int] = field(default_factory=dict)


class OfflineModule:
    """Hands out kernels by name."""

    def kernel(self, name: str) -> OfflineKernel:
        """Return a kernel of that name."""
        return OfflineKernel(name)


@dataclass
class OfflineBuffer:
    """A size without memory."""

    nbytes: int

    def free(self) -> None:
        """Nothing to give back."""


@dataclass
class OfflineImage:
    """A size without memory; the handles are zero."""

    width: int
    height: int
    read: Any = 0
    write: Any = 0


def cuda_info(target: str) -> DeviceInfo:
    """Describe a CUDA device of a compile target (``sm_90``), with the limits common to all that NVRTC serves."""
    digits = target.removeprefix("sm_")
    capability = (int(digits[:-1]), int(digits[-1]))
    return DeviceInfo(
        id=f"cuda:offline-{target}:0", backend="cuda", platform="NVIDIA CUDA (compile only)", name=target, chip=target,
        vendor="NVIDIA Corporation", kind="gpu", compute_units=1, memory_bytes=1 << 40, max_alloc_bytes=1 << 40,
        local_memory_bytes=64 << 10, max_work_group=1024, hardware_thread=32, image2d_max_width=1 << 16,
        image2d_max_height=1 << 16, compute_capability=f"{digits[:-1]}.{digits[-1]}",
        capabilities=["cuda", "ptx", "images", "fp64", "dp4a", *matrix_capabilities(capability)],
    )  # fmt: skip


def opencl_info(kind: str) -> DeviceInfo:
    """Describe an OpenCL device of a kind (``cpu``, ``gpu``), whose runtime would compile when it loads."""
    return DeviceInfo(
        id=f"opencl:offline-{kind}:0", backend="opencl", platform="OpenCL (source only)", name=kind, chip=kind,
        kind=kind, compute_units=1, memory_bytes=1 << 40, max_alloc_bytes=1 << 40, local_memory_bytes=64 << 10,
        max_work_group=1024, image2d_max_width=1 << 16, image2d_max_height=1 << 16,
        capabilities=["opencl", "unaligned_vload", "images", "fp64", "vnni"],
    )  # fmt: skip


def nvidia_opencl_info(target: str) -> DeviceInfo:
    """Describe a GPU of NVIDIA's as its OpenCL runtime does, with all that `opencl_trials` finds it to take."""
    cuda = cuda_info(target)
    found = ["warp_sync", "wide_loads", "full_groups"]
    shared = [name for name in cuda.capabilities if name != "cuda"]
    return cuda.model_copy(update={
        "id": f"opencl:offline-{target}:0", "backend": "opencl", "platform": "NVIDIA OpenCL (compile only)",
        "capabilities": ["opencl", *found, *shared],
    })  # fmt: skip


class OfflineDevice:
    """Implements the device protocol without a device; the artifacts it is asked to load are kept."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.target = target_of(info)
        self.allocated = 0
        self.artifacts: list[Artifact] = []

    def load(self, artifact: Artifact) -> OfflineModule:
        """Keep the artifact."""
        self.artifacts.append(artifact)
        return OfflineModule()

    def empty(self, nbytes: int) -> OfflineBuffer:
        """Return a size."""
        return OfflineBuffer(nbytes)

    def upload(self, array: np.ndarray) -> OfflineBuffer:
        """Return a size."""
        return OfflineBuffer(array.nbytes)

    def write(self, buffer: OfflineBuffer, array: np.ndarray, queue: Any = None) -> None:
        """Do nothing."""

    def read(
        self, buffer: OfflineBuffer, dtype: Any, shape: Sequence[int], out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return zeros."""
        return np.zeros(shape, dtype)

    def fill(self, buffer: OfflineBuffer, byte: int) -> None:
        """Do nothing."""

    def pinned(self, nbytes: int) -> np.ndarray:
        """Return ordinary memory."""
        return np.zeros(nbytes, np.uint8)

    def pin(self, array: np.ndarray) -> Callable[[], None]:
        """Nothing to lock."""
        return lambda: None

    def image(self, width: int, height: int) -> OfflineImage:
        """Return a size."""
        return OfflineImage(width, height)

    def copy_to_image(self, buffer: OfflineBuffer, image: OfflineImage) -> None:
        """Do nothing."""

    def queue(self) -> None:
        """There are no queues."""

    def record(self, queue: Any = None) -> None:
        """There are no events."""

    def wait(self, event: Any, queue: Any = None) -> None:
        """Do nothing."""

    def synchronize(self, event: Any) -> None:
        """There are no events."""

    def attach(self) -> None:
        """Nothing to attach."""

    def free_bytes(self) -> int:
        """As much as there is said to be."""
        return self.info.memory_bytes

    def trim(self) -> None:
        """There are no pools."""

    def launch(
        self, kernel: OfflineKernel, groups: Any, group: Any, *args: Any, local_bytes: int = 0, queue: Any = None
    ) -> None:
        """Do nothing."""

    def timed(
        self, execute: Callable[[], None], before: Callable[[], None] | None = None, split: bool = False
    ) -> Times:
        """Nothing takes no time."""
        return Times(0.0, 0.0, 0, {})

    def profiled(self) -> AbstractContextManager[None]:
        """There is no profiler."""
        return nullcontext()

    def finish(self) -> None:
        """Nothing to wait for."""

    def clocks(self) -> dict[str, Any]:
        """There are no clocks."""
        return {}
