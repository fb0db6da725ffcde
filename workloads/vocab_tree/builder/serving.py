"""The process of a device worker: opens the device, then answers the calls of a build.

    python -m perfport.workloads.vocab_tree.builder.serving DESCRIPTOR

The descriptor is that of a connection, inherited from the build; its first message says which device.
"""

from __future__ import annotations

import pickle
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from perfport import backend
from perfport.machine import platforms
from perfport.workload import InfrastructureError, OpenDevice

from .host_memory import SharedPoints, Token
from .mail import Receiver, Sender
from .workers import DeviceWorker, loader_of


class Opened:
    """Shared points by token; those used last stay open, with their pages locked."""

    LIMIT = 2  # the whole set, and the block of prepared points

    def __init__(self, device: OpenDevice) -> None:
        self.device = device
        self._blocks: dict[str, tuple[SharedPoints, Callable[[], None]]] = {}  # by name, the one used last at the end

    def points(self, token: Token) -> np.ndarray:
        """Return the points, and open their memory unless it is."""
        name, size, first, shape = token
        if name not in self._blocks:
            while len(self._blocks) >= self.LIMIT:
                self._close(next(iter(self._blocks)))
            whole = SharedPoints((size,), name)
            self._blocks[name] = whole, self.device.pin(whole.array)
        self._blocks[name] = self._blocks.pop(name)
        return self._blocks[name][0].part(first, shape).array

    def _close(self, name: str) -> None:
        whole, unpin = self._blocks.pop(name)
        unpin()
        whole.free()


def _portable(error: Exception) -> Exception:
    """An error that another process can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return InfrastructureError(f"{type(error).__name__}: {error}")
    return error


def serve(connection: Connection) -> None:
    """Answer with (True, value) or (False, error) until the other side closes the connection."""
    sender, receiver = Sender(connection), Receiver(connection)
    try:
        info, settings, tunables = receiver.receive()
        platforms.use([info.runtime] if info.runtime else [])
        device = backend.get(info.backend).open(info)
        worker = DeviceWorker(device, loader_of(device), settings, tunables)
    except Exception as error:
        sender.send((False, _portable(error)))
        return
    sender.send((True, worker.plan))
    opened = Opened(device)
    while True:
        try:
            method, args = receiver.receive()
        except (EOFError, OSError):
            sender.close()
            return
        try:
            value: Any = None
            if method == "open_node":
                worker.open_node(opened.points(args[0]), *args[1:])
            elif method == "load":
                worker.load(opened.points(args[0]), args[1])
            else:
                value = getattr(worker, method)(*args)
            answer = True, value
        except Exception as error:
            answer = False, _portable(error)
        try:
            sender.send(answer)
        except OSError:  # the build is gone
            sender.close()
            return


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
