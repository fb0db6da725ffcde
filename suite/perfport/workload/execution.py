"""Running a variant once: what the worker does around sampling, and the untimed child to verify, count or sanitize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..backend import Buffer, Module
from ..model.errors import (
    CompileError,
    DeviceMemoryError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
from ..model.record import Status, Verification
from .guarded import Phase
from .peers import Peer
from .problem import Problem
from .setup import POISON, Session, Setup
from .variant import Variant

STATUS = {
    CompileError: Status.COMPILE_ERROR,
    RefusedError: Status.WRONG,
    UnsupportedError: Status.UNSUPPORTED,
    UnavailableError: Status.UNAVAILABLE,
    DeviceMemoryError: Status.OUT_OF_MEMORY,
    MemoryError: Status.OUT_OF_MEMORY,
    UsageError: Status.UNSUPPORTED,
}


#: By this name PyTorch's and CuPy's errors of a GPU's memory go; neither library need be installed.
LIBRARIES_MEMORY_ERROR = "OutOfMemoryError"


def status_of(error: Exception) -> Status:
    """Return the status of a case that ends with an error."""
    if any(kind.__name__ == LIBRARIES_MEMORY_ERROR for kind in type(error).__mro__):
        return Status.OUT_OF_MEMORY
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), Status.CRASHED)


@dataclass
class Built:
    """A variant built on one set of inputs."""

    variant: Variant
    setup: Setup
    _handed: list[np.ndarray] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self._buffers = dict(self.setup.outputs)  # those that it was built with, whatever becomes of the list

    def execute(self, around: Callable[[], AbstractContextManager[None]] = nullcontext) -> Verification:
        """Execute once into poisoned outputs, and compare these with the reference; ``around`` holds the launches.

        Scratch is left as it was allocated: a sanitizer tells reads of what was never written.
        """
        self.poison()
        with around():
            self.launch()
        self.setup.device.finish()
        return self.verify(self.outputs())

    def launch(self) -> None:
        """Enqueue one execution. Raises `RefusedError` where it does what an execution may not."""
        with self.setup.device.during(self.phase):
            self.variant.launch()

    @property
    def phase(self) -> Phase:
        """What the device allows while an execution is enqueued."""
        if self.variant.host:
            return "launch on the host"
        return "build" if self.variant.host_driven or isinstance(self.variant, Peer) else "launch"

    def poison(self, scratch: bool = False) -> None:
        """Make unusable what an execution left: outputs on the device, arrays handed over, and ``scratch``."""
        for buffer in {id(each): each for each in (*self.buffers, *(self.setup.work if scratch else ()))}.values():
            self.setup.device.fill(buffer, POISON)
        for array in self._handed:
            if array.flags.writeable:
                array.view(np.uint8).fill(POISON)
        self._handed.clear()

    @property
    def buffers(self) -> list[Buffer]:
        """The buffers that outputs are left in."""
        return [output.buffer for output in self._buffers.values()]

    def left(self) -> dict[str, np.ndarray]:
        """Return what the last execution left in buffers, as they are."""
        device = self.setup.device
        return {name: device.read(left.buffer, left.dtype, left.shape) for name, left in self._buffers.items()}

    def handed(self) -> dict[str, np.ndarray]:
        """Return what the variant hands over itself.

        Raises
        ------
        RefusedError
            Where `Variant.results` enqueues work, or names an output that has a buffer.
        """
        with self.setup.device.during("build" if isinstance(self.variant, Peer) else "results"):
            results = {name: np.ascontiguousarray(value) for name, value in self.variant.results().items()}
        if both := results.keys() & self._buffers.keys():
            raise RefusedError(f"refused: results() gives {', '.join(sorted(both))}, which is read from a buffer")
        self._handed += results.values()
        return results

    def outputs(self) -> dict[str, np.ndarray]:
        """Return what the last execution left: buffers as they are, before the variant is asked for anything else.

        Raises
        ------
        RefusedError
            As of `handed`.
        """
        return {**self.left(), **self.handed()}

    def verify(self, outputs: Mapping[str, np.ndarray], problem: Problem | None = None) -> Verification:
        """Compare outputs with the reference, of another ``problem`` where the inputs are not those of the setup."""
        problem = problem or self.setup.problem
        return problem.verify(outputs, self.variant.computes, self.variant.precision)

    def release(self) -> None:
        """Give the buffers back."""
        self.setup.release()


def build(
    cls: type[Variant],
    session: Session,
    tunables: Mapping[str, Any],
    macros: Mapping[str, Any],
    modules: dict[str, Module] | None = None,
) -> Built:
    """Build a variant on the inputs of a session, with all the memory that variants before it no longer use.

    Parameters
    ----------
    tunables : mapping
        A value of each tunable.
    macros : mapping
        Further parameters of a device profile.
    modules : dict, optional
        Loaded code to share (see `Setup`).

    Raises
    ------
    UnsupportedError, UnavailableError
        Where the variant cannot run.
    """
    cls.require(session.device.info)
    session.device.trim()
    setup = Setup(session, dict(tunables), macros, modules)
    try:
        return Built(cls(setup), setup)
    except BaseException:
        setup.release()
        raise
