"""Synchronising all work-groups of a resident grid, within one launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .bench import Bench
from .kind import Execution, NoCeilingError, Rate, Shape, grid

#: What a work-group polls at most in one launch. On a GPU each poll takes the second level's latency, in all a second
#: and a half; on a CPU a tenth of that, which outlasts a time slice.
POLLS = 1 << 21


@dataclass(frozen=True)
class GridBarrier(Rate):
    """Seconds for a barrier of all work-groups, by a counter in global memory.

    Neither OpenCL C 1.2 nor CUDA promises that groups of a plain launch run at the same time, so that none may wait for
    another without end: a group that has polled `POLLS` times goes on, and there is no ceiling.
    """

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return a work-group for each compute unit, on GPUs two as well, and sizes of the work-group."""
        units = bench.info.compute_units
        if bench.cpu:
            return grid(group=(1, 16) if full else (1,), groups=(units,))
        return grid(group=(32, 64, 256, 512) if full else (64, 256), groups=(units, 2 * units))

    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return ``64 scale`` barriers; each group counts those that it left before all others had arrived."""
        groups, group, rounds = shape["groups"], shape["group"], 64 * scale
        kernel = bench.kernel("grid_barrier.cl", "grid_barrier", {})
        counter, early = bench.buffer("counter", 4), bench.buffer("early", 4 * groups)
        args = (np.uint32(rounds), np.uint32(POLLS))

        def prepare() -> None:
            bench.device.fill(counter, 0)
            bench.device.fill(early, 0xFF)

        def check() -> None:
            failed = bench.device.read(early, np.uint32, (groups,))
            if failed.any():  # also where a group took no part: its word is poison
                raise NoCeilingError(
                    f"{np.count_nonzero(failed)} of {groups} work-groups gave up waiting for the others: "
                    "they do not run at the same time"
                )

        return Execution(
            lambda: bench.device.launch(kernel, groups, group, counter, early, *args), float(rounds),
            prepare=prepare, check=check,
        )  # fmt: skip
