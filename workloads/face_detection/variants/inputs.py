"""Device copies of frames and cascade: made once per group, shared by the variants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfport.backend import Buffer
from perfport.workload import Setup

from ..cascade import NODE_WORDS, Cascade
from ..problems import Windows
from ..pyramid import coefficients

STUMP_WORDS = 20  # words of a node that stumps with precomputed offsets need
PACKED_WORDS = 8
BANKS = 32  # of local memory


def frames(setup: Setup) -> Buffer:
    """The frames, bytes."""
    problem: Windows = setup.problem
    return setup.input("frames", lambda: setup.device.upload(problem.scene.pixels))


def nodes(setup: Setup, offsets: bool, pitch: int, tilted_plane: int) -> tuple[Buffer, int]:
    """The cascade's nodes, their corners as offsets (for this pitch) or as coordinates, and the words of one."""
    cascade = setup.problem.cascade
    words = STUMP_WORDS if offsets and cascade.stumps else NODE_WORDS

    def make() -> Buffer:
        corners = cascade.offsets(pitch, tilted_plane) if offsets else cascade.rectangles
        return setup.device.upload(np.ascontiguousarray(cascade.table(corners)[:, :words]))

    return setup.input(f"nodes {offsets} {pitch}", make), words


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
        even = -(-words // 2)
        half = -(-(even - BANKS // 2) // BANKS) * BANKS + BANKS // 2  # both halves of a copy hit different banks
        words = max(half + words // 2, side + cascade.width)
    return TileImage(side, words | 1, lines, half, 1 + tilted)  # odd: narrow tiles use all banks


def tile_nodes(setup: Setup, image: TileImage) -> tuple[Buffer, int, bool]:
    """The cascade's nodes for a tile's image, the words of one, and whether they are packed.

    Where the image has halves a second table follows, for levels whose windows are 2 pixels apart.
    """
    cascade, columns = setup.problem.cascade, (0, image.half) if image.half else (0,)
    layouts = [cascade.offsets(image.row, image.row * image.lines, half) for half in columns]
    packed = [table for table in map(cascade.packed, layouts) if table is not None]
    fits = len(packed) == len(layouts)
    words = PACKED_WORDS if fits else STUMP_WORDS if cascade.stumps else NODE_WORDS

    def make() -> Buffer:
        tables = packed if fits else [cascade.table(corners)[:, :words] for corners in layouts]
        return setup.device.upload(np.concatenate(tables))

    return setup.input(f"tile nodes {image}", make), words, fits


def rest_of_cascade(setup: Setup, packed: bool) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Roots of trees, leaves, first tree of each stage, thresholds of stages; gains for leaves where packed."""
    cascade = setup.problem.cascade
    if packed:
        gains, thresholds = cascade.gains()

    def part(name: str, array: np.ndarray) -> Buffer:
        return setup.input(name, lambda: setup.device.upload(array))

    return (
        part("roots", cascade.tree_first),
        part("gains", gains) if packed else part("leaves", cascade.leaves),
        part("stage_first", cascade.stage_first),
        part("thresholds of gains", thresholds) if packed else part("stage_threshold", cascade.stage_threshold),
    )


def division(divisor: int) -> tuple[int, int]:
    """Return multiplier and shift with n // divisor == (n * multiplier >> 32) >> shift for n < 2^31, divisor > 1."""
    if divisor == 1:
        return 0, 0  # kernels do not divide by 1
    bits = (divisor - 1).bit_length()
    return (1 << (31 + bits)) // divisor + 1, bits - 1


def level_words(setup: Setup, strip: int, tile: int) -> np.ndarray:
    """The table of levels that kernels/pyramid.cl describes, uint32, shape (levels, 15)."""
    pyramid = setup.problem.pyramid
    words = np.zeros((len(pyramid.levels), 15), np.uint32)
    piece = table = tiles = 0
    for row, level in zip(words, pyramid.levels, strict=True):
        row[:] = (
            level.y * pyramid.pitch + level.x, level.width, level.height,
            level.columns, level.step, level.first, *division(level.columns),
            level.row, piece, table, table + level.width, level.rows,
            level.scale.view(np.uint32), tiles,
        )  # fmt: skip
        piece += (level.width + 1) * -(-level.height // strip)
        table += level.width + level.height
        tiles += level.tiles(tile)
    return words


def levels(setup: Setup, strip: int, tile: int = 0) -> Buffer:
    """The table of levels."""
    return setup.input(f"levels {strip} {tile}", lambda: setup.device.upload(level_words(setup, strip, tile)))


def interpolation(setup: Setup) -> Buffer:
    """Offset (20 bits) and weight of the second pixel (above) for each column and row of each level."""
    problem: Windows = setup.problem

    def make() -> Buffer:
        parts = []
        for level in problem.pyramid.levels:
            for source, target in ((problem.width, level.width), (problem.height, level.height)):
                offset, weight = coefficients(source, target)
                parts.append(offset.astype(np.uint32) | weight.astype(np.uint32) << np.uint32(20))
        return setup.device.upload(np.concatenate(parts))

    return setup.input("interpolation", make)
