"""Atomic additions per second: all on one counter, and spread over many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .bench import Bench
from .kind import Execution, Rate, Shape, grid

BINS = 1024  # of a work-group in local memory
COUNTERS = {"global": 1 << 18, "local": BINS}


@dataclass(frozen=True)
class Atomics(Rate):
    """32-bit additions without use of the old value, in ``global`` or ``local`` memory."""

    space: str
    many: bool

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return numbers and sizes of work-groups."""
        units = bench.info.compute_units
        if bench.cpu:
            return grid(group=(1, 64), groups=(units, 4 * units) if full else (4 * units,))
        return grid(group=(64, 256, 1024) if full else (256, 1024), groups=(8 * units,))

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``16 scale`` additions of every work-item."""
        groups, group, steps = shape["groups"], shape["group"], 16 * scale
        macros: dict[str, int | str] = {}
        kernel = bench.kernel("atomics.cl", f"atomic_{self.space}", macros)
        mask = COUNTERS[self.space] - 1 if self.many else 0
        counters = bench.buffer("counters", 4 * max(COUNTERS["global"], groups * BINS))
        args = (counters, np.uint32(mask), np.uint32(1), np.uint32(steps))
        return Execution(lambda: bench.device.launch(kernel, groups, group, *args), float(steps * groups * group))
