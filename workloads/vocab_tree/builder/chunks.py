"""Chunks of a node that does not fit the device: in which order passes walk them, and how many loads that takes."""

from __future__ import annotations

from collections.abc import Iterator


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


class Slots:
    """Two places for chunks, and which chunk each holds.

    Attributes
    ----------
    loaded : int
        Chunks that had to be loaded so far.
    """

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.held: list[int | None] = [None, None]
        self.last = 1  # the place used last
        self.loaded = 0

    def place(self, chunk: int) -> tuple[int, bool]:
        """Return where a chunk lies, or is to be put, and whether it must be loaded."""
        if chunk in self.held:
            self.last = self.held.index(chunk)
            return self.last, False
        self.last = 1 - self.last
        self.held[self.last] = chunk
        self.loaded += 1
        return self.last, True

    def end_pass(self) -> None:
        """Forget what is not kept."""
        for place in (0, 1):
            if self.kept == 0 or (self.kept == 1 and place != self.last):
                self.held[place] = None
