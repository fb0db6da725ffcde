"""The walk over a pruned layer's weights that all generated code follows; what it meets an emitter writes.

Filters come in slices; of a slice, channels in blocks; of a channel, the words of a work-item's window in the order of
a scan. A word that no weight of the slice needs is left out; of every other one the code has one load, and one
multiply-add for each filter and output row that uses it. In which language, from which memory and for how many
columns at once is the emitter's: C of the kernel dialect with scalars or vectors (`..source`), PTX (`..tiled`), C
within a larger kernel (`..fused`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np


class Product(NamedTuple):
    """A multiply-add: into the sum of an output row of a filter (of the slice), by the weight at a tap (c, r, s)."""

    filter: int
    row: int
    tap: tuple[int, int, int]
    weight: float


class Word(NamedTuple):
    """A word of the window of a channel, and the multiply-adds that use it."""

    channel: int
    row: int
    column: int
    products: list[Product]


class Slice(NamedTuple):
    """Consecutive filters from the first one on, weights (K, C, R, S)."""

    first: int
    weights: np.ndarray


class Scan(Enum):
    """The order of a channel's words, and how many of them are loaded in one step."""

    ROWS = "a row of the window in each step"
    ALONG = "a word in each step, along the rows"
    DOWN = "a word in each step, down the columns"


class Emitter(ABC):
    """Writes the code of one slice after the other, in parts that its user joins."""

    @abstractmethod
    def start(self, filters: int) -> Iterable[str]:
        """Begin a slice of so many filters: sums."""

    def block(self, number: int) -> Iterable[str]:
        """Begin a block of channels: nothing."""
        return ()

    @abstractmethod
    def load(self, words: Sequence[Word]) -> Iterable[str]:
        """Load the words of a step; their products come before the next step's, those of `Walk.ahead` after it."""

    @abstractmethod
    def multiply_add(self, word: Word, product: Product) -> str:
        """One multiply-add."""

    @abstractmethod
    def store(self) -> Iterable[str]:
        """End a slice: the sums are outputs."""


@dataclass(frozen=True)
class Walk:
    """The order in which generated code meets weights.

    Attributes
    ----------
    filters : int
        Of a slice; the last one may have fewer.
    height : int
        Output rows of a work-item, one below the other: they share the words of a window.
    stride : int
        Of the operator.
    scan : Scan
    block : int
        Channels of a block, for which an emitter can stage inputs or let work-items meet; 0: all of them.
    ahead : int
        Steps of a block whose words are loaded before the multiply-adds of the present one.
    """

    filters: int
    height: int
    stride: int
    scan: Scan
    block: int = 0
    ahead: int = 0

    def slices(self, weights: np.ndarray) -> list[Slice]:
        """Cut a layer's weights (K, C, R, S) into slices."""
        return [Slice(first, weights[first : first + self.filters]) for first in range(0, len(weights), self.filters)]

    def programs(self, weights: np.ndarray, limit: int) -> list[list[Slice]]:
        """Group the slices so that each group has ``limit`` multiply-adds at most; one slice alone may have more."""
        groups: list[list[Slice]] = []
        size = limit + 1
        for part in self.slices(weights):
            count = int(np.count_nonzero(part.weights)) * self.height
            size += count
            if size > limit:
                groups.append([])
                size = count
            groups[-1].append(part)
        return groups

    def code(self, weights: np.ndarray, emitter: Emitter) -> Iterator[str]:
        """Walk over the weights (K, C, R, S) of a slice."""
        filters, channels = weights.shape[:2]
        yield from emitter.start(filters)
        for number, first in enumerate(range(0, channels, self.block or channels)):
            yield from emitter.block(number)
            loaded: deque[list[Word]] = deque()
            for c in range(first, min(first + (self.block or channels), channels)):
                for words in self._steps(weights[:, c], c):
                    yield from emitter.load(words)
                    loaded.append(words)
                    if len(loaded) > self.ahead:
                        yield from _products(loaded.popleft(), emitter)
            for words in loaded:
                yield from _products(words, emitter)
        yield from emitter.store()

    def _steps(self, weights: np.ndarray, channel: int) -> Iterator[list[Word]]:
        """Yield the words of each step that some weight (K, R, S) of the channel needs."""
        _, height, width = weights.shape
        taps = {
            (r, s): [(k, float(weights[k, r, s])) for k in np.flatnonzero(weights[:, r, s]).tolist()]
            for r in range(height)
            for s in range(width)
        }
        rows, columns = range((self.height - 1) * self.stride + height), range(width)
        places: Iterable[list[tuple[int, int]]]
        if self.scan is Scan.ROWS:
            places = ([(y, s) for s in columns] for y in rows)
        elif self.scan is Scan.ALONG:
            places = ([(y, s)] for y in rows for s in columns)
        else:
            places = ([(y, s)] for s in columns for y in rows)
        # Down a column the rows of the kernel are met in their order, else those of the outputs.
        outputs = range(self.height)[:: -1 if self.scan is Scan.DOWN else 1]
        for step in places:
            words = []
            for y, s in step:
                products = [
                    Product(k, b, (channel, r, s), weight)
                    for b in outputs
                    if 0 <= (r := y - b * self.stride) < height
                    for k, weight in taps[r, s]
                ]
                if products:
                    words.append(Word(channel, y, s, products))
            if words:
                yield words


def _products(words: Iterable[Word], emitter: Emitter) -> Iterator[str]:
    for word in words:
        for product in word.products:
            yield emitter.multiply_add(word, product)
