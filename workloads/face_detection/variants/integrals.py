"""Pyramid and integral images on the device, by kernels/pyramid.cl."""

from __future__ import annotations

import numpy as np

from perfport.model.work import Traffic
from perfport.workload import Setup

from ..problems import Windows
from . import inputs

#: Tunables of a variant that this part reads.
STRIP, SCAN_GROUP, COLUMN_GROUP = "strip", "scan_group", "column_group"
RUN = 16  # pixels of a row that a work-item sums by itself, as in kernels/pyramid.cl


class Integrals:
    """The atlas of integral images, and the launches that fill it.

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
        self.table = inputs.level_words(setup, self.strip, 0)
        self.levels = inputs.levels(setup, self.strip)
        last = self.pyramid.levels[-1]
        self.pieces = int(self.table[-1, 9]) + (last.width + 1) * -(-last.height // self.strip)
        self.sums = setup.scratch(4 * self.frame_words * self.problem.frames)
        totals = setup.scratch(8 * self.pieces * self.problem.frames)
        macros = {"STRIP": self.strip, "SCAN_GROUP": self.scan_group, "TILTED_GROUP": self.tilted_group}
        self.rows, self.sum_pieces, self.columns = (
            setup.kernel("pyramid.cl", name, **macros) for name in ("rows", "pieces", "columns")
        )
        self.tilted = setup.kernel("pyramid.cl", "tilted", **macros) if self.problem.tilted else None
        count = np.uint32(len(self.pyramid.levels))
        shape = (np.uint32(self.pyramid.pitch), np.uint32(self.plane), np.uint64(self.frame_words))
        images, coefficients = inputs.frames(setup), inputs.interpolation(setup)
        self._row_arguments = (
            images, np.uint32(self.problem.width), np.uint32(self.problem.height), self.levels, count, coefficients,
        )  # fmt: skip
        self._shape, self._count, self._totals = shape, count, totals

    def launch(self) -> None:
        """Enqueue the launches: all levels together, or level by level."""
        frames = self.problem.frames
        levels = range(len(self.pyramid.levels))
        for chosen in [[level] for level in levels] if self.per_level else [list(levels)]:
            first, last = self.pyramid.levels[chosen[0]], self.pyramid.levels[chosen[-1]]
            row = np.uint32(first.row)
            rows = last.row + last.height - first.row
            self.device.launch(
                self.rows, (rows, frames), (self.scan_group, 1), *self._row_arguments, row, *self._shape, self.sums
            )  # fmt: skip
            begin = int(self.table[chosen[0], 9])
            end = int(self.table[chosen[-1] + 1, 9]) if chosen[-1] + 1 < len(self.table) else self.pieces
            groups = (-(-(end - begin) // self.group), frames)
            pieces = (self.levels, self._count, np.uint32(begin), np.uint32(end), *self._shape)
            for kernel in (self.sum_pieces, self.columns):
                self.device.launch(
                    kernel, groups, (self.group, 1), self.sums, *pieces, self._totals, np.uint32(self.pieces)
                )  # fmt: skip
            if self.tilted:
                self.device.launch(
                    self.tilted, (len(chosen), frames), (self.tilted_group, 1),
                    self.sums, self.levels, np.uint32(chosen[0]), *self._shape,
                )  # fmt: skip

    def traffic(self, cache_bytes: int) -> Traffic:
        """Modelled. The atlas is written to DRAM; it is read from there where it does not fit into the last cache."""
        frames, levels = self.problem.frames, self.pyramid.levels
        pixels = frames * self.pyramid.pixels
        rows, lines = frames * self.pyramid.rows, frames * sum(level.height * (level.width + 1) for level in levels)
        edges = frames * sum(level.width + 1 for level in levels)
        scan = self.scan_group.bit_length() - 1
        items = rows * self.scan_group
        # A row is summed in segments of RUN pixels to a work-item; in local memory but for a group of one.
        segment = RUN * self.scan_group
        segments = frames * sum(level.height * -(-level.width // segment) for level in levels)
        scans = segments * self.scan_group
        first_runs = frames * sum(
            level.height * (level.width // segment * RUN + min(level.width % segment, RUN)) for level in levels
        )
        row_probes = probes([level.height for level in levels])
        piece_probes = probes([(level.width + 1) * -(-level.height // self.strip) for level in levels])
        above = sum(
            (level.width + 1) * n * (n - 1) // 2 for level in levels for n in [-(-level.height // self.strip)]
        )  # fmt: skip
        pieces = self.pieces
        read = (
            items * (4 * 6) + frames * 4 * self.scan_group * row_probes  # level and its words, line
            + pixels * (4 + 4)
            + 2 * frames * 4 * (piece_probes + pieces * 4)  # both kernels over pieces
            + 2 * 8 * lines + frames * 8 * above
        )  # fmt: skip
        write = 8 * rows + 8 * pixels + frames * 8 * pieces + 8 * edges + 8 * lines
        # Choices that depend on loaded sizes count as arithmetic: searches of the levels, ends of loops.
        ops = (
            17 * pixels + items * 8 + (4 * pixels + scans * 2 * scan if scan else 0)
            + 3 * frames * self.scan_group * row_probes
            + 2 * (2 * lines + 6 * frames * pieces + 3 * frames * piece_probes) + frames * 2 * above
        )  # fmt: skip
        if self.tilted:
            inner = lines + edges
            read += 24 * inner  # 6 or 7 words each, edges fewer
            write += 4 * inner
            ops += 6 * inner
        atlas = 4.0 * frames * self.frame_words
        passes = 0 if atlas <= cache_bytes else 2
        return Traffic(
            integer_ops=float(ops), global_read=float(read), global_write=float(write),
            local_read=4.0 * (5 * pixels - 2 * first_runs + scans * (4 * scan + 2) - 2 * (scans - segments))
            if scan else 0.0,
            local_write=4.0 * (3 * pixels + scans * (2 * scan + 2)) if scan else 0.0,
            dram_read=float(self.problem.scene.pixels.nbytes) + passes * atlas, dram_write=atlas * (1 + passes // 2),
        )  # fmt: skip


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
