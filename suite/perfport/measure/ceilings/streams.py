"""DRAM bandwidth: streams over arrays that no cache holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bench import Bench
from .kind import Execution, Kind, Shape, grid

#: Order in which a work-item takes vectors: grid-stride, a chunk for each work-group, one step and no loop, or a chunk
#: for each work-group whose sums are added to one.
WALKS = ("stride", "chunk", "once", "sum")


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
            # Short chunks of a work-group each, which ends with one sum, as batched reductions have them.
            axes |= {"width": (4, 8), "unroll": (2, 4), "walk": ("sum",), "group": (256,)}
            axes["groups"] = (bench.nbytes >> 17, bench.nbytes >> 16)
            yield from grid(**axes, streaming=streaming)
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
        sums = groups * group
        if shape["walk"] == "sum":
            sums, macros["GROUP"] = groups, group
        kernel = bench.kernel("stream.cl", self.kernel, macros)
        arrays = [bench.array(number) for number in range(self.arrays)]
        if self.arrays == 1:
            arrays.append(bench.out(sums))
        count = np.uint64(bench.nbytes // 4 // width)
        return Execution(
            lambda: bench.device.launch(kernel, groups, group, *arrays, count), float(self.arrays * bench.nbytes)
        )

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return bandwidths, each from a cold cache."""
        chosen = self.execution(bench, shape)
        bench.device.timed(chosen.run)
        return [chosen.amount / bench.device.timed(chosen.run, bench.flush).span for _ in range(count)]
