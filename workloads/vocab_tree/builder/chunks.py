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
        C + (passes - 1)(C - 1), as many as there are places make use of all of the memory.
    """
    return chunks + (passes - 1) * (chunks - min(kept, chunks)) if chunks and passes else 0


@dataclass(frozen=True)
class Visit:
    """A chunk's turn in a pass: in which place it lies, and whether it must be loaded first."""

    chunk: int
    place: int
    missing: bool


class Traversal:
    """The visits of all passes, in their order, and the places for chunks.

    Parameters
    ----------
    chunks : int
    kept : int
        Chunks that a pass leaves to the next, 0 to ``places``.
    places : int
    """

    def __init__(self, chunks: int, kept: int, places: int) -> None:
        self.chunks, self.kept, self.passes = chunks, kept, 0
        self._held: list[int | None] = [None] * places
        self._order = list(range(places))  # places, the one used last at the end
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
        place = self._order[0] if missing else self._held.index(chunk)
        if missing and place in busy:
            return None
        self._coming.popleft()
        self._held[place] = chunk
        self._order.remove(place)
        self._order.append(place)
        return Visit(chunk, place, missing)

    def _begin_pass(self) -> None:
        for place in self._order[: len(self._order) - self.kept]:
            self._held[place] = None
        self._coming.extend(walk(self.chunks, self.passes, self.kept))
        self.passes += 1
