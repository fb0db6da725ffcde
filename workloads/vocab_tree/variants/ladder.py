"""The source's ladder on one node: classify and sum as two kernels, in FP32."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.workload import Setup, Traffic, Tunable, UnsupportedError, Variant, ceil_div, round_up

from ..kmeans_problems import KmeansIteration
from ..outputs import FLOAT
from . import inputs

SOURCE = "CN105573834, device side: classify and sum"


class _TwoKernels(Variant):
    """Clears the sums, classifies, adds up."""

    problem = KmeansIteration
    source = SOURCE
    computes = FLOAT

    def __init__(self, setup: Setup) -> None:
        self.setup, self.device, self.data = setup, setup.device, setup.problem
        data = self.data
        self.count, self.k, self.dims = data.count, data.clusters, data.dims
        self.labels = setup.output("labels", np.uint8, data.count)
        self.sums = setup.output("sums", np.uint32, (data.nodes, data.clusters, data.dims))
        self.counts = setup.output("counts", np.uint32, (data.nodes, data.clusters))
        self.group = setup.tunables["group"]
        self.clear = setup.kernel("tree.cl", "clear", K=self.k, DIMS=self.dims, GROUP=self.group, TILE=1)
        self.build()

    def build(self) -> None:
        """Compile the two kernels and choose their launches."""
        raise NotImplementedError

    def run(self) -> None:
        """Enqueue the two kernels."""
        raise NotImplementedError

    def launch(self) -> None:
        self.device.launch(self.clear, 8, 64, self.sums, self.counts, np.uint32(1))
        self.run()

    def notes(self) -> dict[str, Any]:
        """Quality after the iteration."""
        sums = self.device.read(self.sums, np.uint32, (self.k, self.dims))
        counts = self.device.read(self.counts, np.uint32, (self.k,))
        return {"inertia_per_point": self.data.inertia(sums / np.maximum(counts, 1)[:, None])}

    def _items(self, wanted: int) -> int:
        """Work-groups for so many work-items, at most what keeps every compute unit busy a few times over."""
        most = self.device.info.compute_units * self.setup.tunables["groups_per_unit"]
        return min(ceil_div(wanted, self.group), most)

    def _common(self) -> Traffic:
        """Classification in FP32, and what both kernels write."""
        pairs = float(self.count) * self.k * self.dims
        return Traffic(
            flops=3 * pairs, integer_ops=float(self.count) * self.dims,
            global_write=float(self.count) + 4 * self.k * (self.dims + 1),
            dram_write=float(self.count) + 4 * self.k * (self.dims + 1),
        )  # fmt: skip


class Naive(_TwoKernels):
    """Row-major floats; centres in global memory; an atomic for each value."""

    name, title, rung = "naive", "row-major floats, centres in global memory, sums by global atomics", 1
    tunables: ClassVar = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (64, 128, 256), "work-items per work-group"),
        "groups_per_unit": Tunable({"cpu": 16, "gpu": 32}, (8, 16, 32, 64), "work-groups per compute unit, at most"),
    }

    def build(self) -> None:
        if self.count * self.dims >= 2**32:
            raise UnsupportedError(f"points: {self.count} x {self.dims} values exceed 32-bit indices")
        self.points = inputs.float_points(self.setup)
        self.centres = inputs.float_centres(self.setup)
        macros = {"K": self.k, "DIMS": self.dims, "GROUP": self.group, "NAIVE": 1}
        self.classify, self.sum = (self.setup.kernel("ladder.cl", name, **macros) for name in ("classify", "sum"))

    def run(self) -> None:
        count = np.uint32(self.count)
        self.device.launch(
            self.classify, self._items(self.count), self.group, self.points, self.centres, count, self.labels
        )
        self.device.launch(
            self.sum, self._items(self.count * self.dims), self.group, self.points, self.labels, count, self.sums,
            self.counts,
        )  # fmt: skip

    def traffic(self) -> Traffic:
        traffic, values = self._common(), float(self.count) * self.dims
        traffic.integer_ops = 0
        traffic.global_read = 8 * values * self.k + 5 * values
        traffic.global_atomics = values + self.count
        traffic.dram_read = 8 * values + self.count
        return traffic


class _Local(_TwoKernels):
    tunables: ClassVar = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (64, 128, 256), "work-items per work-group that classifies"),
        "groups_per_unit": Tunable({"cpu": 16, "gpu": 16}, (4, 8, 16, 32), "work-groups per compute unit, at most"),
        "rows": Tunable(4, (1, 2, 4, 8), "work-items that share a dimension"),
        "run": Tunable({"cpu": 4096, "gpu": 2048}, (64, 256, 1024, 2048, 4096), "points of a work-group that adds"),
    }
    layout: ClassVar[int]

    def build(self) -> None:
        t = self.setup.tunables
        macros = {"K": self.k, "DIMS": self.dims, "GROUP": self.group, "LAYOUT": self.layout, "ROWS": t["rows"],
                  "RUN": t["run"]}  # fmt: skip
        self.run_, self.rows, self.add_group = t["run"], t["rows"], self.dims * t["rows"]
        self.local = 4 * self.k * self.dims, 4 * t["rows"] * self.k * (self.dims + 1)
        for nbytes in self.local:
            if nbytes > self.device.info.local_memory_bytes:
                raise UnsupportedError(
                    f"clusters: {self.k} need {nbytes} bytes of local memory, {self.device.info.id} has "
                    f"{self.device.info.local_memory_bytes}"
                )
        self.centres = inputs.float_centres(self.setup)
        self.classify, self.sum = (self.setup.kernel("ladder.cl", name, **macros) for name in ("classify", "sum"))
        self.pitch = round_up(self.count, self.run_)
        self.sources = self.layouts()

    def layouts(self) -> tuple:
        """The points as the two kernels read them."""
        raise NotImplementedError

    def run(self) -> None:
        count = np.uint32(self.count)
        self.device.launch(
            self.classify, self._items(self.count), self.group, self.sources[0], self.centres, count, self.labels,
            local_bytes=self.local[0],
        )  # fmt: skip
        self.device.launch(
            self.sum, ceil_div(self.count, self.run_), self.add_group, self.sources[1], self.labels, count,
            np.uint32(self.pitch), self.sums, self.counts, local_bytes=self.local[1],
        )  # fmt: skip

    def traffic(self) -> Traffic:
        traffic, values = self._common(), float(self.count) * self.dims
        groups, centres = float(self._items(self.count)), float(self.k) * self.dims
        adders, halvings = float(ceil_div(self.count, self.run_)), self.rows - 1
        row = self.k * (self.dims + 1.0)  # values of one row of partial sums
        traffic.integer_ops = values * (1 if self.layout == 0 else 2) + self.count + adders * halvings * row
        if self.layout:
            traffic.integer_ops += 4.5 * values  # bytes taken out of words, for both kernels
        traffic.global_read = (
            4 * groups * centres + (1 + self.k if self.layout == 0 else 2) * values + self.count * self.dims
        )
        traffic.local_write = 4 * (groups * centres + adders * self.rows * row + values + self.count)
        traffic.local_write += 4 * adders * halvings * row
        traffic.local_read = 4 * (values * self.k + values + self.count + 2 * adders * halvings * row + adders * row)
        traffic.global_atomics = adders * row
        traffic.dram_read = 2 * values + self.count
        return traffic


class LocalCentres(_Local):
    """Rows of bytes, a byte at a time; centres and partial sums in local memory."""

    name, title, rung = "local_centres", "centres and partial sums in local memory", 2
    layout = 0

    def layouts(self) -> tuple:
        return inputs.points(self.setup), inputs.points(self.setup)


class Packed(_Local):
    """16 dimensions of a point, or one dimension of 4 points, in one load."""

    name, title, rung = "packed", "packed loads", 3
    layout = 1

    def layouts(self) -> tuple:
        return inputs.points(self.setup), inputs.grouped(self.setup, self.pitch)


class Relayout(_Local):
    """Packed loads, and what neighbouring work-items load lies side by side."""

    name, title, rung = "relayout", "packed loads of re-laid-out data", 4
    layout = 2

    def layouts(self) -> tuple:
        return inputs.units(self.setup), inputs.grouped(self.setup, self.run_)
