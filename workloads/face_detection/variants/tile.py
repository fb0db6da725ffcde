"""The part of the integral images under a tile of windows, as it lies in local memory."""

from __future__ import annotations

from dataclasses import dataclass

from perfport.workload import ceil_div, round_up

from ..cascade import Cascade

BANKS = 32  # of local memory


@dataclass(frozen=True)
class TileImage:
    """Layout in local memory of the integral image under a tile of ``side`` x ``side`` windows.

    Attributes
    ----------
    row, lines : int
        Words from line to line, and lines.
    half : int
        Where windows are 2 pixels apart, even columns lie side by side and odd ones so many words behind them, so that
        neighbouring windows have neighbouring corners; 0 where no windows are.
    planes : int
        2 with a tilted image.
    """

    side: int
    row: int
    lines: int
    half: int
    planes: int

    @property
    def nbytes(self) -> int:
        """Local memory that it takes."""
        return 4 * self.row * self.lines * self.planes


def tile_image(side: int, step: int, cascade: Cascade, tilted: bool) -> TileImage:
    """Lay out a tile's image for windows up to ``step`` pixels apart."""
    reach, half = (side - 1) * step + 1, 0
    words, lines = reach + cascade.width, reach + cascade.height
    if step == 2:
        even = ceil_div(words, 2)
        half = round_up(even - BANKS // 2, BANKS) + BANKS // 2  # both halves of a copy hit different banks
        words = max(half + words // 2, side + cascade.width)
    return TileImage(side, words | 1, lines, half, 1 + tilted)  # odd: narrow tiles use all banks
