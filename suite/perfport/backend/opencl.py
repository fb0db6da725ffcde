"""OpenCL through PyOpenCL."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyopencl as cl

from ..model.device import DeviceInfo
from ..model.errors import CompileError, DeviceMemoryError, UnsupportedError
from .base import Artifact, Macros, Times, as_tuple, check_image, check_launch, define_flags, digest

DIALECT = (files("perfport.backend") / "dialect_opencl.h").read_text()
OPTIONS = ("-cl-std=CL1.2",)
_MEMORY_ERRORS = (
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
)
_FAMILIES = {
    "portable computing language": "pocl",
    "pocl": "pocl",
    "intel": "intel",
    "nvidia": "nvidia",
    "amd": "amd",
    "oclgrind": "oclgrind",
}


def _query(device: cl.Device, name: str, default: Any = None) -> Any:
    """Read a device property; runtimes answer unknown ones with errors of several kinds."""
    try:
        return getattr(device, name)
    except (cl.Error, AttributeError):
        return default


def _slug(platform_name: str) -> str:
    lower = platform_name.lower()
    for part, slug in _FAMILIES.items():
        if part in lower:
            return slug
    return re.sub(r"[^a-z0-9]+", "-", lower).strip("-") or "unknown"


def _host_has(flag: str) -> bool:
    """Whether the host's processor has a feature, by the name that Linux gives it."""
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return flag in flags.split()


def _chip(device: cl.Device) -> str:
    """Return the processor's name without the runtime's decoration (``pthread-skylake-avx512-...`` on PoCL)."""
    name = re.sub(r"^(pthread|cpu|basic)-", "", device.name.strip())
    return re.sub(r"^[a-z0-9-]+?-(?=(Intel|AMD|ARM|Neoverse))", "", name)


def host_cache_bytes() -> int | None:
    """Size of the host's largest cache as the kernel reports it (runtimes disagree on which level they mean)."""
    sizes = []
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        number = entry.read_text().strip()
        sizes.append(int(number.rstrip("KM")) << {"K": 10, "M": 20}.get(number[-1], 0))
    return max(sizes, default=None)


class OpenCLBackend:
    """Backend over every platform that the OpenCL loader of this process sees."""

    name = "opencl"

    def discover(self) -> list[DeviceInfo]:
        """List devices. Raises nothing: a loader without platforms gives an empty list."""
        return [info for info, _ in self._devices()]

    def _devices(self) -> list[tuple[DeviceInfo, cl.Device]]:
        try:
            platforms = cl.get_platforms()
        except cl.LogicError:  # PLATFORM_NOT_FOUND_KHR
            return []
        found = []
        counts: dict[str, int] = {}
        for platform in platforms:
            slug = _slug(platform.name)
            if "fpga" in platform.name.lower():
                continue  # an emulator of another kind of device that Intel's wheel registers beside the CPU
            for device in platform.get_devices():
                number = counts.get(slug, 0)
                counts[slug] = number + 1
                found.append((self._describe(platform, device, f"opencl:{slug}:{number}"), device))
        return found

    @staticmethod
    def _describe(platform: cl.Platform, device: cl.Device, identifier: str) -> DeviceInfo:
        cpu = bool(device.type & cl.device_type.CPU)
        gpu = bool(device.type & cl.device_type.GPU)
        extensions = device.extensions.split()
        capabilities = ["opencl", "unaligned_vload"]  # OpenCL C: vload needs the alignment of one element
        if device.image_support:
            capabilities.append("images")
        if "cl_khr_fp64" in extensions:
            capabilities.append("fp64")
        if identifier.startswith("opencl:pocl") and cpu and _host_has("avx512_vnni"):
            capabilities.append("vnni")  # PoCL's compiler takes x86 inline assembly; Intel's does not
        uuid = _query(device, "uuid_khr")
        capability = None
        if (major := _query(device, "compute_capability_major_nv")) is not None:
            capability = f"{major}.{_query(device, 'compute_capability_minor_nv', 0)}"
        hardware_thread = _query(device, "warp_size_nv") or _query(device, "wavefront_width_amd")
        return DeviceInfo(
            id=identifier,
            backend="opencl",
            platform=platform.name.strip(),
            platform_version=platform.version.strip(),
            name=device.name.strip(),
            chip=_chip(device),
            vendor=device.vendor.strip(),
            driver=device.driver_version.strip(),
            kind="cpu" if cpu else "gpu" if gpu else "accelerator",
            uuid=bytes(uuid).hex() if uuid else "",
            compute_units=device.max_compute_units,
            clock_mhz=device.max_clock_frequency or None,
            memory_bytes=device.global_mem_size,
            max_alloc_bytes=device.max_mem_alloc_size,
            local_memory_bytes=device.local_mem_size,
            max_work_group=device.max_work_group_size,
            hardware_thread=hardware_thread,
            last_level_cache_bytes=(host_cache_bytes() if cpu else None) or _query(device, "global_mem_cache_size"),
            image2d_max_width=device.image2d_max_width if device.image_support else 0,
            image2d_max_height=device.image2d_max_height if device.image_support else 0,
            compute_capability=capability,
            capabilities=capabilities,
        )

    def build(
        self, name: str, source: str, macros: Macros, target: str | None, options: Sequence[str] = ()
    ) -> Artifact:
        """Return the source with its dialect and options; the runtime compiles when a device loads it."""
        text = f'{DIALECT}\n#line 1 "{name}"\n{source}'
        flags = (*OPTIONS, *options, *define_flags(macros))
        return Artifact("opencl", name, text.encode(), flags, digest(text, *flags), listing={"source": text})

    def open(self, info: DeviceInfo) -> OpenCLDevice:
        """Open a device by the id that discovery gave it."""
        devices = self._devices()
        same = [pair for pair in devices if pair[0].id == info.id]
        # Two runtimes of one family are told apart by a number that only discovery knows.
        alike = [pair for pair in devices if (pair[0].name, pair[0].driver) == (info.name, info.driver)]
        for _, device in [*same, *alike][:1]:
            return OpenCLDevice(info, device)
        raise UnsupportedError(f"device {info.id} is not visible in this process")


class OpenCLKernel:
    """A kernel object; arguments are set at each launch."""

    def __init__(self, kernel: cl.Kernel, device: cl.Device) -> None:
        self.name = kernel.function_name
        self.handle = kernel
        get = kernel.get_work_group_info
        info = cl.kernel_work_group_info
        self.resources = {
            "max_work_group": get(info.WORK_GROUP_SIZE, device),
            "local_bytes": get(info.LOCAL_MEM_SIZE, device),
            "private_bytes": get(info.PRIVATE_MEM_SIZE, device),
        }


class OpenCLModule:
    """A built program."""

    def __init__(self, program: cl.Program, device: cl.Device) -> None:
        self.program = program
        self.device = device

    def kernel(self, name: str) -> OpenCLKernel:
        """Return the kernel of that name."""
        return OpenCLKernel(cl.Kernel(self.program, name), self.device)


class OpenCLBuffer:
    """Linear device memory; its owner keeps the count of allocated bytes."""

    def __init__(self, owner: OpenCLDevice, nbytes: int) -> None:
        self.owner = owner
        self.nbytes = nbytes
        self.handle = cl.Buffer(owner.context, cl.mem_flags.READ_WRITE, size=max(nbytes, 1))

    def free(self) -> None:
        """Give the memory back."""
        self.owner.allocated -= self.nbytes
        self.handle.release()


class OpenCLImage:
    """One image object serves as read and as write handle."""

    def __init__(self, handle: cl.Image, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.read = self.write = handle


class OpenCLDevice:
    """An open device with one profiling in-order queue of its own."""

    target: str | None = None

    def __init__(self, info: DeviceInfo, device: cl.Device) -> None:
        self.info = info
        self.device = device
        self.context = cl.Context([device])
        self._queue = self.queue()
        self._queues = [self._queue]
        self._trace: list[tuple[str, cl.Event]] | None = None
        self.allocated = 0

    def load(self, artifact: Artifact) -> OpenCLModule:
        """Build the program for this device."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers that chat on success
            program = cl.Program(self.context, artifact.code.decode())
            try:
                program.build(options=list(artifact.options), cache_dir=False)
            except cl.Error as error:
                log = program.get_build_info(self.device, cl.program_build_info.LOG) or str(error)
                raise CompileError(f"{artifact.name} does not compile for {self.info.id}", log) from None
        return OpenCLModule(program, self.device)

    def empty(self, nbytes: int) -> OpenCLBuffer:
        """Allocate."""
        if nbytes > self.info.max_alloc_bytes:
            raise DeviceMemoryError(
                f"a buffer of {nbytes} bytes exceeds the largest that {self.info.id} allocates "
                f"({self.info.max_alloc_bytes} bytes)"
            )
        try:
            buffer = OpenCLBuffer(self, nbytes)
        except cl.Error as error:
            raise self._memory_error(error, nbytes) from error
        self.allocated += nbytes
        return buffer

    def _memory_error(self, error: cl.Error, nbytes: int) -> Exception:
        if error.code in _MEMORY_ERRORS:
            return DeviceMemoryError(
                f"{self.info.id}: allocating {nbytes} bytes failed with {self.allocated} of "
                f"{self.info.memory_bytes} bytes in use ({error})"
            )
        return error

    def upload(self, array: np.ndarray) -> OpenCLBuffer:
        """Allocate and fill."""
        buffer = self.empty(array.nbytes)
        self.write(buffer, np.ascontiguousarray(array))
        return buffer

    def write(self, buffer: OpenCLBuffer, array: np.ndarray, queue: Any = None) -> None:
        """Copy host to device."""
        if array.nbytes:
            cl.enqueue_copy(queue or self._queue, buffer.handle, array, is_blocking=queue is None)

    def read(self, buffer: OpenCLBuffer, dtype: Any, shape: Sequence[int], out: np.ndarray | None = None) -> np.ndarray:
        """Copy device to host."""
        out = np.empty(shape, dtype) if out is None else out
        if out.nbytes:
            cl.enqueue_copy(self._queue, out, buffer.handle)
        return out

    def fill(self, buffer: OpenCLBuffer, byte: int) -> None:
        """Set every byte."""
        if buffer.nbytes:
            cl.enqueue_fill_buffer(self._queue, buffer.handle, np.uint8(byte), 0, buffer.nbytes)

    def pinned(self, nbytes: int) -> np.ndarray:
        """Allocate page-locked host memory (a mapped host buffer)."""
        flags = cl.mem_flags.ALLOC_HOST_PTR | cl.mem_flags.READ_WRITE
        buffer = cl.Buffer(self.context, flags, size=nbytes)
        array, _ = cl.enqueue_map_buffer(
            self._queue, buffer, cl.map_flags.READ | cl.map_flags.WRITE, 0, (nbytes,), np.uint8
        )
        return array

    def pin(self, array: np.ndarray) -> Callable[[], None]:
        """OpenCL locks only memory that it has allocated."""
        return lambda: None

    def image(self, width: int, height: int) -> OpenCLImage:
        """Allocate an RGBA float image."""
        check_image(self.info, width, height)
        rgba = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
        handle = cl.create_image(self.context, cl.mem_flags.READ_WRITE, rgba, shape=(width, height))
        return OpenCLImage(handle, width, height)

    def copy_to_image(self, buffer: OpenCLBuffer, image: OpenCLImage) -> None:
        """Enqueue ``clEnqueueCopyBufferToImage``."""
        event = cl.enqueue_copy(
            self._queue, image.write, buffer.handle, offset=0, origin=(0, 0), region=(image.width, image.height)
        )
        self._traced("copy_buffer_to_image", event)

    def queue(self) -> cl.CommandQueue:
        """Return another in-order queue."""
        queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        if hasattr(self, "_queues"):
            self._queues.append(queue)
        return queue

    def record(self, queue: Any = None) -> cl.Event:
        """Return an event for what is enqueued so far."""
        event = cl.enqueue_marker(queue or self._queue)
        (queue or self._queue).flush()
        return event

    def wait(self, event: cl.Event, queue: Any = None) -> None:
        """Make a queue wait for an event."""
        cl.enqueue_barrier(queue or self._queue, wait_for=[event])

    def synchronize(self, event: cl.Event) -> None:
        """Make the host wait for an event."""
        event.wait()

    def attach(self) -> None:
        """Any thread may use an OpenCL device."""

    def free_bytes(self) -> int:
        """OpenCL does not tell: on a CPU what the system has, elsewhere what this process has not allocated."""
        left = self.info.memory_bytes - self.allocated
        return min(left, psutil.virtual_memory().available) if self.info.kind == "cpu" else left

    def launch(
        self,
        kernel: OpenCLKernel,
        groups: int | tuple[int, ...],
        group: int | tuple[int, ...],
        *args: Any,
        local_bytes: int = 0,
        queue: Any = None,
    ) -> None:
        """Enqueue a kernel."""
        groups, group = as_tuple(groups), as_tuple(group)
        check_launch(self.info, kernel, group, local_bytes)
        handles = [arg.handle if isinstance(arg, OpenCLBuffer) else arg for arg in args]
        size = tuple(n * g for n, g in zip(groups, group, strict=True))
        try:
            event = kernel.handle(queue or self._queue, size, group, *handles)
        except cl.Error as error:
            raise self._memory_error(error, 0) from error
        self._traced(kernel.name, event)

    def _traced(self, name: str, event: cl.Event) -> None:
        if self._trace is not None:
            self._trace.append((name, event))

    def timed(
        self, execute: Callable[[], None], before: Callable[[], None] | None = None, split: bool = False
    ) -> Times:
        """Time one execution behind a user event: nothing starts until everything is queued."""
        gate = cl.UserEvent(self.context)
        cl.enqueue_barrier(self._queue, wait_for=[gate])
        try:
            if before:
                before()
            self._trace = []
            execute()
            trace = self._trace
            self._queue.flush()
        finally:
            self._trace = None
            gate.set_status(cl.command_execution_status.COMPLETE)
            self._queue.finish()
        kernels: dict[str, float] = {}
        for name, event in trace:
            kernels[name] = kernels.get(name, 0.0) + (event.profile.end - event.profile.start) * 1e-9
        span = (trace[-1][1].profile.end - trace[0][1].profile.start) * 1e-9 if trace else 0.0
        return Times(span, sum(kernels.values()), len(trace), kernels)

    def profiled(self) -> AbstractContextManager[None]:
        """OpenCL knows no profiler."""
        return nullcontext()

    def finish(self) -> None:
        """Wait for all queues."""
        for queue in self._queues:
            queue.finish()

    def clocks(self) -> dict[str, Any]:
        """OpenCL reports no clocks."""
        return {}
