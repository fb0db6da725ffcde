"""What ways to convolve share: a layer, an input and an output on the device, what an execution causes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

import numpy as np

from perfport import backend
from perfport.workload import (
    Artifact,
    Buffer,
    DeviceInfo,
    Setup,
    Step,
    Traffic,
    Tunable,
    UnsupportedError,
    Variant,
    usable_cores,
)

from ..problems import Layer

Made = TypeVar("Made")
Places = TypeVar("Places", int, np.ndarray)


def side_by_side(make: Callable[..., Made], *given: Iterable[Any]) -> list[Made]:
    """Make something of each, in threads: what compiles or assembles takes seconds and lets others run."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(make, *given))


class Convolution(ABC):
    """A way to convolve, a step of an execution: building one compiles and allocates, `launch` enqueues.

    Parameters
    ----------
    setup : Setup
        Of the variant.
    layer : Layer
    source, result : Buffer
        The input (N, C, H, W) and the output (N, K, H', W'), float32.
    tunables : mapping
        Values of this engine's `TUNABLES`.

    Attributes
    ----------
    ahead : sequence of Step
        What an execution runs before: `Padded`, where the engine reads that.
    """

    TUNABLES: ClassVar[dict[str, Tunable]] = {}
    NEEDS: ClassVar[tuple[str, ...]] = ()
    CAPABILITY: ClassVar[tuple[int, int]] = (0, 0)
    ahead: Sequence[Step] = ()

    def __init__(self, setup: Setup, layer: Layer, source: Buffer, result: Buffer, tunables: Mapping[str, Any]) -> None:
        self.setup, self.device, self.tunables = setup, setup.device, tunables
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

    @property
    def steps(self) -> list[Step]:
        """All that an execution runs."""
        return [*self.ahead, self]

    def notes(self) -> dict[str, Any]:
        """Sizes and times of the generated code, for the record's ``extra``."""
        return {}

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        """Raise `UnsupportedError` on a device without what the engine needs."""
        if missing := [need for need in cls.NEEDS if need not in info.capabilities]:
            raise UnsupportedError(f"needs {', '.join(missing)}, which {info.id} does not have")
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

    def assemble(self, name: str, ptx: str, local_bytes: int) -> Artifact:
        """Assemble PTX that was generated, whose launches have so much local memory."""
        return backend.get(self.device.info.backend).assemble(name, ptx, self.device.target, local_bytes)

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


class EngineVariant(Variant):
    """A variant that convolves by one engine, and needs what that needs."""

    engine: ClassVar[type[Convolution]]

    def __init_subclass__(cls) -> None:
        engine = vars(cls).get("engine")
        if engine and "tunables" not in vars(cls):
            cls.tunables, cls.needs = engine.TUNABLES, engine.NEEDS

    def convolve(self, setup: Setup, layer: Layer, source: Buffer, result: Buffer) -> Convolution:
        """The engine on a layer."""
        return self.engine(setup, layer, source, result, setup.tunables)

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        super().require(info)
        cls.engine.require(info)


class Padded:
    """A step: the input with its zero border (``pad.cl``), for kernels that test no bounds when they read.

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

    def offset(self, channel: Places, row: Places, column: Places) -> Places:
        """Words from the first element of an output's window to one of its inputs, or to several."""
        stride = self.engine.operator.stride
        return channel * self.plane + row * self.line + column % stride * self.pitch + column // stride

    def launch(self) -> None:
        """As of `Step`."""
        self.device.launch(self.kernel, self.lines, self.group, self.engine.source, self.buffer)

    def traffic(self) -> Traffic:
        """As of `Step`; columns that no output needs are left out."""
        o = self.engine.operator
        columns = np.arange(self.line)
        x = columns % self.pitch * o.stride + columns // self.pitch - o.padding
        y = np.arange(self.rows) - o.padding
        inside = float(((x >= 0) & (x < o.width)).sum()) * float(((y >= 0) & (y < o.height)).sum())
        read, write = 4 * self.engine.batch * o.channels * inside, 4.0 * self.lines * self.pitch
        return Traffic(global_read=read, global_write=write, dram_read=read, dram_write=write)
