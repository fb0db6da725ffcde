"""CUDA through CuPy: NVRTC to cubin, driver launches, texture and surface objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..model.device import DeviceInfo
from ..model.errors import CompileError, DeviceMemoryError, UnavailableError
from . import assembler
from .base import MARKER, Artifact, Macros, Times, as_tuple, check_image, check_launch, define_flags, digest

DIALECT = (files("perfport.backend") / "dialect_cuda.h").read_text()
# CuPy's own compile path adds -ftz=true; OpenCL builds keep subnormals, so both backends here do.
OPTIONS = ("--std=c++17", "-default-device", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=true")
TARGETS = ("sm_75", "sm_80", "sm_90")
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


@cache
def _nvrtc() -> Any:
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except Exception as error:
        raise UnavailableError(f"NVRTC is not usable here: {error} (install perfport[cuda])") from error
    return nvrtc


class CudaBackend:
    """Backend over the CUDA devices of this machine."""

    name = "cuda"

    def discover(self) -> list[DeviceInfo]:
        """List devices; empty where CuPy or a driver is missing."""
        try:
            import cupy

            count = cupy.cuda.runtime.getDeviceCount()
        except Exception:
            return []
        return [self._describe(number) for number in range(count)]

    @staticmethod
    def _describe(number: int) -> DeviceInfo:
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(number)
        driver = cupy.cuda.runtime.driverGetVersion()
        capability = (properties["major"], properties["minor"])
        capabilities = ["cuda", "ptx", "images", "fp64"]
        if capability >= (6, 1):
            capabilities.append("dp4a")
        capabilities += matrix_capabilities(capability)
        name = properties["name"].decode()
        attributes = cupy.cuda.Device(number).attributes
        return DeviceInfo(
            id=f"cuda:nvidia:{number}",
            backend="cuda",
            platform="NVIDIA CUDA",
            platform_version=f"CUDA {driver // 1000}.{driver % 1000 // 10}",
            name=name,
            chip=name,
            vendor="NVIDIA Corporation",
            driver=_driver_version() or f"CUDA {driver}",
            kind="gpu",
            uuid=bytes(properties["uuid"]).hex() if "uuid" in properties else "",
            compute_units=properties["multiProcessorCount"],
            clock_mhz=attributes.get("ClockRate", 0) // 1000 or None,
            memory_bytes=properties["totalGlobalMem"],
            max_alloc_bytes=properties["totalGlobalMem"],
            local_memory_bytes=properties["sharedMemPerBlockOptin"],
            max_work_group=properties["maxThreadsPerBlock"],
            hardware_thread=properties["warpSize"],
            last_level_cache_bytes=properties["l2CacheSize"],
            image2d_max_width=attributes["MaxTexture2DWidth"],
            image2d_max_height=attributes["MaxTexture2DHeight"],
            compute_capability=f"{capability[0]}.{capability[1]}",
            capabilities=capabilities,
        )

    def build(
        self, name: str, source: str, macros: Macros, target: str | None = None, options: Sequence[str] = ()
    ) -> Artifact:
        """Compile to a cubin for ``target`` (``sm_90``).

        PTX of a newer toolkit than the driver's is refused by the driver; a cubin of the same major version runs.
        """
        text = _with_dialect(name, source)
        flags = (*OPTIONS, *options, f"-arch={target or TARGETS[-1]}", *define_flags(macros))
        cubin, ptx, log = _compile(name, text, flags)
        image = cubin + b"\0"  # CuPy takes the image for a string and drops its last byte
        return Artifact("cuda", name, image, flags, digest(text, *flags), log, {"source": text, "ptx": ptx})

    @property
    def compiler(self) -> str:
        """Version of NVRTC, for keys of what it has compiled."""
        return "nvrtc {}.{}".format(*_nvrtc().getVersion())

    def ptx(self, name: str, source: str, macros: Macros, target: str | None = None) -> str:
        """Compile to PTX alone, which takes a fraction of the time of a cubin. Raises `CompileError` with the log."""
        architecture = (target or TARGETS[-1]).replace("sm_", "compute_")
        return _compile(name, _with_dialect(name, source), (*OPTIONS, f"-arch={architecture}", *define_flags(macros)))[
            1
        ]

    def assemble(self, name: str, ptx: str, target: str | None = None) -> Artifact:
        """Turn PTX that was generated, not compiled, into a cubin.

        Raises `CompileError` with the log, `UnavailableError` without the assembler. Threads may call it side by side.
        """
        flags = (f"-arch={target or TARGETS[-1]}",)
        cubin, log = assembler.assemble(name, ptx, flags)
        return Artifact("cuda", name, cubin + b"\0", flags, digest(ptx, *flags), log, {"source": ptx, "ptx": ptx})

    def open(self, info: DeviceInfo) -> CudaDevice:
        """Open a device by the number in its id."""
        return CudaDevice(info, int(info.id.rsplit(":", 1)[1]))


def _with_dialect(name: str, source: str) -> str:
    return f'{DIALECT}\n#line 1 "{name}"\n{source}'


def _compile(name: str, text: str, flags: Sequence[str]) -> tuple[bytes, str, str]:
    """Return cubin (empty for a virtual architecture), PTX and log."""
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(text, name, (), ())
    try:
        try:
            nvrtc.compileProgram(program, tuple(flags))
        except nvrtc.NVRTCError:
            log = nvrtc.getProgramLog(program)
            target = next(flag for flag in flags if flag.startswith("-arch"))
            raise CompileError(f"{name} does not compile for {target}", log) from None
        virtual = any(flag.startswith("-arch=compute_") for flag in flags)
        cubin = b"" if virtual else nvrtc.getCUBIN(program)
        ptx = nvrtc.getPTX(program)
        return cubin, ptx.decode() if isinstance(ptx, bytes) else ptx, nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)


def matrix_capabilities(capability: tuple[int, int]) -> list[str]:
    """Return which instructions for matrix units a compute capability has, for TF32, BF16 and 8-bit integers."""
    return ["mma"] * (capability >= (8, 0)) + ["wgmma"] * (capability == (9, 0))


def _driver_version() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)
    except Exception:
        return ""


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
    """A loaded cubin."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def kernel(self, name: str) -> CudaKernel:
        """Return the kernel of that name."""
        return CudaKernel(self.module.get_function(name), name, STATIC_LOCAL_BYTES)


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
        artifact = CudaBackend().build("gate.cu", GATE_SOURCE, {}, self.target)
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
        artifact = CudaBackend().build("marker.cl", f"__kernel void {MARKER}() {{}}", {}, self.target)
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
