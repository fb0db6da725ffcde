"""The protocol that both backends implement. Nothing outside this folder asks which backend it has."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..model.device import DeviceInfo
from ..model.errors import UnsupportedError

#: The kernel that stands before each window of `OpenDevice.profiled` in a profiler's output.
MARKER = "perfport_marker"

Macros = Mapping[str, int | float | str]


@dataclass(frozen=True)
class Artifact:
    """Compiled or ready-to-compile code for one target; making it needs no device.

    Attributes
    ----------
    code : bytes
        OpenCL C source with the dialect prepended, or a cubin.
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
    log: str = ""
    listing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Times:
    """Device times of one execution, in seconds.

    ``span`` runs from the first to the last device activity, ``busy`` is the sum of activities (``None`` where
    measuring it would disturb the span), ``kernels`` splits ``busy`` by kernel name.
    """

    span: float
    busy: float | None
    launches: int
    kernels: dict[str, float]


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
    Buffers, images, kernels, queues and events are this
    device's own: parameters that take one are typed ``Any``.
    """

    info: DeviceInfo
    allocated: int

    @property
    def target(self) -> str | None:
        """What `Backend.build` takes for this device."""
        ...

    def load(self, artifact: Artifact) -> Module:
        """Load an artifact. Raises `CompileError` with the log."""
        ...

    def empty(self, nbytes: int) -> Buffer:
        """Allocate. Raises `DeviceMemoryError`."""
        ...

    def upload(self, array: np.ndarray) -> Buffer:
        """Allocate and fill with a host array (waits)."""
        ...

    def write(self, buffer: Any, array: np.ndarray, queue: Any = None) -> None:
        """Copy host to device; asynchronous when ``array`` is pinned and ``queue`` is given."""
        ...

    def read(self, buffer: Any, dtype: Any, shape: Sequence[int], out: np.ndarray | None = None) -> np.ndarray:
        """Copy device to a new host array, or to ``out`` (waits)."""
        ...

    def fill(self, buffer: Any, byte: int) -> None:
        """Set every byte of a buffer."""
        ...

    def pinned(self, nbytes: int) -> np.ndarray:
        """Allocate page-locked host memory as a byte array."""
        ...

    def pin(self, array: np.ndarray) -> Callable[[], None]:
        """Make host memory that exists already page-locked, where that helps; returns what undoes it."""
        ...

    def image(self, width: int, height: int) -> Image:
        """Allocate an RGBA float image. Raises `UnsupportedError` above the device's limits."""
        ...

    def copy_to_image(self, buffer: Any, image: Any) -> None:
        """Enqueue a copy of tightly packed rows from a buffer into an image."""
        ...

    def queue(self) -> Any:
        """Return another in-order queue."""
        ...

    def record(self, queue: Any = None) -> Any:
        """Return an event that completes when everything before it in ``queue`` has."""
        ...

    def wait(self, event: Any, queue: Any = None) -> None:
        """Make ``queue`` wait for an event of any queue of this device."""
        ...

    def synchronize(self, event: Any) -> None:
        """Make the host wait for an event."""
        ...

    def attach(self) -> None:
        """Make the device usable from the calling thread, where that is not the one that opened it."""
        ...

    def free_bytes(self) -> int:
        """Memory that can still be allocated, as far as driver or operating system tell."""
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
        """Enqueue ``groups`` work-groups of ``group`` work-items.

        ``args`` are buffers, image handles or NumPy scalars; ``local_bytes`` is the size of the kernel's
        ``LOCAL_ARENA``. Raises `UnsupportedError` when the group or the arena exceeds the device's limits.
        """
        ...

    def timed(
        self, execute: Callable[[], None], before: Callable[[], None] | None = None, split: bool = False
    ) -> Times:
        """Time one execution with device events, queued behind a gate so that host time is not measured.

        ``before`` is enqueued ahead of the timed window (cache flush). ``split`` asks for per-kernel times even
        where reading them lengthens the span.
        """
        ...

    def profiled(self) -> AbstractContextManager[None]:
        """Limit a profiler that was started idle to the launches inside; a kernel named `MARKER` comes first."""
        ...

    def finish(self) -> None:
        """Wait for all queues; raises the device's pending error."""
        ...

    def clocks(self) -> dict[str, Any]:
        """Clocks, temperature and foreign load where the driver tells; empty otherwise."""
        ...


class Backend(Protocol):
    """A way to reach devices."""

    name: str

    def discover(self) -> list[DeviceInfo]:
        """List the devices this backend sees in this process (see `perfport.machine.discovery` for isolation)."""
        ...

    def build(
        self, name: str, source: str, macros: Macros, target: str | None, options: Sequence[str] = ()
    ) -> Artifact:
        """Compile one source for a target without a device. Raises `CompileError` with the log."""
        ...

    def open(self, info: DeviceInfo) -> OpenDevice:
        """Open a discovered device in this process."""
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


def define_flags(macros: Macros) -> list[str]:
    """Return macros as ``-DNAME=value`` options in a stable order."""
    return [f"-D{name}={value}" for name, value in sorted(macros.items())]


def digest(*parts: str) -> str:
    """SHA-256 over text parts, as recorded in ``source_hash``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def as_tuple(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a launch size as a tuple."""
    return (size,) if isinstance(size, int) else tuple(size)
