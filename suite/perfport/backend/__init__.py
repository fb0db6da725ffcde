"""Backends: OpenCL through PyOpenCL, CUDA through CuPy, one protocol (`perfport.backend.base`)."""

from __future__ import annotations

from ..errors import UsageError
from .base import Artifact, Backend, Buffer, Image, Kernel, Macros, Module, OpenDevice, Times

__all__ = [
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


def get(name: str) -> Backend:
    """Return a backend by name; its library is imported only now."""
    if name == "opencl":
        from .opencl import OpenCLBackend

        return OpenCLBackend()
    if name == "cuda":
        from .cuda import CudaBackend

        return CudaBackend()
    raise UsageError(f"unknown backend {name!r}; one of: {', '.join(NAMES)}")
