"""Pyramid and integral images by few work-items (kernels/integral_lines.cl)."""

from __future__ import annotations

import numpy as np

from perfport.workload import Setup, Traffic, ceil_div

from . import inputs
from .integrals import STRIP, Integrals

SPAN = 64  # columns of a work-item that adds what lies above strips


class LineIntegrals(Integrals):
    """The atlas of integral images, strip by strip; what the base class has for pieces of columns is not made."""

    def __init__(self, setup: Setup) -> None:
        self.device, self.problem, self.per_level = setup.device, setup.problem, False
        self.pyramid = self.problem.pyramid
        self.strip = setup.tunables[STRIP]
        self.plane = self.pyramid.pitch * self.pyramid.lines
        self.frame_words = (3 if self.problem.tilted else 2) * self.plane
        self.levels = inputs.levels(setup, self.strip)
        self.sums = setup.scratch(4 * self.frame_words * self.problem.frames)
        macros = {"STRIP": self.strip, "SCAN_GROUP": 1, "TILTED_GROUP": 1, "SPAN": SPAN}
        self.lines, self.add_above = (
            setup.kernel("integral_lines.cl", name, **macros) for name in ("lines", "add_above")
        )
        self.tilted = setup.kernel("integral_lines.cl", "tilted", **macros) if self.problem.tilted else None
        self._shape = (np.uint32(self.pyramid.pitch), np.uint32(self.plane), np.uint64(self.frame_words))
        images, self._coefficients = inputs.frames(setup), inputs.interpolation(setup)
        self._images = images, np.uint32(self.problem.width), np.uint32(self.problem.height)

    def _launch(self, first: int, last: int) -> None:
        """Enqueue the launches for levels ``first`` to ``last``."""
        frames, levels = self.problem.frames, self.pyramid.levels[first : last + 1]
        strips = max(ceil_div(level.height, self.strip) for level in levels)
        spans = max(ceil_div(level.width + 1, SPAN) for level in levels)
        self.device.launch(
            self.lines, (strips * len(levels), frames), (1, 1), *self._images, self.levels, np.uint32(strips),
            self._coefficients, np.uint32(first), *self._shape, self.sums,
        )  # fmt: skip
        if strips > 1:
            self.device.launch(
                self.add_above, (spans * len(levels), frames), (1, 1), self.sums, self.levels, np.uint32(spans),
                np.uint32(first), *self._shape,
            )  # fmt: skip
        if self.tilted:
            self.device.launch(
                self.tilted, (len(levels), frames), (1, 1), self.sums, self.levels, np.uint32(first), *self._shape
            )

    def traffic(self) -> Traffic:
        """Modelled. Each word is written once; those below a level's first strip are read and written again.

        Tilted sums read those of the pixels.
        """
        again = 4.0 * self._words_below if self.spilled_bytes else 0.0
        tilting = self.spilled_bytes / 3 if self.tilted else 0.0
        read = float(self.problem.scene.pixels.nbytes) + again + tilting
        dram = Traffic(dram_read=read, dram_write=self._written + again)
        return Traffic.total(dram, self._row_traffic(), self._column_traffic(), self._tilted_traffic())

    @property
    def _words_below(self) -> int:
        """Words of both planes below the first strips of levels."""
        words = [(level.width + 1) * max(level.height - self.strip, 0) for level in self.pyramid.levels]
        return 2 * self.problem.frames * sum(words)

    def _row_traffic(self) -> Traffic:
        """Pixels, and their sums along lines and down strips."""
        frames, levels = self.problem.frames, self.pyramid.levels
        pixels, rows = frames * self.pyramid.pixels, frames * self.pyramid.rows
        alone = frames * sum(level.width * ceil_div(level.height, self.strip) for level in levels)  # nothing above
        edges = frames * sum(level.width + 1 for level in levels)
        return Traffic(
            integer_ops=float(17 * pixels + 2 * (pixels - alone)),
            global_read=float(8 * pixels + 8 * (pixels - alone) + 4 * rows),
            global_write=float(8 * (pixels + rows + edges)),
        )

    def _column_traffic(self) -> Traffic:
        """What lies above is added to all strips but the first."""
        words = self._words_below
        return Traffic(integer_ops=float(words), global_read=8.0 * words, global_write=4.0 * words)
