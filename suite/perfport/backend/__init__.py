"""Backends: OpenCL through PyOpenCL, CUDA through CuPy, one protocol (`perfport.backend.base`)."""

from __future__ import annotations

from ..model.errors import UsageError
from .base import Artifact, Backend, Buffer, Image, Kernel, Macros, Module, OpenDevice, Times

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
    "get",
]

NAMES = ("opencl", "cuda")
#: Packages that compile kernels, by backend: another version is other code. OpenCL's compilers come with the driver.
COMPILERS: dict[str, tuple[str, ...]] = {"opencl": (), "cuda": ("cupy-cuda13x", "nvidia-cuda-nvrtc")}


def get(name: str) -> Backend:
    """Return a backend by name; its library is imported only now."""
    if name == "opencl":
        from .opencl import OpenCLBackend

        return OpenCLBackend()
    if name == "cuda":
        from .cuda import CudaBackend

        return CudaBackend()
    raise UsageError(f"unknown backend {name!r}; one of: {', '.join(NAMES)}")
