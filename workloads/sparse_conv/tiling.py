"""Tilings of a convolution for PTX written from the weights: what a work-group computes, and its local memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd

from perfport.workload import ceil_div, round_up

from .operators import Operator, Tiles

WARP = 32
BANKS = 32


@dataclass(frozen=True)
class Tiling:
    """What a work-group and a work-item compute, and how the input is staged.

    Attributes
    ----------
    columns, rows : int
        Work-items of a group across and down.
    height : int
        Output rows of a work-item.
    filters : int
        Of a slice; the last slice may have fewer.
    block : int
        Channels that are staged at once; a divisor of the operator's.
    stages : int
        Blocks in local memory.
    resident : int
        Work-groups that a compute unit must have registers for.
    pinned : bool
        A compute unit keeps to one slice, so that it fetches that code alone: there are as many work-groups as are
        resident, each takes tiles of its unit's slice until there are no more. Otherwise a work-group computes one
        tile, and one slice after the other passes through all units.
    """

    operator: Operator
    columns: int
    rows: int
    height: int
    filters: int
    block: int
    stages: int
    resident: int
    pinned: bool = False

    @cached_property
    def _tiles(self) -> Tiles:
        return Tiles(self.operator, self.rows * self.height, self.columns)

    @property
    def items(self) -> int:
        """Work-items of a group: whole warps."""
        return round_up(self.columns * self.rows, WARP)

    @property
    def across(self) -> int:
        """Tiles in a row of the output."""
        return self._tiles.across

    @property
    def down(self) -> int:
        """Tiles in a column of the output."""
        return self._tiles.down

    @property
    def slices(self) -> int:
        """Slices of filters."""
        return ceil_div(self.operator.filters, self.filters)

    @property
    def window_rows(self) -> int:
        """Input rows of a tile."""
        return self._tiles.input_rows

    @cached_property
    def vector(self) -> int:
        """Words of one copy: 4, 2 or 1, as far as rows and tiles begin at multiples of it."""
        words = gcd(self.operator.width, 4)
        return words if self.across == 1 else gcd(words, self.columns * self.operator.stride)

    @property
    def lead(self) -> int:
        """Words in front of a tile's window that are copied so that copies are aligned."""
        return -self.operator.padding % self.vector

    @property
    def load(self) -> int:
        """Words of one read of local memory: neighbouring work-items are ``stride`` words apart."""
        return gcd(self.operator.stride, 4)

    @cached_property
    def copies(self) -> int:
        """Copies of one row."""
        return ceil_div(self._row_words, self.vector)

    @cached_property
    def pitch(self) -> int:
        """Words from row to row in local memory: with the fewest bank conflicts, then the least."""
        step = max(self.vector, self.load)
        words = round_up(max(self.copies * self.vector, round_up(self._row_words, self.load)), step)
        if self.columns >= WARP:
            return words  # a warp reads one row, or two that cannot be kept apart
        return min(range(words, words + BANKS, step), key=lambda pitch: (self._conflicts(pitch), pitch))

    @property
    def _row_words(self) -> int:
        """Words of one row up to the end of the last work-item's window, those in front of the first one's included."""
        return self.lead + self._tiles.input_columns

    @property
    def conflicts(self) -> int:
        """Cycles that a warp's read of one word takes for each work-item, 1 without conflicts."""
        return self._conflicts(self.pitch)

    def _conflicts(self, pitch: int) -> int:
        step = self.height * self.operator.stride * pitch
        return bank_conflicts(self.columns, self.rows, step, self.operator.stride, self.load)

    @property
    def plane(self) -> int:
        """Words of one channel of a tile in local memory."""
        return self.pitch * self.window_rows

    @property
    def staged_bytes(self) -> int:
        """Local memory of the blocks."""
        return 4 * self.stages * self.block * self.plane

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group: its blocks, and which tile is next."""
        return self.staged_bytes + 4 * self.pinned

    @property
    def block_copies(self) -> int:
        """Copies of one block."""
        return self.block * self.window_rows * self.copies

    @property
    def turns(self) -> int:
        """Copies of one work-item for one block."""
        return ceil_div(self.block_copies, self.items)

    def tiles(self, batch: int) -> int:
        """Tiles of each slice."""
        return self._tiles.count * batch

    def groups(self, batch: int, compute_units: int) -> int:
        """Work-groups of a launch."""
        tiles = self.tiles(batch) * self.slices
        return min(tiles, compute_units * self.resident) if self.pinned else tiles

    @property
    def counters(self) -> int:
        """Words that `pinned` work-groups share: tiles taken of each slice, and work-groups that are done."""
        return self.slices + 1


@lru_cache(maxsize=1 << 16)
def bank_conflicts(columns: int, rows: int, step: int, stride: int, load: int) -> int:
    """Cycles of a warp's read for each word of a work-item: rows ``step`` words apart, columns ``stride`` words.

    Reads of several words are served for a half or a quarter of a warp at a time.
    """
    worst = 1
    for first in range(0, WARP, WARP // load):
        banks: dict[int, set[int]] = {}
        for item in range(first, first + WARP // load):
            word = min(item // columns, rows - 1) * step + item % columns * stride
            banks.setdefault(word // load % (BANKS // load), set()).add(word)
        worst = max(worst, *(len(words) for words in banks.values()))
    return worst
