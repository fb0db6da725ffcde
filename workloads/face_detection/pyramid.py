"""Image pyramid: its levels, their windows, and the arithmetic that makes a level from an image.

Sizes, scales and arithmetic are those of OpenCV's CPU detector, so that pixels and windows are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from perfport.workload import ceil_div, round_up

StepRule = Literal["opencv", "full"]


@dataclass(frozen=True)
class Level:
    """One level: a reduced image and the windows on it.

    Attributes
    ----------
    scale : float32
        Pixels of the image per pixel of the level.
    width, height : int
        Of the reduced image, pixels.
    step : int
        Distance of neighbouring windows, pixels.
    columns, rows : int
        Windows side by side, and above each other.
    first : int
        Number of its first window among those of the frame.
    row : int
        First row of its integral image in the list of all rows.
    x, y : int
        Where its integral image, (width + 1) x (height + 1), lies in the atlas.
    group : int
        Levels that the atlas holds at the same time; groups take it in turn.
    """

    scale: np.float32
    width: int
    height: int
    step: int
    columns: int
    rows: int
    first: int
    row: int
    x: int
    y: int
    group: int

    @property
    def windows(self) -> int:
        """Windows on this level."""
        return self.columns * self.rows

    def tiles(self, side: int) -> int:
        """Tiles of ``side`` x ``side`` windows that cover this level; 0 where ``side`` is."""
        return ceil_div(self.columns, side) * ceil_div(self.rows, side) if side else 0

    @property
    def pixels(self) -> int:
        """Pixels of the reduced image."""
        return self.width * self.height


@dataclass(frozen=True)
class Pyramid:
    """All levels for one image size and window, and the atlas that holds their integral images.

    Attributes
    ----------
    width, height : int
        Of the image, pixels.
    window : (int, int)
        Width and height of the detection window, pixels.
    levels : tuple of Level
    pitch : int
        Width of the atlas in words; levels are laid out side by side as long as they fit into a line.
    group_lines : tuple of int
        Lines of the atlas that each group of levels takes.
    """

    width: int
    height: int
    window: tuple[int, int]
    levels: tuple[Level, ...]
    pitch: int
    group_lines: tuple[int, ...]

    @property
    def lines(self) -> int:
        """Lines of the atlas."""
        return max(self.group_lines)

    @property
    def groups(self) -> list[range]:
        """The levels of each group, by their numbers."""
        numbers = [level.group for level in self.levels]
        cuts = [numbers.index(group) for group in range(len(self.group_lines))]
        return [range(*both) for both in pairwise([*cuts, len(numbers)])]

    @property
    def windows(self) -> int:
        """Windows of one frame."""
        return sum(level.windows for level in self.levels)

    @property
    def pixels(self) -> int:
        """Pixels of all levels of one frame."""
        return sum(level.pixels for level in self.levels)

    @property
    def rows(self) -> int:
        """Rows of all levels' images."""
        return sum(level.height for level in self.levels)

    def locate(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return level, x and y (pixels of the level) of windows by their numbers within a frame."""
        first = np.array([level.first for level in self.levels])
        number = np.searchsorted(first, windows, side="right") - 1
        columns = np.array([level.columns for level in self.levels])[number]
        step = np.array([level.step for level in self.levels])[number]
        inside = windows - first[number]
        return number, inside % columns * step, inside // columns * step

    def boxes(self, windows: np.ndarray) -> np.ndarray:
        """Return windows, by their numbers within a frame, as boxes (x, y, width, height) of the image, int64."""
        number, x, y = self.locate(windows)
        scale = np.array([level.scale for level in self.levels], np.float32)[number]
        sides = (x, y, np.full(len(x), self.window[0]), np.full(len(x), self.window[1]))
        return np.stack([np.rint(side.astype(np.float32) * scale).astype(np.int64) for side in sides], axis=1)


def atlas_pitch(width: int) -> int:
    """Return the width of the atlas of an image of this width."""
    return round_up(width + 1, 32)


def build(
    width: int, height: int, window: tuple[int, int], factor: float, rule: StepRule, *, most: int | None = None
) -> Pyramid:
    """Lay out the pyramid of an image.

    Parameters
    ----------
    width, height : int
        Of the image, pixels.
    window : (int, int)
        Detection window; the image is at least as large.
    factor : float
        From level to level, above 1.
    rule : str
        ``opencv``: windows 2 pixels apart while the scale is below 2, then 1; ``full``: always 1.
    most : int, optional
        Lines that the atlas may have, more than ``height``; levels beyond form further groups.
    """
    levels: list[Level] = []
    lines: list[int] = []  # of the groups that are full
    pitch = atlas_pitch(width)
    first = row = x = y = 0
    line = height + 1
    exact = 1.0
    while round(window[0] * exact) <= width and round(window[1] * exact) <= height:
        scale = np.float32(exact)
        exact *= factor
        if any(np.rint(np.float32(w) * scale) > side for w, side in zip(window, (width, height), strict=True)):
            break
        w, h = (int(np.rint(np.float32(side) / scale)) for side in (width, height))
        step = 2 if rule == "opencv" and scale < 2 else 1
        columns, rows = ceil_div(w - window[0] + 1, step), ceil_div(h - window[1] + 1, step)
        if x + w + 1 > pitch:
            x, y, line = 0, y + line, h + 1
            if most is not None and y + line > most:
                lines.append(y)
                y = 0
        levels.append(Level(scale, w, h, step, columns, rows, first, row, x, y, len(lines)))
        first, row, x = first + columns * rows, row + h, x + w + 1
    return Pyramid(width, height, window, tuple(levels), pitch, (*lines, y + line))


def coefficients(source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how one axis is reduced: first of two neighbouring pixels, and weight of the second in 1/256.

    Bit-exact bilinear interpolation of OpenCV (``INTER_LINEAR_EXACT``).

    Parameters
    ----------
    source, target : int
        Pixels along the axis.

    Returns
    -------
    offset, weight : int32, shape (target,)
    """
    at = (np.arange(target) + 0.5) * (1.0 / (target / source)) - 0.5
    offset = np.floor(at).astype(np.int32)
    weight = np.rint((at - offset) * 256).astype(np.int32)
    weight[(offset < 0) | (offset >= source - 1)] = 0
    return np.clip(offset, 0, source - 1), weight


def reduced(image: np.ndarray, level: Level) -> np.ndarray:
    """Return a level's image, uint8, shape (height, width)."""
    height, width = image.shape
    (at, weight), (line, share) = coefficients(width, level.width), coefficients(height, level.height)
    wide = image.astype(np.int32)
    across = wide[:, at] * (256 - weight) + wide[:, np.minimum(at + 1, width - 1)] * weight
    share = share[:, None]
    down = across[line] * (256 - share) + across[np.minimum(line + 1, height - 1)] * share
    return ((down + (1 << 15)) >> 16).astype(np.uint8)
