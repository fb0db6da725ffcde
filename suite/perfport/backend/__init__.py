"""Backends: OpenCL through PyOpenCL, CUDA through CuPy, one protocol (`perfport.backend.base`).

| module | what it holds |
| --- | --- |
| `base` | the protocol: `Backend`, `OpenDevice` and what a device hands out; checks of launches |
| `opencl`, `opencl_device` | the OpenCL backend: discovery and building; an open device |
| `opencl_simulated` | the simulator's device, one thread at a time |
| `opencl_launch` | its kernels, and launches at little cost to the host |
| `opencl_trials`, `ptx` | what NVIDIA's OpenCL takes that no query tells; PTX as it takes it |
| `cuda`, `cuda_device` | the CUDA backend: discovery and building; an open device |
| `nvrtc`, `assembler` | what compiles CUDA C++, and assembles PTX, without a device |
| `offline` | a device that compiles for CUDA and never runs |
| `dialect_opencl.h`, `dialect_cuda.h` | the kernel dialect, prepended to each source |

A further backend, say ROCm through HIP, is a module with a class that implements `base.Backend`, one with a device that
implements `base.OpenDevice`, and a header that gives the kernel dialect its names. Two places name the backends:
this file (`NAMES`, `COMPILERS`, `get`), and `perfport.machine.discovery`, which asks each in a child process for its
devices. Workloads do not; they ask for what they need by the capabilities that a device says it has (`DeviceInfo`).
"""

from __future__ import annotations

from ..model.errors import UsageError
from .base import Artifact, Backend, Buffer, Image, Kernel, Macros, Module, OpenDevice, Times, architecture

__all__ = [
    "COMPILERS",
    "NAMES",
    "Artifact",
    "Backend",
    "Buffer",
    "Image",
    "Kernel",
    "Macros",
    "Module",
    "OpenDevice",
    "Times",
    "architecture",
    "get",
]

NAMES = ("opencl", "cuda")
#: Packages that compile kernels, by backend: another version is other code. OpenCL's compilers come with the driver.
COMPILERS: dict[str, tuple[str, ...]] = {
    "opencl": (),
    "cuda": ("cupy-cuda12x", "cupy-cuda13x", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
}


def get(name: str) -> Backend:
    """Return a backend by name; its library is imported only now."""
    if name == "opencl":
        from .opencl import OpenCLBackend

        return OpenCLBackend()
    if name == "cuda":
        from .cuda import CudaBackend

        return CudaBackend()
    raise UsageError(f"unknown backend {name!r}; one of: {', '.join(NAMES)}")
