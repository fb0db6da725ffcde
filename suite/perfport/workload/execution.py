"""Running a variant once: what the worker does around sampling, and the untimed child to verify, count or sanitize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..backend import Module
from ..model.errors import (
    CompileError,
    DeviceMemoryError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
from ..model.record import Status, Verification
from .setup import Session, Setup
from .variant import Variant

STATUS = {
    CompileError: Status.COMPILE_ERROR,
    UnsupportedError: Status.UNSUPPORTED,
    UnavailableError: Status.UNAVAILABLE,
    DeviceMemoryError: Status.OUT_OF_MEMORY,
    MemoryError: Status.OUT_OF_MEMORY,
    UsageError: Status.UNSUPPORTED,
}


def status_of(error: Exception) -> Status:
    """Return the status of a case that ends with an error."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), Status.CRASHED)


@dataclass(frozen=True)
class Built:
    """A variant built on one set of inputs."""

    variant: Variant
    setup: Setup

    def execute(self, around: Callable[[], AbstractContextManager[None]] = nullcontext) -> Verification:
        """Execute once into poisoned outputs, and compare these with the reference; ``around`` holds the launches."""
        self.setup.poison()
        with around():
            self.variant.launch()
        self.setup.device.finish()
        return self.setup.verify(self.variant.results())

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
    """Build a variant on the inputs of a session.

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
    setup = Setup(session, dict(tunables), macros, modules)
    try:
        return Built(cls(setup), setup)
    except BaseException:
        setup.release()
        raise
