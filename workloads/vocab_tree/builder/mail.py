"""Messages between a build and its workers' processes; arrays travel through shared memory, not the pipe."""

from __future__ import annotations

import pickle
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from perfport.workload import round_up

from .host_memory import ALIGNMENT, SharedPoints, Token, grown

LARGE = 1 << 14  # bytes; a smaller array goes through the pipe


class _End:
    """One end of a connection, and the block that its arrays lie in."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._block: SharedPoints | None = None

    def close(self) -> None:
        """Give the block back."""
        if self._block is not None:
            self._block.free()
            self._block = None


class Sender(_End):
    """Sends messages. A large array lies in a block that the next message overwrites: who receives copies it at once.

    A message may be sent only after the one before was received.
    """

    def send(self, value: Any) -> None:
        """Send a value that can be pickled."""
        buffers: list[memoryview] = []

        def apart(buffer: pickle.PickleBuffer) -> bool:
            """Take a large array out of the message; true leaves it in."""
            own = buffer.raw()
            if own.nbytes < LARGE:
                return True
            buffers.append(own)
            return False

        data = pickle.dumps(value, protocol=5, buffer_callback=apart)
        places, size = [], 0
        for buffer in buffers:
            places.append((size, buffer.nbytes))
            size += round_up(buffer.nbytes, ALIGNMENT)
        token = None
        if buffers:
            self._block = grown(self._block, size)
            for (first, nbytes), buffer in zip(places, buffers, strict=True):
                self._block.array[first : first + nbytes] = buffer
            token = self._block.token
        self.connection.send((data, token, places))


class Receiver(_End):
    """The other side of a `Sender`."""

    def receive(self) -> Any:
        """Wait for the next value. Raises what `Connection.recv` does."""
        message: tuple[bytes, Token | None, list[tuple[int, int]]] = self.connection.recv()
        data, token, places = message
        buffers: list[np.ndarray] = []
        if token:
            if self._block is None or self._block.token != token:
                self.close()
                name, size, *_ = token
                self._block = SharedPoints((size,), name)
            buffers = [self._block.array[first : first + nbytes].copy() for first, nbytes in places]
        return pickle.loads(data, buffers=buffers)
