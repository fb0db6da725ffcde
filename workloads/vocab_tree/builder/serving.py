"""The process of a device worker: opens the device, then answers the calls of a build.

    python -m perfport.workloads.vocab_tree.builder.serving DESCRIPTOR

The descriptor is that of a connection, inherited from the build; its first message says which device.
"""

from __future__ import annotations

import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from perfport import backend, platforms
from perfport.errors import InfrastructureError

from .workers import DeviceWorker, SharedPoints, loader_of


def _nothing() -> None:
    """No memory is pinned yet."""


def _portable(error: Exception) -> Exception:
    """An error that another process can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return InfrastructureError(f"{type(error).__name__}: {error}")
    return error


def serve(connection: Connection) -> None:
    """Answer with (True, value) or (False, error) until the other side closes the connection."""
    try:
        info, settings, tunables = connection.recv()
        platforms.use([info.runtime] if info.runtime else [])
        device = backend.get(info.backend).open(info)
        worker = DeviceWorker(device, loader_of(device), settings, tunables)
    except Exception as error:
        connection.send((False, _portable(error)))
        return
    connection.send((True, worker.plan))
    source: SharedPoints | None = None  # of the open node
    unpin = _nothing
    while True:
        try:
            method, args = connection.recv()
        except (EOFError, OSError):
            return
        try:
            value: Any = None
            if method == "open_node":
                if source is None or source.memory.name != args[0][1]:
                    unpin()
                    source = SharedPoints(*args[0])
                    unpin = device.pin(source.array)
                worker.open_node(source.array, *args[1:])
            elif method == "split":
                rows = SharedPoints(*args[1])
                value = worker.split(args[0], rows.array, args[2])
                rows.free()
            else:
                value = getattr(worker, method)(*args)
            connection.send((True, value))
        except Exception as error:
            connection.send((False, _portable(error)))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
