"""Points in host memory: the caller's, shared ones that other processes open by name, pieces of a block for jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Protocol

import numpy as np

from perfport.workload import round_up

#: What another process opens points by: name of the memory, its bytes, first byte, shape.
Token = tuple[str, int, int, tuple[int, ...]]
ALIGNMENT = 64  # bytes; of pieces


class Points(Protocol):
    """Points that workers reach: in this process by ``array``, uint8, in others by ``token``, if they can."""

    @property
    def array(self) -> np.ndarray: ...

    @property
    def token(self) -> Token | None: ...


@dataclass(frozen=True)
class Piece:
    """Points in a part of a block; they live no longer than the block."""

    array: np.ndarray
    token: Token | None


class Block(Points, Protocol):
    """Memory that pieces are cut from."""

    def part(self, first: int, shape: Sequence[int]) -> Piece:
        """The bytes from ``first`` on, as an array of this shape."""
        ...


class PrivatePoints:
    """Points in this process's memory, uint8."""

    token = None

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def part(self, first: int, shape: Sequence[int]) -> Piece:
        """As of `Block`."""
        return Piece(_part(self.array, first, shape), None)


class SharedPoints:
    """Points in memory that processes share, uint8.

    Parameters
    ----------
    shape : sequence of int
    name : str, optional
        Opens the memory of another process in place of making some.
    """

    def __init__(self, shape: Sequence[int], name: str | None = None) -> None:
        self.owner = name is None
        size = max(1, int(np.prod(shape)))
        self.memory = SharedMemory(name, create=self.owner, size=size)
        if not self.owner:  # or this process would remove it at its end
            resource_tracker.unregister(self.memory._name, "shared_memory")  # type: ignore[attr-defined]
        self.array: np.ndarray = np.ndarray(tuple(shape), np.uint8, self.memory.buf)
        self.token: Token = (self.memory.name, size, 0, tuple(shape))

    def part(self, first: int, shape: Sequence[int]) -> Piece:
        """As of `Block`."""
        name, size, *_ = self.token
        return Piece(_part(self.array, first, shape), (name, size, first, tuple(shape)))

    def free(self) -> None:
        """Close the memory; the owner also removes it."""
        self.array = np.empty(0, np.uint8)
        self.memory.close()
        if self.owner:
            self.memory.unlink()


def grown(block: SharedPoints | None, nbytes: int) -> SharedPoints:
    """Return a block of at least so many bytes: the one given, or a new one in its place."""
    if block is not None:
        if block.array.size >= nbytes:
            return block
        block.free()
    return SharedPoints((nbytes,))


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
        ``share(nbytes)`` returns a `Block` that every worker reaches, and takes back the one that it returned before.

    Attributes
    ----------
    most : int
        Most bytes that were handed out at a time.
    """

    def __init__(self, limit: int, share: Callable[[int], Block]) -> None:
        self.limit, self.share, self.most = limit, share, 0
        self._block: Block | None = None
        self._size = limit
        self._held: dict[int, int] = {}  # bytes by the first one
        self._changed = threading.Condition()

    def take(self, shape: Sequence[int]) -> tuple[Piece, Callable[[], None]]:
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
            first = round_up(start + length, ALIGNMENT)
        return first if first + nbytes <= self._size else None

    def _give(self, first: int) -> None:
        with self._changed:
            del self._held[first]
            self._changed.notify_all()
