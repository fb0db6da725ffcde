"""DRAM bandwidth: streams over arrays that no cache holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bench import Bench
from .kind import Execution, Kind, Shape, grid

#: Order in which a work-item takes vectors: grid-stride, a chunk for each work-group, or one step and no loop.
WALKS = ("stride", "chunk", "once")


@dataclass(frozen=True)
class Stream(Kind):
    """A stream over ``arrays`` arrays, each of its bytes counted once, from a cold cache."""

    kernel: str
    arrays: int

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return persistent and one-shot grids; a CPU has few wide work-items, a GPU many narrow ones."""
        units = bench.info.compute_units
        # A hint makes no sense for a sum; a store with it need not read the line first.
        streaming = (0,) if self.arrays == 1 else (0, 1)
        axes: dict[str, Sequence[Any]]
        if bench.cpu:
            axes = {"width": (8, 16) if self.arrays == 2 else (16,), "unroll": (4,) if self.arrays == 1 else (1,)}
            axes |= {"walk": ("chunk",), "group": (1,), "groups": (units, 4 * units, 64 * units)}
            if full:
                axes |= {"width": (1, 4, 8, 16), "unroll": (1, 4), "walk": ("chunk", "stride")}
        else:
            reads = self.arrays == 1
            axes = {"width": (4, 8) if reads else (4,), "unroll": (2, 4, 8) if reads else (1, 2, 4)}
            axes |= {"walk": ("stride", "chunk"), "group": (256, 512)}
            axes["groups"] = (16 * units, 32 * units) if reads else (32 * units, 64 * units)
            if full:
                axes |= {"width": (1, 4, 8, 16), "unroll": (1, 2, 4, 8), "groups": (16 * units, 32 * units, 64 * units)}
        if self.arrays == 3:
            axes["unroll"] = (1,)  # its work-items take one vector at a time
        yield from grid(**axes, streaming=streaming)
        if not bench.cpu and self.arrays == 1:
            # Many groups that begin and end, each with adjacent bytes, as reductions of rows have them; not so many that
            # the sums, one of each work-item, are a hundredth of what is read.
            axes |= {"width": (4,), "unroll": (4,), "walk": ("chunk",), "group": (256,)}
            yield from grid(**axes | {"groups": tuple(bench.nbytes >> shift for shift in (18, 17))}, streaming=streaming)
        if not bench.cpu and self.arrays > 1:
            # Grids without a loop: each work-item takes `unroll` vectors, a work-group adjacent ones, and ends. Not for
            # the sum: its work-items would write much beside what they read.
            axes |= {"walk": ("once",), "group": (256, 1024), "groups": (0,)}
            for shape in grid(**axes, streaming=streaming):
                per_group = 4 * shape["width"] * shape["unroll"] * shape["group"]
                yield {**shape, "groups": -(-bench.nbytes // per_group)}

    def execution(self, bench: Bench, shape: Shape) -> Execution:
        """Return one pass over the arrays."""
        width, groups, group = shape["width"], shape["groups"], shape["group"]
        macros: dict[str, int | str] = {
            "VECTOR": "float", "WIDTH": width, "WALK": WALKS.index(shape["walk"]), "UNROLL": shape["unroll"],
            "STREAMING": shape["streaming"],
        }  # fmt: skip
        kernel = bench.kernel("stream.cl", self.kernel, macros)
        arrays = [bench.array(number) for number in range(self.arrays)]
        if self.arrays == 1:
            arrays.append(bench.out(groups * group))
        count = np.uint64(bench.nbytes // 4 // width)
        return Execution(
            lambda: bench.device.launch(kernel, groups, group, *arrays, count), float(self.arrays * bench.nbytes)
        )

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return bandwidths, each from a cold cache."""
        chosen = self.execution(bench, shape)
        bench.device.timed(chosen.run)
        return [chosen.amount / bench.device.timed(chosen.run, bench.flush).span for _ in range(count)]
