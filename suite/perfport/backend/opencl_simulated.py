"""The simulator's device, one thread at a time.

Oclgrind executes commands in the threads that wait for them, and notes without a lock what memory has been written:
of a program whose threads upload and launch side by side it calls written memory unwritten.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import RLock
from typing import Any

import pyopencl as cl

from ..model.device import DeviceInfo
from .opencl_device import OpenCLDevice

#: What executes commands, in the thread that calls it.
EXECUTING = ("read", "write", "fill", "launch", "record", "wait", "synchronize", "finish", "copy_to_image")


class SimulatedDevice(OpenCLDevice):
    """Commands of several threads take turns."""

    def __init__(self, info: DeviceInfo, device: cl.Device) -> None:
        self.turn = RLock()
        super().__init__(info, device)


def _in_turn(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def taken(self: SimulatedDevice, *args: Any, **named: Any) -> Any:
        with self.turn:
            return method(self, *args, **named)

    return taken


for name in EXECUTING:
    setattr(SimulatedDevice, name, _in_turn(getattr(OpenCLDevice, name)))
