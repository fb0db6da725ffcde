"""Pyramid and integral images on the device, by kernels/pyramid.cl."""

from __future__ import annotations

import numpy as np

from perfport.workload import Setup, Traffic, ceil_div

from ..problems import Windows
from ..pyramid import Level
from . import inputs, layout

#: Tunables of a variant that this part reads.
STRIP, SCAN_GROUP, COLUMN_GROUP = "strip", "scan_group", "column_group"
RUN = 16  # pixels of a row that a work-item sums by itself, as in kernels/pyramid.cl


class Integrals:
    """The atlas of integral images, the levels of a group together or level by level.

    Attributes
    ----------
    sums : Buffer
        Words: per frame two planes, or three with tilted integral images, of the whole atlas.
    plane, frame_words : int
        Words of a plane and of a frame.
    """

    def __init__(self, setup: Setup, per_level: bool) -> None:
        self.device, self.per_level = setup.device, per_level
        self.problem: Windows = setup.problem
        self.pyramid = self.problem.pyramid
        self.strip, self.group = setup.tunables[STRIP], setup.tunables[COLUMN_GROUP]
        self.scan_group = setup.tunables[SCAN_GROUP]
        self.tilted_group = 1 if setup.device.info.kind == "cpu" else 256
        self.plane = self.pyramid.pitch * self.pyramid.lines
        self.frame_words = (3 if self.problem.tilted else 2) * self.plane
        self.levels = inputs.levels(setup, self.strip)
        self.pieces = sum(layout.pieces(level, self.strip) for level in self.pyramid.levels)
        # First piece of a column of each level, and the end of all.
        self._pieces = [*layout.level_table(self.pyramid, self.strip, 0)["first_piece"].tolist(), self.pieces]
        self.sums = setup.scratch(4 * self.frame_words * self.problem.frames)
        self._totals = setup.scratch(8 * self.pieces * self.problem.frames)
        macros = {"STRIP": self.strip, "SCAN_GROUP": self.scan_group, "TILTED_GROUP": self.tilted_group}
        self.rows, self.sum_pieces, self.columns = (
            setup.kernel("pyramid.cl", name, **macros) for name in ("rows", "pieces", "columns")
        )
        self.tilted = setup.kernel("pyramid.cl", "tilted", **macros) if self.problem.tilted else None
        self._count = np.uint32(len(self.pyramid.levels))
        self._shape = (np.uint32(self.pyramid.pitch), np.uint32(self.plane), np.uint64(self.frame_words))
        images, coefficients = inputs.frames(setup), inputs.interpolation(setup)
        size = (np.uint32(self.problem.width), np.uint32(self.problem.height))
        self._row_arguments = (images, *size, self.levels, self._count, coefficients)

    def launch(self, group: range) -> None:
        """Enqueue the launches for a group of levels."""
        for first, last in [(level, level) for level in group] if self.per_level else [(group[0], group[-1])]:
            self._launch(first, last)

    def _launch(self, first: int, last: int) -> None:
        """Enqueue the launches for levels ``first`` to ``last``."""
        frames, levels = self.problem.frames, self.pyramid.levels
        row = levels[first].row
        rows = levels[last].row + levels[last].height - row
        self.device.launch(
            self.rows, (rows, frames), (self.scan_group, 1), *self._row_arguments, np.uint32(row), *self._shape,
            self.sums,
        )  # fmt: skip
        begin, end = self._pieces[first], self._pieces[last + 1]
        groups = (ceil_div(end - begin, self.group), frames)
        pieces = (self.levels, self._count, np.uint32(begin), np.uint32(end), *self._shape)
        for kernel in (self.sum_pieces, self.columns):
            self.device.launch(
                kernel, groups, (self.group, 1), self.sums, *pieces, self._totals, np.uint32(self.pieces)
            )  # fmt: skip
        if self.tilted:
            self.device.launch(
                self.tilted, (last - first + 1, frames), (self.tilted_group, 1),
                self.sums, self.levels, np.uint32(first), *self._shape,
            )  # fmt: skip

    @property
    def spilled_bytes(self) -> float:
        """Bytes of all groups' integral images if the last cache does not hold the atlas, else 0."""
        held = 4.0 * self.problem.frames * self.frame_words
        return self._written if held > (self.device.info.last_level_cache_bytes or 0) else 0.0

    @property
    def _written(self) -> float:
        """Bytes of all groups' integral images."""
        return 4.0 * self.problem.frames * self.frame_words * sum(self.pyramid.group_lines) / self.pyramid.lines

    def traffic(self) -> Traffic:
        """Modelled. The atlas is written to DRAM; it is read from there where it does not fit into the last cache."""
        atlas, spilled = self._written, self.spilled_bytes
        dram = Traffic(dram_read=float(self.problem.scene.pixels.nbytes) + 2 * spilled, dram_write=atlas + spilled)
        return Traffic.total(dram, self._row_traffic(), self._column_traffic(), self._tilted_traffic())

    # Choices that depend on loaded sizes count as arithmetic: searches of the levels, ends of loops.

    def _row_traffic(self) -> Traffic:
        """Pixels, and their sums along rows."""
        frames, levels = self.problem.frames, self.pyramid.levels
        pixels, rows = frames * self.pyramid.pixels, frames * self.pyramid.rows
        probed = frames * self.scan_group * probes([level.height for level in levels])
        items = rows * self.scan_group
        read = items * (4 * 6) + 4 * probed + pixels * (4 + 4)  # level and its words, line
        ops, write = 17 * pixels + items * 8 + 3 * probed, 8 * rows + 8 * pixels
        if self.scan_group == 1:
            return Traffic(integer_ops=float(ops), global_read=float(read), global_write=float(write))
        # A row is summed in segments of RUN pixels to a work-item, in local memory.
        scan, segment = self.scan_group.bit_length() - 1, RUN * self.scan_group
        segments = frames * sum(level.height * ceil_div(level.width, segment) for level in levels)
        scans = segments * self.scan_group
        first_runs = frames * sum(
            level.height * (level.width // segment * RUN + min(level.width % segment, RUN)) for level in levels
        )
        return Traffic(
            integer_ops=float(ops + 4 * pixels + scans * 2 * scan), global_read=float(read), global_write=float(write),
            local_read=4.0 * (5 * pixels - 2 * first_runs + scans * (4 * scan + 2) - 2 * (scans - segments)),
            local_write=4.0 * (3 * pixels + scans * (2 * scan + 2)),
        )  # fmt: skip

    @property
    def _lines_and_edges(self) -> tuple[int, int]:
        """Words of all integral images of a plane: without their first rows, and those."""
        levels, frames = self.pyramid.levels, self.problem.frames
        edges = frames * sum(level.width + 1 for level in levels)
        return frames * sum(level.height * (level.width + 1) for level in levels), edges

    def _column_traffic(self) -> Traffic:
        """Sums of pieces of columns, and sums along columns; both kernels go over pieces."""
        frames, levels = self.problem.frames, self.pyramid.levels
        lines, edges = self._lines_and_edges
        probed, pieces = frames * probes([layout.pieces(level, self.strip) for level in levels]), frames * self.pieces
        above = frames * sum(_above(level, self.strip) for level in levels)
        return Traffic(
            integer_ops=float(2 * (2 * lines + 6 * pieces + 3 * probed) + 2 * above),
            global_read=float(2 * 4 * (probed + pieces * 4) + 2 * 8 * lines + 8 * above),
            global_write=float(8 * pieces + 8 * edges + 8 * lines),
        )

    def _tilted_traffic(self) -> Traffic:
        """Tilted sums, of 6 or 7 words each, edges fewer."""
        words = sum(self._lines_and_edges) if self.tilted else 0
        return Traffic(integer_ops=6.0 * words, global_read=24.0 * words, global_write=4.0 * words)


def _above(level: Level, strip: int) -> int:
    """Pieces of columns that lie above others, counted for each of those."""
    pieces = ceil_div(level.height, strip)
    return (level.width + 1) * pieces * (pieces - 1) // 2


def probes(counts: list[int]) -> int:
    """Words that a binary search of the levels reads, by how many numbers each level has."""
    total = 0
    for level, count in enumerate(counts):
        low, high, steps = 0, len(counts), 0
        while high - low > 1:
            middle = (low + high) >> 1
            low, high = (middle, high) if middle <= level else (low, middle)
            steps += 1
        total += steps * count
    return total
