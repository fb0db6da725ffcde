"""Classify and sum in one pass: each point is read once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from perfport.workload import Buffer, Enqueue, Setup, Traffic, Variant, ceil_div

from .. import passes
from ..kmeans_problems import KmeansFragments, KmeansIteration
from . import inputs


def _clearing(setup: Setup, sums: Buffer, counts: Buffer) -> Enqueue:
    """The step that sets sums and counts to zero."""
    device, data = setup.device, setup.problem
    kernel = setup.kernel("tree.cl", "clear", K=data.clusters, DIMS=data.dims, GROUP=64, TILE=1)
    values = data.nodes * data.clusters * data.dims
    groups = min(ceil_div(values, 64), 32 * device.info.compute_units)
    return Enqueue(
        lambda: device.launch(kernel, groups, 64, sums, counts, np.uint32(data.nodes)),
        Traffic(global_write=4.0 * (values + data.nodes * data.clusters)),
    )


class _Tiles:
    """A step: a pass over the tiles of all nodes, in one launch."""

    def __init__(self, setup: Setup, kernel: passes.Pass) -> None:
        self.device, self.data, data = setup.device, setup.problem, setup.problem
        self.kernel = kernel
        self.labels = setup.output("labels", np.uint8, data.count)
        self.sums = setup.output("sums", np.uint32, (data.nodes, data.clusters, data.dims))
        self.counts = setup.output("counts", np.uint32, (data.nodes, data.clusters))
        self.tiles = passes.tiles(data.node_first, data.node_sizes, kernel.tile_points(data.count))
        self.tables = [self._table(setup, tiles) for tiles in self.launches()]
        self.points = self.input(setup)
        self.others = [
            inputs.centres(setup), inputs.halves(setup), inputs.moving(setup), self.labels, self.sums, self.counts,
        ]  # fmt: skip

    def launches(self) -> list[np.ndarray]:
        """The tiles of each launch."""
        return [self.tiles]

    def input(self, setup: Setup) -> Buffer:
        """The points as the kernel reads them."""
        return inputs.points(setup)

    def _table(self, setup: Setup, tiles: np.ndarray) -> tuple[int, Buffer]:
        return len(tiles), setup.upload(tiles)

    def launch(self) -> None:
        """As of `Step`."""
        for number, table in self.tables:
            self.kernel.launch(number, self.points, table, *self.others)

    def traffic(self) -> Traffic:
        """By the labels of the last execution."""
        data, tiles = self.data, len(self.tiles)
        labels = self.device.read(self.labels, np.uint8, (data.count,))
        tile = np.repeat(np.arange(tiles), self.tiles[:, 2])
        counts = np.bincount(tile * data.clusters + labels, minlength=tiles * data.clusters)
        return self.kernel.traffic(self.tiles[:, 2].astype(np.int64), counts.reshape(-1, data.clusters))


class _TilesOfNodes(_Tiles):
    """A step: the same with a launch for each node."""

    def launches(self) -> list[np.ndarray]:
        return [np.ascontiguousarray(self.tiles[self.tiles[:, 0] == node]) for node in range(self.data.nodes)]


class _InterleavedTiles(_Tiles):
    """A step: the same over interleaved points."""

    def input(self, setup: Setup) -> Buffer:
        return inputs.interleaved(setup)


class _PrunedTiles(_Tiles):
    """A step: the same with exact comparisons, as many as the points ask for."""

    kernel: passes.PrunedPass

    def traffic(self) -> Traffic:
        exactly, again = self.kernel.compared(self.data.points[self.data.compared], self.data.centres[0])
        return Traffic.total(super().traffic(), self.kernel.comparing(self.data.count, exactly, again))


class _OnePass(Variant):
    """Clears the sums, then goes over the points of all nodes."""

    role: ClassVar[Literal["rung", "control", "beyond", "peer"]] = "beyond"
    kind: ClassVar[type[passes.Pass]]
    tiles: ClassVar[type[_Tiles]] = _Tiles

    def __init__(self, setup: Setup) -> None:
        self.device, self.data = setup.device, setup.problem
        self.kernel = self.kind(setup.device, setup.kernel, self.data.clusters, self.data.dims, setup.tunables)
        self.over = self.tiles(setup, self.kernel)
        self.steps = [_clearing(setup, self.over.sums, self.over.counts), self.over]

    def notes(self) -> dict[str, Any]:
        """Quality after the iteration, of the first node."""
        counts = self.device.read(self.over.counts, np.uint32, (self.data.nodes, self.data.clusters))[0]
        sums = self.device.read(self.over.sums, np.uint32, (self.data.nodes, self.data.clusters, self.data.dims))[0]
        means = sums / np.maximum(counts, 1)[:, None]
        return {"inertia_per_point": self.data.inertia(means), "tiles": len(self.over.tiles)}


class Fused(_OnePass):
    """Dot products of four bytes and centres split in two bytes: exact."""

    problem = KmeansIteration
    name, title, rung = "fused", "one pass, 8-bit dot products", 5
    unit = "dp4a"
    kind = passes.FusedPass
    tunables: ClassVar = kind.TUNABLES


class FusedPruned(_OnePass):
    """Every centre by its upper bytes alone; by both bytes those that the rest could make the nearest: exact too."""

    problem = KmeansIteration
    name, title, rung = "fused_pruned", "one pass, 8-bit dot products, lower bytes where they matter", 6
    unit = "dp4a"
    kind = passes.PrunedPass
    tunables: ClassVar = kind.TUNABLES
    tiles = _PrunedTiles


class Tiled(_OnePass):
    """One source for every device: tiles of scores by vectors, matrix units or dot products."""

    problem = KmeansIteration
    name, title, rung = "tiled", "one pass, one source: tiles by vectors, matrix units or dot products", 7
    unit = "int8_mma"  # on CPUs it stands for their own 8-bit dot products, which no ceiling measures
    kind = passes.TiledPass
    tunables: ClassVar = kind.TUNABLES


class TensorCore(_OnePass):
    """Scores and sums as products of bytes on matrix units."""

    problem = KmeansIteration
    name, title, rung = "tensor_core", "one pass on matrix units", 8
    unit = "int8_mma"
    needs = ("ptx", "mma")
    kind = passes.MatrixPass
    tunables: ClassVar = kind.TUNABLES


class TensorCoreAtomics(_OnePass):
    """Scores as products of bytes on matrix units, sums by atomics: for any number of clusters."""

    problem = KmeansIteration
    name, title, rung = "tensor_core_atomics", "one pass, scores on matrix units, rows in registers", 9
    unit = "int8_mma"
    needs = ("ptx", "mma")
    kind = passes.MatrixAtomicsPass
    tunables: ClassVar = kind.TUNABLES


class TwoKernels(_OnePass):
    """Exact where the rungs are in FP32, so that a build by them gives the reference's tree."""

    problem = KmeansIteration
    name, title, role, rung = (
        "two_kernels",
        "classify, then sum, in integers: the kernels of the source's build",
        "control",
        10,
    )
    source = "CN105573834, device side: classify and sum"
    kind = passes.TwoKernelPass
    tunables: ClassVar = kind.TUNABLES
    tiles = _InterleavedTiles


class BatchedFragments(_OnePass):
    """All nodes in one launch."""

    problem = KmeansFragments
    name, title, role, rung = "batched_fragments", "all nodes in one launch", "rung", 2
    source = "CN105573834, fragment nodes"
    unit = "dp4a"
    kind = passes.FusedPass
    tunables: ClassVar = kind.TUNABLES


class BatchedTiled(_OnePass):
    """All nodes in one launch, by that source."""

    problem = KmeansFragments
    name, title, rung = "batched_tiled", "all nodes in one launch, one source for every device", 3
    unit = "int8_mma"
    kind = passes.TiledPass
    # On GPUs as batched_tensor_core, and for the same reason.
    tunables: ClassVar = {
        **kind.TUNABLES,
        "group": replace(kind.TUNABLES["group"], default=64),
        "stages": replace(kind.TUNABLES["stages"], default=3),
        "groups_per_unit": replace(kind.TUNABLES["groups_per_unit"], default={"cpu": 4, "gpu": 16}),
    }


class BatchedTensorCore(_OnePass):
    """All nodes in one launch, on matrix units."""

    problem = KmeansFragments
    name, title, rung = "batched_tensor_core", "all nodes in one launch, on matrix units", 4
    unit = "int8_mma"
    needs = ("ptx", "mma")
    kind = passes.MatrixPass
    # A tile is one small node: few warps, which are emptied soon, and many groups at a time.
    tunables: ClassVar = {
        **kind.TUNABLES,
        "warps": replace(kind.TUNABLES["warps"], default=2),
        "stages": replace(kind.TUNABLES["stages"], default=3),
        "groups_per_unit": replace(kind.TUNABLES["groups_per_unit"], default=16),
    }


class NodeByNode(_OnePass):
    """A launch for each node."""

    problem = KmeansFragments
    name, title, role, rung = "node_by_node", "a launch for each node", "rung", 1
    source = "CN105573834, ordinary nodes"
    unit = "dp4a"
    kind = passes.FusedPass
    tunables: ClassVar = kind.TUNABLES
    tiles = _TilesOfNodes
