"""What a variant builds itself with, and what the variants of a problem on a device share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import backend
from ..backend import Artifact, Buffer, Kernel, Module, OpenDevice
from .guarded import GuardedDevice
from .problem import Problem
from .source import read_source

WORK = "work "  # how keys of shared work space begin
INPUT = "input "  # and those of inputs as the problem states them
LAYOUT = "layout "  # and of re-laid-out copies
POISON = 0xFF  # NaN as float32 and float64, the largest unsigned integer, -1


class Session:
    """A device and one problem on it: what the cases of a group share.

    Inputs and re-laid-out copies of them are made once, on first use, and timed.

    Attributes
    ----------
    device : OpenDevice
    problem : Problem
    folder : Path
        Of the workload.
    timed : bool
        Whether the time of an execution means anything; under a sanitizer it does not, and no variant measures ahead.
    artifacts : dict
        What was compiled so far. Sessions of one problem with other inputs may have it in common.
    """

    def __init__(
        self,
        device: OpenDevice,
        problem: Problem,
        folder: Path,
        timed: bool = True,
        artifacts: dict[str, Artifact] | None = None,
    ) -> None:
        self.device: Any = GuardedDevice(device)
        self.problem = problem
        self.folder = folder
        self.timed = timed
        self.artifacts = {} if artifacts is None else artifacts
        self._shared: dict[str, tuple[Any, float]] = {}
        self._makes: dict[str, Callable[[], Any]] = {}
        self._borrowed: set[str] = set()

    def borrow(self, lender: Session) -> None:
        """Use the inputs that another session of the same problem and device has made, which is closed after this one.

        Layouts are made anew: kernels make them, which may be other ones here.
        """
        self._borrowed = {key for key in lender._shared if key.startswith(INPUT)}
        self._shared |= {key: lender._shared[key] for key in self._borrowed}
        self._makes |= {key: lender._makes[key] for key in self._borrowed}

    def shared(self, key: str, make: Callable[[], Any]) -> tuple[Any, float]:
        """Return what ``make`` returned for this key, and the seconds that making it took."""
        if key not in self._shared:
            self._makes[key] = make
            self.device.finish()
            started = time.perf_counter()
            value = make()
            self.device.finish()
            self._shared[key] = (value, time.perf_counter() - started)
        return self._shared[key]

    @property
    def inputs(self) -> dict[str, Buffer]:
        """The buffers of inputs and layouts by their keys, in the order in which they were made."""
        values = {key: value for key, (value, _) in self._shared.items() if not key.startswith(WORK)}
        return {key: value for key, value in values.items() if hasattr(value, "free")}

    def again(self, key: str) -> Any:
        """Return another copy of what is shared by this key, made anew; the caller frees it."""
        return self._makes[key]()

    def close(self) -> None:
        """Give the shared buffers back."""
        for key, (value, _) in self._shared.items():
            if hasattr(value, "free") and key not in self._borrowed:
                value.free()
        self._shared.clear()
        self._makes.clear()

    def source(self, file: str) -> str:
        """Return the text of a kernel file of the workload, with the files that it includes."""
        return read_source(self.folder / "kernels" / file)

    def build(self, file: str, macros: Mapping[str, Any]) -> Artifact:
        """Compile a kernel file of the workload for this device, once per set of macros."""
        key = f"{self.folder / 'kernels' / file} {sorted(macros.items())}"
        if key not in self.artifacts:
            builder = backend.get(self.device.info.backend)
            self.artifacts[key] = builder.build(file, self.source(file), macros, self.device.target)
        return self.artifacts[key]


@dataclass(frozen=True)
class OutputBuffer:
    """A device buffer that is poisoned before each execution, and what is read of it afterwards."""

    buffer: Buffer
    dtype: Any
    shape: tuple[int, ...]


class Setup:
    """What a variant builds itself with: kernels, shared inputs, outputs; and the account of what that cost.

    Attributes
    ----------
    device : OpenDevice
    problem : Problem
    tunables : dict
        Chosen value of each tunable of the variant.
    profile : dict
        The device profile's parameters for this workload, by macro name.
    compile_s, input_s, layout_s : float
        Seconds spent compiling, making or uploading inputs, and re-laying them out for this variant.
    modules : dict
        Loaded code by the hash of its source. Setups of one case on other inputs may have it in common.
    work : list of Buffer
        Outputs and scratch: no execution may rest on what they hold.
    """

    def __init__(
        self,
        session: Session,
        tunables: dict[str, Any],
        macros: Mapping[str, Any],
        modules: dict[str, Module] | None = None,
    ) -> None:
        self.session = session
        self.device = session.device
        self.problem: Any = session.problem
        self.tunables = tunables
        self.profile = {key.upper(): value for key, value in macros.items()}
        self.artifacts: list[Artifact] = []
        self.kernels: list[Kernel] = []
        self.modules = {} if modules is None else modules
        self.outputs: dict[str, OutputBuffer] = {}
        self.buffers: list[Buffer] = []
        self.work: list[Buffer] = []
        self._used: dict[str, Any] = {}
        self._own_bytes = 0
        self.compile_s = 0.0
        self.layout_s: float | None = None
        self.input_s: float | None = None

    def kernel(self, file: str, name: str, **macros: Any) -> Kernel:
        """Compile and load a kernel; tunables and the profile's parameters are macros already, in upper case."""
        named = {**self.profile, **{key.upper(): value for key, value in self.tunables.items()}, **macros}
        return self.load(name, lambda: self.session.build(file, named))

    def load(self, name: str, make: Callable[[], Artifact]) -> Kernel:
        """Load a kernel from an artifact that ``make`` builds; for code that a variant generates."""
        started = time.perf_counter()
        artifact = make()
        if artifact.source_hash not in self.modules:  # OpenCL runtimes compile at every load
            self.modules[artifact.source_hash] = self.device.load(artifact)
        loaded = self.modules[artifact.source_hash].kernel(name)
        self.compile_s += time.perf_counter() - started
        self.artifacts.append(artifact)
        self.kernels.append(loaded)
        return loaded

    def _shared(self, key: str, make: Callable[[], Any]) -> tuple[Any, float]:
        value, seconds = self.session.shared(key, make)
        self._used[key] = value
        return value, seconds

    @property
    def device_bytes(self) -> int:
        """Device memory of this variant: its own buffers and the shared ones that it uses."""
        return sum(getattr(value, "nbytes", 0) for value in self._used.values()) + self._own_bytes

    @property
    def inputs(self) -> dict[str, Buffer]:
        """The shared buffers of inputs and layouts that this variant uses, by their keys."""
        return {key: buffer for key, buffer in self.session.inputs.items() if key in self._used}

    @property
    def by_buffers(self) -> bool:
        """Whether inputs and layouts reach this variant by buffers alone, and not by images, too."""
        return all(hasattr(value, "free") for value in self._used.values())

    def input(self, key: str, make: Callable[[], Any]) -> Any:
        """Return an input as the problem states it, made once for all variants."""
        value, seconds = self._shared(f"{INPUT}{key}", make)
        self.input_s = (self.input_s or 0.0) + seconds
        return value

    def layout(self, key: str, make: Callable[[], Any]) -> Any:
        """Return a re-laid-out input, made once for all variants; its cost is charged to each of them."""
        value, seconds = self._shared(f"{LAYOUT}{key}", make)
        self.layout_s = (self.layout_s or 0.0) + seconds
        return value

    def output(self, name: str, dtype: Any, shape: int | tuple[int, ...], room: int = 0) -> Buffer:
        """Allocate an output that the problem declares; ``room``: elements of its buffer, where kernels write more."""
        shape = (shape,) if isinstance(shape, int) else shape
        buffer = self.scratch(max(room, int(np.prod(shape))) * np.dtype(dtype).itemsize)
        self.outputs[name] = OutputBuffer(buffer, dtype, shape)
        return buffer

    def scratch(self, nbytes: int) -> Buffer:
        """Allocate a buffer that lives as long as the variant, whose contents no execution may expect."""
        buffer = self._own(self.device.empty(nbytes))
        self.work.append(buffer)
        return buffer

    def upload(self, array: np.ndarray) -> Buffer:
        """Upload what the variant keeps beside inputs: tables, counters that each execution leaves at zero."""
        return self._own(self.device.upload(array))

    def shared_scratch(self, key: str, make: Callable[[], Buffer]) -> Buffer:
        """Return scratch that is too large for each variant to have its own, made once for all of them."""
        buffer: Buffer = self._shared(WORK + key, make)[0]
        self.work.append(buffer)
        return buffer

    def _own(self, buffer: Buffer) -> Buffer:
        self.buffers.append(buffer)
        self._own_bytes += buffer.nbytes
        return buffer

    def release(self) -> None:
        """Give the variant's own buffers back."""
        while self.buffers:
            self.buffers.pop().free()
