"""Descriptors through a tree."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from perfport.workload import Buffer, Setup, Traffic, Tunable, Variant, ceil_div, round_up

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


class Rows(_Query):
    """One launch for CPUs: vectors of dimensions, products of 16-bit integers with each centre as it lies."""

    name, title, role, rung = "rows", "one launch, vectors of dimensions", "beyond", 3
    needs = ("opencl", "cpu")
    tunables: ClassVar = {
        "centres": Tunable(12, (4, 8, 12, 16), "centres whose sums are formed side by side"),
        "held": Tunable(256, (1, 16, 64, 256), "descriptors that go through a level before the next"),
        "vnni": Tunable(1, (0, 1), "use the processor's dot product of 16-bit integers, where the compiler takes it"),
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        data = self.data
        upload, table = setup.device.upload, data.tables
        self.held = int(setup.tunables["held"])
        self.kernel = setup.kernel(
            "rows.cl", "descend_rows", K=data.clusters, DIMS=data.dims, HELD=self.held,
            CENTRES=setup.tunables["centres"],
            VNNI=int(bool(setup.tunables["vnni"]) and "vnni" in setup.device.info.capabilities),
        )  # fmt: skip
        self.padded = round_up(data.clusters, 4)

        def signed() -> Buffer:
            return upload((table.centres ^ np.uint16(1 << 15)).view(np.int16))

        def padded() -> Buffer:
            """No class behind the last one is the nearest."""
            halves = np.full((len(table.halves), self.padded), np.iinfo(np.int32).max, np.int32)
            halves[:, : data.clusters] = table.halves
            return upload(halves)

        self.inputs = [
            setup.input("queries", lambda: upload(data.queries)), setup.layout("signed centres", signed),
            setup.layout("padded halves", padded), setup.input("children", lambda: upload(table.children)),
            setup.input("leaves", lambda: upload(table.leaves)),
        ]  # fmt: skip

    def launch(self) -> None:
        groups = ceil_div(self.count, self.held)
        self.device.launch(self.kernel, groups, 1, *self.inputs, np.uint32(self.count), self.words)

    def traffic(self) -> Traffic:
        visits = self.visits()
        k, dims = self.data.clusters, float(self.data.dims)
        return Traffic(
            # With the empty sums of what fills the last four; what scores are made of decides an address.
            integer_ops=visits * (k * 2 * dims + 8 * (self.padded - k)),
            global_read=visits * (k * 2 * dims + 4 * self.padded + dims + 4) + 4.0 * self.count,
            global_write=4.0 * self.count,
            dram_read=self.count * dims + self.data.tables.centres.nbytes, dram_write=4.0 * self.count,
        )  # fmt: skip


class Teams(_Query):
    """Work-items of one hardware thread share a descriptor, so that they load neighbouring bytes of a centre."""

    name, title, role, rung = "teams", "one launch, several work-items per descriptor, 8-bit dot products", "beyond", 4
    unit = "dp4a"
    tunables: ClassVar = {
        "group": Tunable({"cpu": 64, "gpu": 128}, (64, 128, 256), "work-items per work-group, if sums have room"),
        "lanes": Tunable({"cpu": 1, "gpu": 8}, (1, 2, 4, 8, 16), "work-items per descriptor, if it has as many units"),
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        data = self.data
        upload, table = setup.device.upload, data.tables
        self.units, self.group = data.dims // 16, int(setup.tunables["group"])
        self.lanes = min(int(setup.tunables["lanes"]), 1 << self.units.bit_length() - 1)
        while self.group > 32 and self.group // self.lanes * (data.clusters * self.lanes + 8) > SUMS:
            self.group //= 2
        self.groups = ceil_div(self.count * self.lanes, self.group)
        self.kernel = setup.kernel(
            "teams.cl", "descend_teams", K=data.clusters, DIMS=data.dims, GROUP=self.group, LANES=self.lanes,
            DEPTH=table.depth,
        )  # fmt: skip

        def split() -> Buffer:
            return upload(np.stack([table.centres >> 8, table.centres & 255], axis=2).astype(np.uint8))

        self.inputs = [
            setup.input("queries", lambda: upload(data.queries)), setup.layout("split centres", split),
            setup.input("halves", lambda: upload(table.halves)),
            setup.input("children", lambda: upload(table.children)),
            setup.input("leaves", lambda: upload(table.leaves)),
        ]  # fmt: skip

    def launch(self) -> None:
        self.device.launch(self.kernel, self.groups, self.group, *self.inputs, np.uint32(self.count), self.words)

    def traffic(self) -> Traffic:
        visits = self.visits()
        k, dims, lanes = self.data.clusters, float(self.data.dims), self.lanes
        items, levels = float(self.groups * self.group), self.data.tables.depth
        return Traffic(
            integer_ops=visits * k * (4 * dims + 3 * lanes),
            global_read=visits * (k * (2 * dims + 4) + 8 * lanes) + items * ceil_div(self.units, lanes) * 16,
            global_write=4.0 * self.count,
            local_read=visits * (4 * k * lanes + 8 * lanes * min(lanes, k)),
            local_write=4 * visits * k * lanes + 8 * items * levels,
            dram_read=self.count * dims + self.data.tables.centres.nbytes, dram_write=4.0 * self.count,
        )  # fmt: skip
