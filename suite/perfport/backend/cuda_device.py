"""An open CUDA device through CuPy: memory, launches by the driver, texture and surface objects, timing by events."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..model.device import DeviceInfo
from ..model.errors import DeviceMemoryError
from . import nvrtc
from .base import MARKER, Artifact, Times, as_tuple, check_image, check_launch

STATIC_LOCAL_BYTES = 48 * 1024
GATE_LIMIT_NS = 200_000_000  # the gate opens by itself, so that a synchronising call in the queue cannot deadlock
#: NVML's clocks-throttle bits that mean less speed than the device would give (idle and power-cap bits do not).
THROTTLING = {0x8: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}
GATE_SOURCE = """
__kernel void gate(volatile int *open, long long limit) {
    long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (*open == 0 && now - start < limit);
}
"""


class CudaKernel:
    """A device function with its resource use."""

    def __init__(self, function: Any, name: str, static_limit: int) -> None:
        from cupy_backends.cuda.api import driver

        self.name = name
        self.function = function
        read = driver.funcGetAttribute
        self.resources = {
            "max_work_group": read(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function.ptr),
            "local_bytes": read(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.ptr),
            "private_bytes": read(driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function.ptr),
            "registers": read(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function.ptr),
        }
        self._arena = static_limit

    def reserve(self, local_bytes: int) -> None:
        """Raise the dynamic limit for arenas above the static one."""
        if local_bytes > self._arena:
            from cupy_backends.cuda.api import driver

            driver.funcSetAttribute(
                self.function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, local_bytes
            )
            self._arena = local_bytes


class CudaModule:
    """A loaded cubin.

    It has one kernel of a name: the limit that `CudaKernel.reserve` raises is the driver's function's, which all who
    ask for that name share, and which a kernel that knew nothing of the others would lower again.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self._kernels: dict[str, CudaKernel] = {}

    def kernel(self, name: str) -> CudaKernel:
        """Return the kernel of that name."""
        if name not in self._kernels:
            self._kernels[name] = CudaKernel(self.module.get_function(name), name, STATIC_LOCAL_BYTES)
        return self._kernels[name]


class CudaBuffer:
    """Linear device memory, visible to CuPy peers as `array`."""

    def __init__(self, owner: CudaDevice, nbytes: int) -> None:
        import cupy

        self.owner = owner
        self.nbytes = nbytes
        self.array = cupy.empty(max(nbytes, 1), dtype=np.uint8)

    def free(self) -> None:
        """Give the memory back."""
        self.owner.allocated -= self.nbytes
        self.array = None


class CudaImage:
    """A CUDA array with a texture object to read and a surface object to write."""

    def __init__(self, width: int, height: int) -> None:
        from cupy.cuda import runtime, texture

        self.width, self.height = width, height
        channels = texture.ChannelFormatDescriptor(32, 32, 32, 32, runtime.cudaChannelFormatKindFloat)
        self.array = texture.CUDAarray(channels, width, height, flags=runtime.cudaArraySurfaceLoadStore)
        resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=self.array)
        border = (runtime.cudaAddressModeBorder, runtime.cudaAddressModeBorder)
        sampling = texture.TextureDescriptor(
            border, runtime.cudaFilterModePoint, runtime.cudaReadModeElementType, normalizedCoords=0
        )
        self._texture = texture.TextureObject(resource, sampling)
        self._surface = texture.SurfaceObject(resource)
        self.read = np.uint64(self._texture.ptr)
        self.write = np.uint64(self._surface.ptr)


class CudaDevice:
    """An open device. All work of this process on it goes through CuPy streams."""

    def __init__(self, info: DeviceInfo, number: int) -> None:
        import cupy

        self.cupy = cupy
        self.info = info
        self.number = number
        cupy.cuda.Device(number).use()
        if os.environ.get("PERFPORT_MEMORY_POOL") == "0":
            cupy.cuda.set_allocator(None)  # a sanitizer must know where each buffer ends
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.allocated = 0
        self._launches = 0
        self._marks: list[tuple[str, Any]] | None = None
        self._flag_memory = cupy.cuda.alloc_pinned_memory(4)
        self._flag = np.frombuffer(self._flag_memory, np.int32, 1)
        artifact = nvrtc.build("gate.cu", GATE_SOURCE, {}, self.target)
        self._gate = self.load(artifact).kernel("gate")

    @property
    def target(self) -> str:
        """The compile target of this device, ``sm_XY``."""
        return "sm_" + (self.info.compute_capability or "").replace(".", "")

    def load(self, artifact: Artifact) -> CudaModule:
        """Load a cubin."""
        module = self.cupy.cuda.function.Module()
        module.load(artifact.code)
        return CudaModule(module)

    def empty(self, nbytes: int) -> CudaBuffer:
        """Allocate."""
        try:
            buffer = CudaBuffer(self, nbytes)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(f"{self.info.id}: {error}") from error
        self.allocated += nbytes
        return buffer

    def upload(self, array: np.ndarray) -> CudaBuffer:
        """Allocate and fill."""
        buffer = self.empty(array.nbytes)
        self.write(buffer, np.ascontiguousarray(array))
        return buffer

    def write(self, buffer: CudaBuffer, array: np.ndarray, queue: Any = None) -> None:
        """Copy host to device."""
        stream = queue or self.stream
        if array.nbytes:
            runtime = self.cupy.cuda.runtime
            kind = runtime.memcpyHostToDevice
            runtime.memcpyAsync(buffer.array.data.ptr, array.ctypes.data, array.nbytes, kind, stream.ptr)
        if queue is None:
            stream.synchronize()

    def read(self, buffer: CudaBuffer, dtype: Any, shape: Sequence[int], out: np.ndarray | None = None) -> np.ndarray:
        """Copy device to host."""
        out = np.empty(shape, dtype) if out is None else out
        if out.nbytes:
            runtime = self.cupy.cuda.runtime
            kind = runtime.memcpyDeviceToHost
            runtime.memcpyAsync(out.ctypes.data, buffer.array.data.ptr, out.nbytes, kind, self.stream.ptr)
        self.stream.synchronize()
        return out

    def fill(self, buffer: CudaBuffer, byte: int) -> None:
        """Set every byte."""
        if buffer.nbytes:
            self.cupy.cuda.runtime.memsetAsync(buffer.array.data.ptr, byte, buffer.nbytes, self.stream.ptr)

    def pinned(self, nbytes: int) -> np.ndarray:
        """Allocate page-locked host memory."""
        return np.frombuffer(self.cupy.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)

    def pin(self, array: np.ndarray) -> Callable[[], None]:
        """Register the array's pages with the driver."""
        runtime, address = self.cupy.cuda.runtime, array.ctypes.data
        runtime.hostRegister(address, array.nbytes, 0)
        return lambda: runtime.hostUnregister(address)

    def image(self, width: int, height: int) -> CudaImage:
        """Allocate an RGBA float image."""
        check_image(self.info, width, height)
        return CudaImage(width, height)

    def copy_to_image(self, buffer: CudaBuffer, image: CudaImage) -> None:
        """Enqueue a copy from linear memory into a CUDA array."""
        runtime = self.cupy.cuda.runtime
        row = image.width * 16
        runtime.memcpy2DToArrayAsync(
            image.array.ptr, 0, 0, buffer.array.data.ptr, row, row, image.height,
            runtime.memcpyDeviceToDevice, self.stream.ptr,
        )  # fmt: skip
        self._mark("copy_buffer_to_image")

    def queue(self) -> Any:
        """Return another stream."""
        return self.cupy.cuda.Stream(non_blocking=True)

    def record(self, queue: Any = None) -> Any:
        """Return an event for what is enqueued so far."""
        return (queue or self.stream).record()

    def wait(self, event: Any, queue: Any = None) -> None:
        """Make a stream wait for an event."""
        (queue or self.stream).wait_event(event)

    def synchronize(self, event: Any) -> None:
        """Make the host wait for an event."""
        event.synchronize()

    def attach(self) -> None:
        """Device and stream are current by thread."""
        self.cupy.cuda.Device(self.number).use()
        self.stream.use()

    def free_bytes(self) -> int:
        """What the driver has free, and what this process holds in its pool unused."""
        return int(self.cupy.cuda.runtime.memGetInfo()[0]) + int(self.cupy.get_default_memory_pool().free_bytes())

    def trim(self) -> None:
        """Empty CuPy's pool, and PyTorch's where a peer has loaded it: neither asks the other for memory."""
        self.cupy.get_default_memory_pool().free_all_blocks()
        if torch := sys.modules.get("torch"):
            torch.cuda.empty_cache()

    def launch(
        self,
        kernel: CudaKernel,
        groups: int | tuple[int, ...],
        group: int | tuple[int, ...],
        *args: Any,
        local_bytes: int = 0,
        queue: Any = None,
    ) -> None:
        """Enqueue a kernel."""
        groups, group = as_tuple(groups), as_tuple(group)
        check_launch(self.info, kernel, group, local_bytes)
        kernel.reserve(local_bytes)
        handles = tuple(arg.array if isinstance(arg, CudaBuffer) else arg for arg in args)
        kernel.function(_three(groups), _three(group), handles, shared_mem=local_bytes, stream=queue or self.stream)
        self._mark(kernel.name)

    def _mark(self, name: str) -> None:
        self._launches += 1
        if self._marks is not None:
            self._marks.append((name, self._event()))

    def _event(self) -> Any:
        event = self.cupy.cuda.Event()
        event.record(self.stream)
        return event

    def timed(
        self, execute: Callable[[], None], before: Callable[[], None] | None = None, split: bool = False
    ) -> Times:
        """Time one execution between two events behind a gate kernel that spins until everything is queued."""
        self._flag[0] = 0
        self._gate.function(
            (1, 1, 1), (1, 1, 1), (np.uint64(self._flag_memory.ptr), np.int64(GATE_LIMIT_NS)), 0, self.stream
        )
        try:
            if before:
                before()
            self._marks = [] if split else None
            self._launches = 0
            start = self._event()
            execute()
            stop = self._event()
            marks = self._marks or []
        finally:
            self._marks = None
            self._flag[0] = 1
            self.stream.synchronize()
        elapsed = self.cupy.cuda.get_elapsed_time
        kernels: dict[str, float] = {}
        for previous, (name, event) in zip([start, *(mark[1] for mark in marks)], marks, strict=False):
            kernels[name] = kernels.get(name, 0.0) + elapsed(previous, event) * 1e-3
        busy = sum(kernels.values()) if kernels else None
        return Times(elapsed(start, stop) * 1e-3, busy, self._launches, kernels)

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Start the profiler that is attached to this process, if any, for the launches inside."""
        artifact = nvrtc.build("marker.cl", f"__kernel void {MARKER}() {{}}", {}, self.target)
        marker = self.load(artifact).kernel(MARKER)
        self.cupy.cuda.runtime.profilerStart()
        try:
            self.launch(marker, 1, 1)
            yield
            self.finish()
        finally:
            self.cupy.cuda.runtime.profilerStop()

    def finish(self) -> None:
        """Wait for the whole device."""
        self.cupy.cuda.runtime.deviceSynchronize()

    def clocks(self) -> dict[str, Any]:
        """Clocks in MHz, temperature in degrees Celsius and throttle reasons, through NVML."""
        try:
            import pynvml

            pynvml.nvmlInit()
            bus = self.cupy.cuda.runtime.deviceGetPCIBusId(self.number)
            handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus.encode() if isinstance(bus, str) else bus)
            reasons = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            return {
                "sm_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
                "memory_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
                "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
                "throttled": [name for bit, name in THROTTLING.items() if reasons & bit],
            }
        except Exception:
            return {}


def _three(size: tuple[int, ...]) -> tuple[int, int, int]:
    padded = (*size, 1, 1)[:3]
    return padded[0], padded[1], padded[2]
