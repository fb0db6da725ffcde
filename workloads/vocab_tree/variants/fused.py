"""Classify and sum in one pass: each point is read once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from perfport.workload import Setup, Traffic, Variant, ceil_div

from .. import passes
from ..problems import KmeansFragments, KmeansIteration
from . import inputs


class _OnePass(Variant):
    """Clears the sums and goes over the tiles of all nodes in one launch."""

    role: ClassVar[Literal["rung", "control", "beyond", "peer"]] = "beyond"
    kind: ClassVar[passes.PassKind]

    def __init__(self, setup: Setup) -> None:
        self.device, self.data, data = setup.device, setup.problem, setup.problem
        self.kernel = self.kind(setup.device, setup.kernel, data.clusters, data.dims, setup.tunables)
        self.clear = setup.kernel("tree.cl", "clear", K=data.clusters, DIMS=data.dims, GROUP=64, TILE=1)
        self.labels = setup.output("labels", np.uint8, data.count)
        self.sums = setup.output("sums", np.uint32, (data.nodes, data.clusters, data.dims))
        self.counts = setup.output("counts", np.uint32, (data.nodes, data.clusters))
        self.tiles = passes.tiles(data.node_first, data.node_sizes, self.kernel.tile_points(data.count))
        table = setup.scratch(self.tiles.nbytes)
        setup.device.write(table, self.tiles)
        self.buffers = [
            inputs.points(setup), table, inputs.centres(setup), inputs.halves(setup), inputs.moving(setup), self.labels,
            self.sums, self.counts,
        ]  # fmt: skip

    def clear_sums(self) -> None:
        """Enqueue the kernel that sets sums and counts to zero."""
        values = self.data.nodes * self.data.clusters * self.data.dims
        groups = min(ceil_div(values, 64), 32 * self.device.info.compute_units)
        self.device.launch(self.clear, groups, 64, self.sums, self.counts, np.uint32(self.data.nodes))

    def launch(self) -> None:
        self.clear_sums()
        self.kernel.launch(len(self.tiles), *self.buffers)

    def notes(self) -> dict[str, Any]:
        """Quality after the iteration, of the first node."""
        counts = self.device.read(self.counts, np.uint32, (self.data.nodes, self.data.clusters))[0]
        sums = self.device.read(self.sums, np.uint32, (self.data.nodes, self.data.clusters, self.data.dims))[0]
        return {"inertia_per_point": self.data.inertia(sums / np.maximum(counts, 1)[:, None]), "tiles": len(self.tiles)}

    def traffic(self) -> Traffic:
        data = self.data
        labels = self.device.read(self.labels, np.uint8, (data.count,))
        tile = np.repeat(np.arange(len(self.tiles)), self.tiles[:, 2])
        counts = np.bincount(tile * data.clusters + labels, minlength=len(self.tiles) * data.clusters)
        found = self.kernel.traffic(self.tiles[:, 2].astype(np.int64), counts.reshape(-1, data.clusters))
        cleared = 4.0 * data.nodes * data.clusters * (data.dims + 1)
        found.global_write += cleared
        return found


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
    kernel: passes.PrunedPass

    def traffic(self) -> Traffic:
        found = self.kernel.compared(self.data.points[self.data.compared], self.data.centres[0])
        return Traffic.total(super().traffic(), self.kernel.comparing(self.data.count, *found))


class Streams(_OnePass):
    """The same for CPUs: vectors of 16 points."""

    problem = KmeansIteration
    name, title, rung = "fused_streams", "one pass, vectors of 16 points", 7
    unit = "int8_mma"  # stands for the processor's own 8-bit dot products: no ceiling of a CPU measures them
    needs = ("opencl", "cpu")
    kind = passes.StreamPass
    tunables: ClassVar = kind.TUNABLES


class TensorCore(_OnePass):
    """Scores and sums as products of bytes on matrix units."""

    problem = KmeansIteration
    name, title, rung = "tensor_core", "one pass on matrix units", 8
    unit = "int8_mma"
    needs = ("cuda", "mma")
    kind = passes.MatrixPass
    tunables: ClassVar = kind.TUNABLES


class TensorCoreAtomics(_OnePass):
    """Scores as products of bytes on matrix units, sums by atomics: for any number of clusters."""

    problem = KmeansIteration
    name, title, rung = "tensor_core_atomics", "one pass, scores on matrix units, rows in registers", 9
    unit = "int8_mma"
    needs = ("cuda", "mma")
    kind = passes.MatrixAtomicsPass
    tunables: ClassVar = kind.TUNABLES


class BatchedFragments(_OnePass):
    """All nodes in one launch."""

    problem = KmeansFragments
    name, title, role, rung = "batched_fragments", "all nodes in one launch", "rung", 2
    source = "CN105573834, fragment nodes"
    unit = "dp4a"
    kind = passes.FusedPass
    tunables: ClassVar = kind.TUNABLES


class BatchedStreams(_OnePass):
    """All nodes in one launch, for CPUs."""

    problem = KmeansFragments
    name, title, rung = "batched_streams", "all nodes in one launch, vectors of 16 points", 3
    unit = "int8_mma"
    needs = ("opencl", "cpu")
    kind = passes.StreamPass
    tunables: ClassVar = kind.TUNABLES


class BatchedTensorCore(_OnePass):
    """All nodes in one launch, on matrix units."""

    problem = KmeansFragments
    name, title, rung = "batched_tensor_core", "all nodes in one launch, on matrix units", 4
    unit = "int8_mma"
    needs = ("cuda", "mma")
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

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.tables = []
        for node in range(self.data.nodes):
            own = np.ascontiguousarray(self.tiles[self.tiles[:, 0] == node])
            table = setup.scratch(own.nbytes)
            setup.device.write(table, own)
            self.tables.append((len(own), table))

    def launch(self) -> None:
        self.clear_sums()
        for number, table in self.tables:
            self.kernel.launch(number, self.buffers[0], table, *self.buffers[2:])
