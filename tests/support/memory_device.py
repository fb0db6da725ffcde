"""A device that has memory, and compiles for CUDA without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfport.backend.offline import OfflineDevice


class Buffer:
    """Host memory, as a device's buffer."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.bytes, self.freed = nbytes, np.zeros(nbytes, np.uint8), 0

    def free(self) -> None:
        self.freed += 1


class Memory(OfflineDevice):
    """A device that has memory and nothing else."""

    def empty(self, nbytes: int) -> Any:
        return Buffer(nbytes)

    def upload(self, array: np.ndarray) -> Any:
        buffer = Buffer(array.nbytes)
        buffer.bytes[:] = array.reshape(-1).view(np.uint8)
        return buffer

    def fill(self, buffer: Any, byte: int) -> None:
        buffer.bytes[:] = byte

    def read(self, buffer: Any, dtype: Any, shape: Any) -> np.ndarray:
        return buffer.bytes.view(dtype).reshape(shape).copy()
