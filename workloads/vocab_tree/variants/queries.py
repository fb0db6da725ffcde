"""Descriptors through a tree."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Buffer, Setup, Traffic, Tunable, UnsupportedError, Variant, ceil_div, round_up

from ..tree_problems import TreeQuery

SUMS = 8192  # partial sums of a work-group: 32 KB of the 48 that every device has


class _Query(Variant):
    problem = TreeQuery

    def __init__(self, setup: Setup) -> None:
        self.device, self.data = setup.device, setup.problem
        self.count = self.data.parameters.queries
        self.words = setup.output("words", np.uint32, self.count)

    def visits(self) -> float:
        """Nodes that all descriptors went through."""
        depths = self.data.tree.leaf_paths()[1]
        return float(depths[self.device.read(self.words, np.uint32, (self.count,))].sum(dtype=np.int64))


class _Descent(_Query):
    tunables: ClassVar = {
        "group": Tunable({"cpu": 64, "gpu": 128}, (64, 128, 256), "work-items per work-group"),
    }
    kernel_name: ClassVar[str]

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        data = self.data
        upload, table = setup.device.upload, data.tables
        self.group = setup.tunables["group"]
        self.kernel = setup.kernel(
            "tree.cl", self.kernel_name, K=data.clusters, DIMS=data.dims, GROUP=self.group, TILE=1
        )  # fmt: skip
        self.inputs = [
            setup.input("queries", lambda: upload(data.queries)), setup.input("tree", lambda: upload(table.centres)),
            setup.input("halves", lambda: upload(table.halves)),
            setup.input("children", lambda: upload(table.children)),
            setup.input("leaves", lambda: upload(table.leaves)),
        ]  # fmt: skip
        self.groups = ceil_div(self.count, self.group)


class ByLevel(_Descent):
    """A launch per level; node numbers travel through global memory."""

    name, title, rung = "by_level", "a launch per level", 1
    source = "CN105573834: a tree is a tree of k-means classifications"
    kernel_name = "descend"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.nodes = setup.scratch(4 * self.count)

    def launch(self) -> None:
        for level in range(self.data.tables.depth):
            self.device.launch(
                self.kernel, self.groups, self.group, *self.inputs, np.uint32(self.count), np.uint32(level == 0),
                self.nodes, self.words,
            )  # fmt: skip

    def traffic(self) -> Traffic:
        visits = self.visits()
        k, dims, depth = self.data.clusters, float(self.data.dims), self.data.tables.depth
        return Traffic(
            integer_ops=visits * k * (3.5 * dims + 1),
            global_read=visits * (k * (3 * dims + 4) + 8) + 4 * self.count * (depth - 1), global_write=8 * visits,
            dram_read=self.count * dims * depth + self.data.tables.centres.nbytes, dram_write=8 * visits,
        )  # fmt: skip


class AllLevels(_Descent):
    """One launch; the descriptor in registers, packed loads."""

    name, title, role, rung = "all_levels", "one launch, packed loads", "beyond", 2
    kernel_name = "descend_all"

    def launch(self) -> None:
        self.device.launch(self.kernel, self.groups, self.group, *self.inputs, np.uint32(self.count), self.words)

    def traffic(self) -> Traffic:
        visits = self.visits()
        k, dims = self.data.clusters, float(self.data.dims)
        items = float(self.groups * self.group)
        return Traffic(
            integer_ops=visits * k * (3 * dims + 1) + 1.33 * items * dims,  # bytes are taken out of words once
            global_read=visits * (k * (2 * dims + 4) + 8) + items * dims, global_write=4.0 * self.count,
            dram_read=self.count * dims + self.data.tables.centres.nbytes, dram_write=4.0 * self.count,
        )  # fmt: skip


class Descent(_Query):
    """One source for every device: the nearest centre by vectors of dimensions, or by teams of work-items."""

    name, title, role, rung = "descent", "one launch, one source: vectors, or teams of work-items", "beyond", 3
    unit: str | None = "dp4a"  # of teams
    tunables: ClassVar = {
        "vector": Tunable({"cpu": 1, "gpu": 0}, (0, 1), "1: vectors of dimensions; 0: dot products of four bytes"),
        "held": Tunable({"cpu": 256, "gpu": 1}, (1, 16, 64, 256), "descriptors that go through a level in turn"),
        "group": Tunable({"cpu": 64, "gpu": 128}, (64, 128, 256), "work-items per work-group, if sums have room"),
        "lanes": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8, 16), "work-items per descriptor, if it has as many units"),
        "centres": Tunable(12, (4, 8, 12, 16), "centres whose sums are formed side by side, with vectors"),
        "vnni": Tunable(1, (0, 1), "use the processor's dot product of 16-bit integers, where the compiler takes it"),
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        data, chosen, info = self.data, setup.tunables, setup.device.info
        self.vector, self.held = bool(chosen["vector"]), int(chosen["held"])
        if self.vector:
            if info.kind != "cpu" or "opencl" not in info.capabilities:
                raise UnsupportedError(f"vector: {info.id} has no vectors of 16-bit integers")
            self.unit = None  # no ceiling is of products of 16-bit integers
        self.padded = round_up(data.clusters, 4)
        self.units = data.dims // 16
        self.lanes = 1 if self.vector else min(int(chosen["lanes"]), 1 << self.units.bit_length() - 1)
        self.group = 1 if self.vector else self._group(int(chosen["group"]))
        self.groups = ceil_div(ceil_div(self.count, self.held) * self.lanes, self.group)
        self.kernel = setup.kernel(
            "descent.cl", "descend", K=data.clusters, DIMS=data.dims, DEPTH=data.tables.depth, GROUP=self.group,
            HELD=self.held, VECTOR=int(self.vector), LANES=self.lanes, CENTRES=chosen["centres"],
            VNNI=int(bool(chosen["vnni"]) and "vnni" in info.capabilities),
        )  # fmt: skip
        upload, table = setup.device.upload, data.tables
        self.inputs = [
            setup.input("queries", lambda: upload(data.queries)), *self._centres(setup),
            setup.input("children", lambda: upload(table.children)),
            setup.input("leaves", lambda: upload(table.leaves)),
        ]  # fmt: skip

    def _group(self, group: int) -> int:
        """Return as many work-items as asked for, or as the sums of their teams leave room for."""
        while group > 32 and group // self.lanes * (self.data.clusters * self.lanes + 8) > SUMS:
            group //= 2
        return group

    def _centres(self, setup: Setup) -> tuple[Buffer, Buffer]:
        """Return centres and halves as the kernel reads them."""
        upload, table = setup.device.upload, self.data.tables

        def signed() -> Buffer:
            return upload((table.centres ^ np.uint16(1 << 15)).view(np.int16))

        def padded() -> Buffer:
            """No class behind the last one is the nearest."""
            halves = np.full((len(table.halves), self.padded), np.iinfo(np.int32).max, np.int32)
            halves[:, : self.data.clusters] = table.halves
            return upload(halves)

        def split() -> Buffer:
            return upload(np.stack([table.centres >> 8, table.centres & 255], axis=2).astype(np.uint8))

        if self.vector:
            return setup.layout("signed centres", signed), setup.layout("padded halves", padded)
        return setup.layout("split centres", split), setup.input("halves", lambda: upload(table.halves))

    def launch(self) -> None:
        self.device.launch(self.kernel, self.groups, self.group, *self.inputs, np.uint32(self.count), self.words)

    def traffic(self) -> Traffic:
        visits, k, dims = self.visits(), self.data.clusters, float(self.data.dims)
        own = self._by_vectors(visits) if self.vector else self._by_teams(visits)
        common = Traffic(
            global_read=visits * (k * 2 * dims + 4 * self.lanes) + 4.0 * self.count, global_write=4.0 * self.count,
            dram_read=self.count * dims + self.data.tables.centres.nbytes, dram_write=4.0 * self.count,
        )  # fmt: skip
        return Traffic.total(common, own)

    def _by_vectors(self, visits: float) -> Traffic:
        """With the empty sums of what fills the last four; what scores are made of decides an address."""
        k, dims = self.data.clusters, float(self.data.dims)
        return Traffic(
            integer_ops=visits * (k * 2 * dims + 8 * (self.padded - k)),
            global_read=visits * 4 * self.padded + self._taken(visits),
        )

    def _by_teams(self, visits: float) -> Traffic:
        k, dims, lanes = self.data.clusters, float(self.data.dims), self.lanes
        calls = float(self.groups * self.group * self.held * self.data.tables.depth)
        return Traffic(
            integer_ops=visits * k * (4 * dims + 3 * lanes),
            global_read=visits * 4 * k + self._taken(calls / lanes),
            local_read=visits * (4 * k * lanes + 8 * lanes * min(lanes, k)),
            local_write=4 * visits * k * lanes + 8 * calls,
        )

    def _taken(self, times: float) -> float:
        """Bytes of descriptors: read once where a team holds one, else each time that it comes to one."""
        if self.held == 1:
            times = self.groups * self.group / self.lanes
        return times * (float(self.data.dims) if self.vector else 16.0 * self.lanes * ceil_div(self.units, self.lanes))
