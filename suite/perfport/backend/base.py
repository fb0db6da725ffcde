"""The protocol that every backend implements. Nothing outside this folder asks which backend it has."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from ..model.device import DeviceInfo
from ..model.errors import UnsupportedError

#: The kernel that stands before each window of `OpenDevice.profiled` in a profiler's output.
MARKER = "perfport_marker"
#: Capabilities that are features of an OpenCL runtime's compiler, by which the dialect is compiled.
FEATURES = ("dp4a", "warp_sync", "wide_loads")

Macros = Mapping[str, int | float | str]


@dataclass(frozen=True)
class Artifact:
    """Compiled or ready-to-compile code for one target; making it needs no device.

    Attributes
    ----------
    code : bytes
        In the form that ``form`` says.
    form : {"source", "ptx", "cubin"}
        OpenCL C with the dialect prepended, PTX, or machine code of NVIDIA's.
    options : tuple of str
        Compiler options, recorded with every result.
    source_hash : str
        SHA-256 of dialect, source, macros and options.
    listing : dict
        Human-readable stages, for ``perfport show``: ``source``, ``ptx``.
    """

    backend: str
    name: str
    code: bytes
    options: tuple[str, ...]
    source_hash: str
    form: Literal["source", "ptx", "cubin"]
    log: str = ""
    listing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Times:
    """Device times of one execution, in seconds.

    ``span`` runs from the first to the last device activity, ``busy`` is the sum of activities (``None`` where
    measuring it would lengthen the span), ``kernels`` splits ``busy`` by kernel name, and is empty without it.
    ``outside`` is the time from the gate to the end that the span leaves out; 0 where it is all of it.
    """

    span: float
    busy: float | None
    launches: int
    kernels: dict[str, float]
    outside: float = 0.0


class Kernel(Protocol):
    """A kernel ready to launch."""

    name: str
    resources: dict[str, int]


class Module(Protocol):
    """A loaded artifact."""

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of that name."""
        ...


class Buffer(Protocol):
    """Linear device memory."""

    nbytes: int

    def free(self) -> None:
        """Give the memory back."""
        ...


class Image(Protocol):
    """Two-dimensional RGBA float image with a read handle and a write handle (the kernel's argument types)."""

    width: int
    height: int
    read: Any
    write: Any


class OpenDevice(Protocol):
    """A device of one backend, opened in this process.

    Work goes to a queue; ``None`` stands for the device's own in-order queue, the only one that `timed` sees.
    Buffers, images, kernels, queues and events are this device's own: parameters that take one are typed ``Any``.

    Attributes
    ----------
    info : DeviceInfo
    allocated : int
        Bytes in buffers that are not freed.
    """

    info: DeviceInfo
    allocated: int

    @property
    def target(self) -> str | None:
        """What `Backend.build` takes for this device.

        An architecture (``sm_90``), or features of the runtime's compiler that the dialect uses, each with a plus
        behind it, and the architecture whose PTX it takes, if any (``dp4a+wide_loads+sm_90``). ``None``: nothing.
        """
        ...

    def load(self, artifact: Artifact) -> Module:
        """Load an artifact. Raises `CompileError` with the log, where loading compiles."""
        ...

    def empty(self, nbytes: int) -> Buffer:
        """Allocate, uninitialised; 0 bytes are allowed. Raises `DeviceMemoryError`, and the device goes on."""
        ...

    def upload(self, array: np.ndarray) -> Buffer:
        """Allocate and fill with a host array in C order (waits). Raises `DeviceMemoryError`."""
        ...

    def write(self, buffer: Any, array: np.ndarray, queue: Any = None) -> None:
        """Copy a contiguous host array to the start of a buffer.

        Waits on the device's own queue. On another ``queue`` it is asynchronous where ``array`` is pinned (`pinned`,
        `pin`); the array must stay as it is until then.
        """
        ...

    def read(self, buffer: Any, dtype: Any, shape: Sequence[int], out: np.ndarray | None = None) -> np.ndarray:
        """Copy the start of a buffer to a new host array, or to ``out``, contiguous and of that size (waits)."""
        ...

    def fill(self, buffer: Any, byte: int) -> None:
        """Enqueue that every byte of a buffer is set to ``byte``, 0 to 255."""
        ...

    def pinned(self, nbytes: int) -> np.ndarray:
        """Allocate page-locked host memory as an array of uint8; it lives as long as the array."""
        ...

    def pin(self, array: np.ndarray) -> Callable[[], None]:
        """Page-lock host memory that exists already, where the runtime can; return the function that undoes it."""
        ...

    def image(self, width: int, height: int) -> Image:
        """Allocate an RGBA float32 image. Raises `UnsupportedError` without images, and above the device's limits."""
        ...

    def copy_to_image(self, buffer: Any, image: Any) -> None:
        """Enqueue a copy of tightly packed rows, 16 bytes for each pixel, from a buffer into an image.

        It counts as a launch named ``copy_buffer_to_image``.
        """
        ...

    def queue(self) -> Any:
        """Return another in-order queue, independent of the device's own."""
        ...

    def record(self, queue: Any = None) -> Any:
        """Return an event that completes when everything before it in ``queue`` has."""
        ...

    def wait(self, event: Any, queue: Any = None) -> None:
        """Make ``queue`` wait for an event of any queue of this device; the host does not."""
        ...

    def synchronize(self, event: Any) -> None:
        """Make the host wait for an event."""
        ...

    def attach(self) -> None:
        """Make the device usable from the calling thread, where that is not the one that opened it."""
        ...

    def free_bytes(self) -> int:
        """Return the bytes that can still be allocated, as far as driver or operating system tell."""
        ...

    def trim(self) -> None:
        """Give back what this process's pools of device memory hold unused: each library's would be lost to others."""
        ...

    def launch(
        self,
        kernel: Any,
        groups: int | tuple[int, ...],
        group: int | tuple[int, ...],
        *args: Any,
        local_bytes: int = 0,
        queue: Any = None,
    ) -> None:
        """Enqueue a kernel.

        Parameters
        ----------
        kernel : Kernel
        groups, group : int or tuple of int
            Work-groups, and work-items of each, by dimension; as many dimensions in both, three at most.
        args : Buffer, image handle or NumPy scalar
            In the order of the kernel's parameters, scalars of their type.
        local_bytes : int
            Size of the kernel's ``LOCAL_ARENA``.

        Raises
        ------
        UnsupportedError
            When the group or the arena exceeds the limits of device or kernel (`check_launch`).
        """
        ...

    def timed(
        self, execute: Callable[[], None], before: Callable[[], None] | None = None, split: bool = False
    ) -> Times:
        """Time one execution with device events, queued behind a gate so that host time is not measured.

        Parameters
        ----------
        execute : callable
            Enqueues on the device's own queue. What it raises is passed on; the device stays usable.
        before : callable, optional
            Enqueued ahead of the timed window (cache flush).
        split : bool
            Ask for times by kernel even where reading them lengthens the span.
        """
        ...

    def profiled(self) -> AbstractContextManager[None]:
        """Limit a profiler that was started idle to the launches inside; a kernel named `MARKER` comes first.

        Does nothing where the backend knows no profiler.
        """
        ...

    def finish(self) -> None:
        """Wait for all queues. Raises the device's pending error."""
        ...

    def clocks(self) -> dict[str, Any]:
        """Return clocks in MHz, temperature in degrees Celsius and throttling; empty where the driver tells nothing."""
        ...


class Backend(Protocol):
    """A way to reach devices."""

    name: str

    def discover(self) -> list[DeviceInfo]:
        """List the devices this backend sees in this process (see `perfport.machine.discovery` for isolation).

        Empty, not an error, where library, driver or devices are missing.
        """
        ...

    def build(
        self, name: str, source: str, macros: Macros, target: str | None, options: Sequence[str] = ()
    ) -> Artifact:
        """Compile one source for a target without a device.

        Parameters
        ----------
        name : str
            File name for messages of the compiler and for line numbers.
        source : str
            In the kernel dialect; the backend prepends its header.
        macros : mapping
            Value by name of each macro.
        target : str or None
            As `OpenDevice.target`.
        options : sequence of str
            Further options of the compiler.

        Raises
        ------
        CompileError
            With the log.
        UnavailableError
            Where the compiler is not installed.
        """
        ...

    def assemble(self, name: str, ptx: str, target: str | None, local_bytes: int = 0) -> Artifact:
        """Make an artifact of PTX that was generated, for a device with the capability ``ptx``.

        Threads may call it side by side.

        Parameters
        ----------
        name : str
            Stands in error messages.
        ptx : str
            Kernels whose 64-bit parameters are all buffers.
        target : str or None
            As `OpenDevice.target`.
        local_bytes : int
            What launches will pass as ``local_bytes``.

        Raises
        ------
        CompileError
            With the assembler's log, where it is not the runtime that assembles when it loads.
        UnavailableError
            Without the assembler.
        """
        ...

    def open(self, info: DeviceInfo) -> OpenDevice:
        """Open a discovered device in this process. Raises `UnsupportedError` where this process does not see it."""
        ...


def check_launch(info: DeviceInfo, kernel: Kernel, group: tuple[int, ...], local_bytes: int) -> None:
    """Raise `UnsupportedError` where a work-group or an arena exceeds what the device allows the kernel."""
    items, limit = math.prod(group), kernel.resources["max_work_group"]
    if items > limit:
        raise UnsupportedError(f"{kernel.name} needs a work-group of {items}, {info.id} allows {limit}")
    if local_bytes > info.local_memory_bytes:
        raise UnsupportedError(
            f"{kernel.name} needs {local_bytes} bytes of local memory, {info.id} has {info.local_memory_bytes}"
        )


def check_image(info: DeviceInfo, width: int, height: int) -> None:
    """Raise `UnsupportedError` where the device has no images, or none so large."""
    if "images" not in info.capabilities:
        raise UnsupportedError(f"{info.id} has no images")
    limit = (info.image2d_max_width, info.image2d_max_height)
    if width > limit[0] or height > limit[1]:
        raise UnsupportedError(f"an image of {width} x {height} exceeds {info.id}'s {limit[0]} x {limit[1]}")


def target_of(info: DeviceInfo) -> str | None:
    """Return what `OpenDevice.target` is for a device."""
    features = [name for name in FEATURES if name in info.capabilities and info.backend == "opencl"]
    processor = f"sm_{(info.compute_capability or '').replace('.', '')}" if "ptx" in info.capabilities else ""
    return "+".join([*features, processor]) or None


def feature_flags(target: str | None) -> list[str]:
    """Return the compiler's options for the features that a target names."""
    return [f"-DPERFPORT_{feature.upper()}" for feature in (target or "").split("+")[:-1]]


def architecture(target: str | None) -> str:
    """Return what a target says of the processor (``sm_90``), without the compiler's features; empty where nothing."""
    return (target or "").rpartition("+")[2]


def with_dialect(header: str, dialect: str, name: str, source: str) -> str:
    """Return a source behind its dialect header; ``#line`` makes compilers name places in either by its own file."""
    return f'#line 1 "{header}"\n{dialect}\n#line 1 "{name}"\n{source}'


def define_flags(macros: Macros) -> list[str]:
    """Return macros as ``-DNAME=value`` options in a stable order."""
    return [f"-D{name}={value}" for name, value in sorted(macros.items())]


def digest(*parts: str) -> str:
    """SHA-256 over text parts, as recorded in ``source_hash``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def as_tuple(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a launch size as a tuple."""
    return (size,) if isinstance(size, int) else tuple(size)
