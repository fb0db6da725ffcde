"""An open OpenCL device through PyOpenCL: memory, launches, images, timing by profiling events."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
import psutil
import pyopencl as cl

from ..model.device import DeviceInfo
from ..model.errors import CompileError, DeviceMemoryError, UnsupportedError
from . import ptx
from .base import Artifact, Times, as_tuple, check_image, check_launch, target_of
from .diagnostics import compile_error
from .opencl_hold import Hold
from .opencl_launch import Launch, OpenCLKernel, program_of

_MEMORY_ERRORS = (
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
)


#: Bytes from which on a kernel fills a buffer: NVIDIA's clEnqueueFillBuffer fails at sizes of 2 GiB (pyopencl's issue
#: 395), and in parts, at offsets of 2 GiB, it makes the queue invalid.
FILLED_BY_KERNEL = 1 << 30
_FILL = """
__kernel void fill(__global uint4 *to, uint word, ulong nbytes) {
    ulong begin = 16 * (ulong)get_global_id(0);
    if (begin + 16 <= nbytes) to[get_global_id(0)] = (uint4)(word, word, word, word);
    else for (; begin < nbytes; ++begin) ((__global uchar *)to)[begin] = (uchar)word;
}
"""
#: Errors of a launch that asks for more registers, work-items or local memory than there are.
_TOO_LARGE = (cl.status_code.OUT_OF_RESOURCES, cl.status_code.INVALID_WORK_GROUP_SIZE)


class OpenCLModule:
    """A built program."""

    def __init__(self, program: cl.Program, device: cl.Device, info: DeviceInfo, file: str) -> None:
        self.program = program
        self.device = device
        self.info = info
        self.file = file

    def kernel(self, name: str) -> OpenCLKernel:
        """Return the kernel of that name. Raises `CompileError` where there is none, with the names that there are."""
        try:
            handle = cl.Kernel(self.program, name)
        except cl.LogicError:
            there = ", ".join(kernel.function_name for kernel in self.program.all_kernels())
            raise CompileError(f"{self.file} has no kernel {name!r}; it has: {there or 'none'}") from None
        return OpenCLKernel(handle, self.device, self.info)


class OpenCLBuffer:
    """Linear device memory; its owner keeps the count of allocated bytes."""

    def __init__(self, owner: OpenCLDevice, nbytes: int) -> None:
        self.owner = owner
        self.nbytes = nbytes
        self.handle = cl.Buffer(owner.context, cl.mem_flags.READ_WRITE, size=max(nbytes, 1))

    def free(self) -> None:
        """Give the memory back."""
        self.owner.release_held()
        self.owner.allocated -= self.nbytes
        self.handle.release()


class OpenCLImage:
    """One image object serves as read and as write handle."""

    def __init__(self, handle: cl.Image, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.read = self.write = handle


class OpenCLDevice:
    """An open device with one profiling in-order queue of its own.

    In a timed execution the first and the last launch have an event. Which is the last is known when something else
    comes: each launch but the first is held back until then.
    """

    def __init__(self, info: DeviceInfo, device: cl.Device) -> None:
        self.info = info
        self.target = target_of(info)
        self.device = device
        self.context = cl.Context([device])
        self._queues: list[cl.CommandQueue] = []
        self._own = self.queue()
        self._trace: list[tuple[str, cl.Event | None]] | None = None
        self._split = False
        self._held: Launch | None = None
        self.allocated = 0

    @property
    def _queue(self) -> cl.CommandQueue:
        """The device's own queue, for a command behind which a launch that is held back may turn out to be the last."""
        self.release_held()
        return self._own

    def release_held(self) -> None:
        """Enqueue the launch that is held back, if any, as one that may be the last."""
        self._enqueue_held(Launch.traced)

    def _enqueue_held(self, enqueue: Callable[[Launch], cl.Event | None]) -> None:
        held, self._held = self._held, None
        if held and self._trace is not None:
            self._trace.append((held.kernel.name, self._enqueue(held, enqueue)))

    def load(self, artifact: Artifact) -> OpenCLModule:
        """Build the program for this device."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers that chat on success
            program, options = self._program(artifact)
            try:
                program.build(options=options, cache_dir=False)
                if "ptx" in self.info.capabilities:
                    program = self._with_residency(program)
            except cl.Error as error:
                log = program.get_build_info(self.device, cl.program_build_info.LOG) or str(error)
                raise compile_error(artifact.name, self.info.id, log, artifact.listing["source"]) from None
        return OpenCLModule(program, self.device, self.info, artifact.name)

    def _program(self, artifact: Artifact) -> tuple[cl.Program, list[str]]:
        """Return what is to be built, and by which options: those of PTX were its compiler's."""
        if artifact.form == "source":
            return cl.Program(self.context, artifact.code.decode()), list(artifact.options)
        text = ptx.at_most(artifact.code.decode(), self._newest_ptx)
        return cl.Program(self.context, [self.device], [text.encode()]), []

    def _with_residency(self, program: cl.Program) -> cl.Program:
        """Return a program whose kernels are compiled for the resident work-groups that they ask for."""
        (binary,) = program.get_info(cl.program_info.BINARIES)
        text = ptx.with_residency(binary.decode("latin-1")).encode("latin-1")
        if text == binary:
            return program
        return cl.Program(self.context, [self.device], [text]).build(cache_dir=False)

    @cached_property
    def _newest_ptx(self) -> tuple[int, int] | None:
        """The version of PTX that the runtime's own compiler writes."""
        program = cl.Program(self.context, "__kernel void none() {}").build(cache_dir=False)
        (binary,) = program.get_info(cl.program_info.BINARIES)
        return ptx.version(binary.decode(errors="replace"))

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
        if buffer.nbytes < FILLED_BY_KERNEL:
            cl.enqueue_fill_buffer(self._queue, buffer.handle, np.uint8(byte), 0, buffer.nbytes)
            return
        self._fill_kernel.set_args(buffer.handle, np.uint32(0x01010101 * byte), np.uint64(buffer.nbytes))
        cl.enqueue_nd_range_kernel(self._queue, self._fill_kernel, (-(-buffer.nbytes // 16),), None)

    @cached_property
    def _hold(self) -> Hold | None:
        """On a CPU the host's threads do what is queued, and nothing is submitted."""
        return None if self.info.kind == "cpu" else Hold(self.context, self._own)

    @cached_property
    def _fill_kernel(self) -> cl.Kernel:
        return cl.Kernel(program_of(self.context, _FILL), "fill")

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
        if self._trace is not None:
            self._trace.append(("copy_buffer_to_image", event))

    def queue(self) -> cl.CommandQueue:
        """Return another in-order queue."""
        queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._queues.append(queue)
        return queue

    def record(self, queue: Any = None) -> cl.Event:
        """Return an event for what is enqueued so far."""
        queue = queue or self._queue
        event = cl.enqueue_marker(queue)
        queue.flush()
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

    def trim(self) -> None:
        """Buffers are given back when they are freed."""

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
        self._enqueue_held(Launch.enqueue)  # not the last; ahead of the arguments, which may be its kernel's
        kernel.set(handles)
        launch = Launch(kernel, queue or self._own, size, group)
        if self._trace is None:
            self._enqueue(launch, Launch.enqueue)
        elif self._split or not self._trace or queue:
            self._trace.append((kernel.name, self._enqueue(launch, Launch.traced)))
        else:
            self._held = launch

    def _enqueue(self, launch: Launch, enqueue: Callable[[Launch], cl.Event | None]) -> cl.Event | None:
        try:
            return enqueue(launch)
        except cl.Error as error:
            items = math.prod(launch.group)
            if error.code in _TOO_LARGE and items > launch.kernel.stated_group:
                raise UnsupportedError(
                    f"{launch.kernel.name} in work-groups of {items}: {self.info.id} refuses the launch ({error})"
                ) from error
            raise self._memory_error(error, 0) from error

    def timed(
        self, execute: Callable[[], None], before: Callable[[], None] | None = None, split: bool = False
    ) -> Times:
        """Time one execution behind a user event: nothing starts until everything is queued, on a GPU submitted.

        Times by kernel are those of the launches' events: without ``split`` of two launches at most, which are first
        and last.
        """
        hold, gate = self._hold, cl.UserEvent(self.context)
        cl.enqueue_barrier(self._own, wait_for=[gate])
        try:
            if before:
                before()
            if hold:
                hold.enqueue()
            begin = cl.enqueue_marker(self._own)
            self._trace, self._split = [], split
            execute()
            end = cl.enqueue_marker(self._queue)
            trace = self._trace
            if hold:
                hold.last(len(trace))
            self._own.flush()
        finally:
            self._trace = self._held = None
            gate.set_status(cl.command_execution_status.COMPLETE)
            self._own.finish()
        if hold:
            hold.over()
        events = [event for _, event in trace if event]
        span = (events[-1].profile.end - events[0].profile.start) * 1e-9 if events else 0.0
        outside = (end.profile.end - begin.profile.end) * 1e-9 - span
        if len(events) < len(trace):
            return Times(span, None, len(trace), {}, outside)
        kernels: dict[str, float] = {}
        for (name, _), event in zip(trace, events, strict=True):
            kernels[name] = kernels.get(name, 0.0) + (event.profile.end - event.profile.start) * 1e-9
        return Times(span, sum(kernels.values()), len(trace), kernels, outside)

    def profiled(self) -> AbstractContextManager[None]:
        """OpenCL knows no profiler."""
        return nullcontext()

    def finish(self) -> None:
        """Wait for all queues."""
        self.release_held()
        for queue in self._queues:
            queue.finish()

    def clocks(self) -> dict[str, Any]:
        """OpenCL reports no clocks."""
        return {}
