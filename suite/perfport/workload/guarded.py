"""The device as variants get it: while an execution is enqueued or results are asked for, not everything is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Literal

from ..backend import OpenDevice
from ..model.errors import RefusedError

Phase = Literal["build", "launch", "launch on the host", "results"]

#: What moves data or makes commands that no event of the execution covers. Variants that are driven by the host may.
TRANSFERS = ("empty", "fill", "image", "pin", "pinned", "queue", "read", "upload", "write")
REFUSED: dict[str, dict[str, str]] = {
    "build": {},
    "launch": dict.fromkeys(TRANSFERS, "an execution is launches on the device's own queue (unless host_driven)"),
    "launch on the host": {"launch": "a variant that is `host` is timed by a clock that does not wait for the device"},
    "results": {"launch": "the work is done when the clock has stopped"},
}


class GuardedDevice:
    """Passes everything on to a device but what its phase does not allow.

    It is no sandbox: it keeps authors from mistakes and from the simpler ways of leaving work outside the timed window.
    Its phase is ``build`` unless `during` says otherwise.
    """

    def __init__(self, device: OpenDevice) -> None:
        vars(self).update(_device=device, phase="build")

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_device"], name)

    def __setattr__(self, name: str, value: object) -> None:
        raise RefusedError(f"refused: device.{name} is set; a device is the harness's")

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Hold the device to what a phase allows.

        Raises
        ------
        RefusedError
            From the methods that it does not allow.
        """
        before = self.phase
        vars(self)["phase"] = phase
        try:
            yield
        finally:
            vars(self)["phase"] = before


def _guarded(name: str) -> Callable[..., Any]:
    """Return the method of this name that asks the phase first, when it is called."""

    @wraps(getattr(OpenDevice, name))
    def method(self: GuardedDevice, *args: Any, **named: Any) -> Any:
        if why := REFUSED[self.phase].get(name):
            raise RefusedError(f"refused: device.{name} in {self.phase}: {why}")
        if name == "launch" and self.phase == "launch" and named.get("queue") is not None:
            raise RefusedError("refused: device.launch on another queue: its events are not those of the execution")
        return getattr(vars(self)["_device"], name)(*args, **named)

    return method


for _name in (*TRANSFERS, "launch"):
    setattr(GuardedDevice, _name, _guarded(_name))
