"""Kernels of an OpenCL device, and their launches at the least cost to the host.

PyOpenCL makes an event for each launch, which takes NVIDIA's host and device longer than an empty kernel: a launch
whose event nobody asks for goes to the runtime's own function. And it takes microseconds to find out what a NumPy
scalar is, unless it is told.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from ..model.device import DeviceInfo

#: Of the loader that PyOpenCL is linked with: what its library depends on is searched, too.
_ENQUEUE = ctypes.CDLL(_cl.__file__).clEnqueueNDRangeKernel
_ENQUEUE.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p,
]  # fmt: skip


def program_of(context: cl.Context, source: str) -> cl.Program:
    """Build a program of the backend's own; compilers that chat on success are not listened to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cl.Program(context, source).build(cache_dir=False)


class OpenCLKernel:
    """A kernel object; arguments are set at each launch."""

    def __init__(self, kernel: cl.Kernel, device: cl.Device, info: DeviceInfo) -> None:
        self.name = kernel.function_name
        self.handle = kernel
        get = kernel.get_work_group_info
        ask = cl.kernel_work_group_info
        self.stated_group = get(ask.WORK_GROUP_SIZE, device)
        self.resources = {
            "max_work_group": info.max_work_group if "full_groups" in info.capabilities else self.stated_group,
            "local_bytes": get(ask.LOCAL_MEM_SIZE, device),
            "private_bytes": get(ask.PRIVATE_MEM_SIZE, device),
        }
        self._types: list[type] | None = None

    def set(self, arguments: Sequence[Any]) -> None:
        """Set all arguments: memory objects and NumPy scalars."""
        types = [type(argument) for argument in arguments]
        if types != self._types:
            self.handle.set_arg_types([kind if issubclass(kind, np.generic) else None for kind in types])
            self._types = types
        self.handle.set_args(*arguments)


class Launch(NamedTuple):
    """A launch of a kernel that has its arguments; sizes are in work-items."""

    kernel: OpenCLKernel
    queue: cl.CommandQueue
    size: tuple[int, ...]
    group: tuple[int, ...]

    def enqueue(self) -> None:
        """Enqueue it without an event. PyOpenCL is asked for the error, if there is one, and raises it as ever."""
        queue, kernel = self.queue.int_ptr, self.kernel.handle.int_ptr
        if _ENQUEUE(queue, kernel, len(self.size), None, _sizes(self.size), _sizes(self.group), 0, None, None):
            self.traced()

    def traced(self) -> cl.Event:
        """Enqueue it and return its event."""
        return cl.enqueue_nd_range_kernel(self.queue, self.kernel.handle, self.size, self.group)


@lru_cache
def _sizes(numbers: tuple[int, ...]) -> ctypes.Array[ctypes.c_size_t]:
    return (ctypes.c_size_t * len(numbers))(*numbers)
