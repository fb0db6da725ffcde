"""What ways to convolve share: a layer, an input and an output on the device, what an execution causes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

import numpy as np

from perfport import backend
from perfport.backend import Artifact, Buffer
from perfport.model.device import DeviceInfo
from perfport.model.errors import UnsupportedError
from perfport.model.work import Traffic
from perfport.workload import Setup, Tunable
from perfport.workload.libraries import usable_cores

from ..operators import Operator
from ..problems import Layer

Given = TypeVar("Given")
Made = TypeVar("Made")


def side_by_side(make: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    """Make something of each, in threads: what compiles or assembles takes seconds and lets others run."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(make, given))


class Convolution(ABC):
    """A way to convolve: building one compiles and allocates, `launch` enqueues.

    Parameters
    ----------
    setup : Setup
        Of the variant; its tunables are this engine's `TUNABLES`.
    layer : Layer
    source, result : Buffer
        The input (N, C, H, W) and the output (N, K, H', W'), float32.
    """

    TUNABLES: ClassVar[dict[str, Tunable]] = {}
    NEEDS: ClassVar[tuple[str, ...]] = ()
    CAPABILITY: ClassVar[tuple[int, int]] = (0, 0)

    def __init__(self, setup: Setup, layer: Layer, source: Buffer, result: Buffer) -> None:
        self.setup, self.device, self.tunables = setup, setup.device, setup.tunables
        self.layer, self.operator, self.batch = layer, layer.operator, layer.batch
        self.source, self.result = source, result
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Compile and allocate."""

    @abstractmethod
    def launch(self) -> None:
        """Enqueue one execution."""

    @abstractmethod
    def traffic(self) -> Traffic:
        """What one execution causes."""

    def notes(self) -> dict[str, Any]:
        """Sizes and times of the generated code, for the record's ``extra``."""
        return {}

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        """Raise `UnsupportedError` on a device of too low a compute capability."""
        capability = tuple(int(part) for part in (info.compute_capability or "0.0").split("."))
        if capability < cls.CAPABILITY:
            least = ".".join(map(str, cls.CAPABILITY))
            raise UnsupportedError(f"needs compute capability {least}, {info.id} has {info.compute_capability}")

    def upload(self, what: str, array: np.ndarray) -> Buffer:
        """A form of the weights on the device, made once for all variants of the group that use it."""
        return self.setup.layout(f"{self.layer.name} {what}", lambda: self.device.upload(array))

    def build(self, name: str, source: str, macros: Mapping[str, int]) -> Artifact:
        """Compile source that was generated."""
        return backend.get(self.device.info.backend).build(name, source, macros, self.device.target)

    def load(self, name: str, artifacts: Iterable[Artifact]) -> list[Any]:
        """Load the kernel of that name from each artifact."""
        return [self.setup.load(name, lambda made=made: made) for made in artifacts]  # type: ignore[misc]

    @property
    def sizes(self) -> dict[str, int]:
        """The operator as macros."""
        o = self.operator
        return {
            "CHANNELS": o.channels, "FILTERS": o.filters, "KERNEL_HEIGHT": o.kernel_height,
            "KERNEL_WIDTH": o.kernel_width, "HEIGHT": o.height, "WIDTH": o.width, "STRIDE": o.stride,
            "PADDING": o.padding, "OUT_HEIGHT": o.out_height, "OUT_WIDTH": o.out_width,
        }  # fmt: skip

    @property
    def input_bytes(self) -> float:
        """Bytes of the input."""
        return 4.0 * self.batch * self.operator.inputs

    @property
    def output_bytes(self) -> float:
        """Bytes of the output."""
        return 4.0 * self.batch * self.operator.outputs


class Padded:
    """The input with its zero border on the device (``pad.cl``), for kernels that test no bounds when they read.

    Parameters
    ----------
    engine : Convolution
    rows, columns : int
        Output rows and columns that are computed, those past the edge included.
    """

    def __init__(self, engine: Convolution, rows: int, columns: int) -> None:
        o = engine.operator
        self.engine, self.device = engine, engine.device
        self.rows = (rows - 1) * o.stride + o.kernel_height
        self.pitch = columns + (o.kernel_width - 1) // o.stride
        self.line = o.stride * self.pitch
        self.plane = self.rows * self.line
        self.lines = engine.batch * o.channels * self.rows * o.stride
        if self.lines * self.pitch >= 2**31:
            raise UnsupportedError(
                f"the padded input has {self.lines * self.pitch} elements, kernels index 2^31 at most"
            )
        self.buffer = engine.setup.scratch(4 * self.lines * self.pitch)
        self.group = 1 if engine.device.info.kind == "cpu" else 64
        self.kernel = engine.setup.kernel(
            "pad.cl", "pad", GROUP=self.group, ROWS=self.rows, PITCH=self.pitch, **engine.sizes
        )

    def offset(self, channel: int, row: int, column: int) -> int:
        """Words from the first element of an output's window to one of its inputs."""
        stride = self.engine.operator.stride
        return channel * self.plane + row * self.line + column % stride * self.pitch + column // stride

    def launch(self) -> None:
        """Enqueue the copy."""
        self.device.launch(self.kernel, self.lines, self.group, self.engine.source, self.buffer)

    def traffic(self) -> Traffic:
        """Of the copy; columns that no output needs are left out."""
        o = self.engine.operator
        columns = np.arange(self.line)
        x = columns % self.pitch * o.stride + columns // self.pitch - o.padding
        y = np.arange(self.rows) - o.padding
        inside = float(((x >= 0) & (x < o.width)).sum()) * float(((y >= 0) & (y < o.height)).sum())
        read, write = 4 * self.engine.batch * o.channels * inside, 4.0 * self.lines * self.pitch
        return Traffic(global_read=read, global_write=write, dram_read=read, dram_write=write)


def covered(operator: Operator, tiles: int, size: int, window: int, axis: str, offset: int = 0) -> float:
    """Elements inside the input, summed over tiles along one axis.

    Parameters
    ----------
    tiles, size : int
        Number of tiles, and outputs of each.
    window : int
        Inputs of each along the axis.
    axis : str
        ``height`` or ``width``.
    offset : int
        Of a tile's first input from that of its first output's window.
    """
    first = np.arange(tiles) * size * operator.stride - operator.padding + offset
    end = np.minimum(first + window, getattr(operator, axis))
    return float(np.maximum(end - np.maximum(first, 0), 0).sum())
