"""Chunks of a node that does not fit the device: in which order passes walk them, and how many loads that takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass


def walk(chunks: int, number: int, kept: int) -> Iterator[int]:
    """Yield the chunks of pass ``number`` (from 0): alternately forward and backward, where any chunk is kept."""
    return iter(range(chunks) if number % 2 == 0 or not kept else range(chunks - 1, -1, -1))


def loads(chunks: int, passes: int, kept: int) -> int:
    """Return how many chunks are loaded in ``passes`` passes.

    Parameters
    ----------
    chunks : int
    passes : int
    kept : int
        Chunks that a pass leaves to the next: 0 loads everything anew, 1 is the source's reversed traversal,
        C + (passes - 1)(C - 1), and 2 makes use of both halves of the memory.
    """
    return chunks + (passes - 1) * (chunks - min(kept, chunks)) if chunks and passes else 0


@dataclass(frozen=True)
class Visit:
    """A chunk's turn in a pass: in which of the two places it lies, and whether it must be loaded first."""

    chunk: int
    place: int
    missing: bool


class Traversal:
    """The visits of all passes, in their order, and the two places for chunks.

    Parameters
    ----------
    chunks : int
    kept : int
        Chunks that a pass leaves to the next, 0 to 2.
    """

    def __init__(self, chunks: int, kept: int) -> None:
        self.chunks, self.kept, self.passes = chunks, kept, 0
        self._held: list[int | None] = [None, None]
        self._last = 1  # the place used last
        self._coming: deque[int] = deque()  # of the pass that has begun

    def advance(self, busy: Collection[int] = (), onward: bool = True) -> Visit | None:
        """Return the next visit and go on.

        ``None``, without going on, where its chunk would be loaded to a ``busy`` place, or where a new pass would begin
        and ``onward`` is not set.
        """
        if not self._coming:
            if not onward or not self.chunks:
                return None
            self._begin_pass()
        chunk = self._coming[0]
        missing = chunk not in self._held
        place = 1 - self._last if missing else self._held.index(chunk)
        if missing and place in busy:
            return None
        self._coming.popleft()
        self._held[place], self._last = chunk, place
        return Visit(chunk, place, missing)

    def _begin_pass(self) -> None:
        for place in (0, 1):
            if self.kept == 0 or (self.kept == 1 and place != self._last):
                self._held[place] = None
        self._coming.extend(walk(self.chunks, self.passes, self.kept))
        self.passes += 1
