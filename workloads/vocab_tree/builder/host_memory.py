"""Points in host memory: the caller's, shared ones that other processes open by name, pieces of a block for jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Protocol

import numpy as np

#: What another process opens points by: name of the memory, its bytes, first byte, shape.
Token = tuple[str, int, int, tuple[int, ...]]
ALIGNMENT = 64  # bytes; of pieces


class Points(Protocol):
    """Points that workers reach: in this process by ``array``, in others by ``token``."""

    @property
    def array(self) -> np.ndarray:
        """uint8."""
        ...

    @property
    def token(self) -> Token | None:
        """What another process opens it by, if it can."""
        ...

    def part(self, first: int, shape: Sequence[int]) -> Points:
        """The bytes from ``first`` on, as an array of this shape."""
        ...

    def free(self) -> None:
        """Give the memory back."""
        ...


class PrivatePoints:
    """Points in this process's memory, uint8."""

    token = None

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def part(self, first: int, shape: Sequence[int]) -> PrivatePoints:
        """As of `Points`."""
        return PrivatePoints(_part(self.array, first, shape))

    def free(self) -> None:
        """Nothing to give back by hand."""


class SharedPoints:
    """Points in memory that processes share, uint8.

    Parameters
    ----------
    shape : sequence of int
    token : Token, optional
        Opens the memory of another process in place of making some.
    """

    def __init__(self, shape: Sequence[int], token: Token | None = None) -> None:
        self.owner = token is None
        name, size, first = token[:3] if token else (None, max(1, int(np.prod(shape))), 0)
        self.memory = SharedMemory(name, create=self.owner, size=size)
        if not self.owner:  # or this process would remove it at its end
            resource_tracker.unregister(self.memory._name, "shared_memory")  # type: ignore[attr-defined]
        self._whole = np.ndarray((size,), np.uint8, self.memory.buf)
        self.token: Token = (self.memory.name, size, first, tuple(shape))
        self.array = _part(self._whole, first, shape)

    def part(self, first: int, shape: Sequence[int]) -> Points:
        """As of `Points`; it lives no longer than these points."""
        return _SharedPart(self, first, shape)

    def free(self) -> None:
        """Close the memory; the owner also removes it."""
        self.array = self._whole = np.empty(0, np.uint8)
        self.memory.close()
        if self.owner:
            self.memory.unlink()


class _SharedPart:
    def __init__(self, whole: SharedPoints, first: int, shape: Sequence[int]) -> None:
        name, size, start, _ = whole.token
        self.token: Token = (name, size, start + first, tuple(shape))
        self.array = _part(whole.array, first, shape)
        self.part = lambda first, shape: _SharedPart(whole, first, shape)

    def free(self) -> None:
        """The whole is freed."""


def _part(array: np.ndarray, first: int, shape: Sequence[int]) -> np.ndarray:
    return array.reshape(-1)[first : first + int(np.prod(shape))].reshape(shape)


class Staging:
    """A block of host memory for points on their way to devices, handed out in pieces.

    It is allocated at the first use, once, so that drivers lock its pages once. A piece that is larger than the block
    waits until it is alone; then the block grows.

    Parameters
    ----------
    limit : int
        Bytes.
    share : callable
        ``share(nbytes)`` returns `Points` that every worker reaches, and takes back those that it returned before.

    Attributes
    ----------
    most : int
        Most bytes that were handed out at a time.
    """

    def __init__(self, limit: int, share: Callable[[int], Points]) -> None:
        self.limit, self.share, self.most = limit, share, 0
        self._block: Points | None = None
        self._size = limit
        self._held: dict[int, int] = {}  # bytes by the first one
        self._changed = threading.Condition()

    def take(self, shape: Sequence[int]) -> tuple[Points, Callable[[], None]]:
        """Wait until there is room for an array of bytes; return it, and what gives it back."""
        nbytes = int(np.prod(shape))
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._room(nbytes) is not None)
            if self._block is None or nbytes > self._size:
                self._size = max(self._size, nbytes)
                self._block = self.share(self._size)
            first = self._room(nbytes)
            assert first is not None
            self._held[first] = nbytes
            self.most = max(self.most, sum(self._held.values()))
            return self._block.part(first, shape), lambda: self._give(first)

    def _room(self, nbytes: int) -> int | None:
        """The lowest place with room for so many bytes."""
        first = 0
        for start, length in sorted(self._held.items()):
            if start - first >= nbytes:
                return first
            first = -(-(start + length) // ALIGNMENT) * ALIGNMENT
        return first if first + nbytes <= self._size else None

    def _give(self, first: int) -> None:
        with self._changed:
            del self._held[first]
            self._changed.notify_all()
