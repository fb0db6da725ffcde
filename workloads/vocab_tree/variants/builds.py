"""Whole builds on one device, in the ways that the source and this suite go about it."""

from __future__ import annotations

import weakref
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from perfport.machine.discovery import discover
from perfport.workload import DeviceInfo, Setup, Traffic, Tunable, UnsupportedError, UsageError, Variant

from .. import passes, tree
from ..builder import memory
from ..builder.build import Build
from ..builder.host_memory import Points, PrivatePoints, SharedPoints
from ..builder.jobs import Settings
from ..builder.report import Report
from ..builder.resident import Kernels
from ..builder.workers import LocalWorker, ProcessWorker, Worker
from ..tree_problems import TreeBuild

SOURCE = "CN105573834, host side"
BEYOND = "beyond the source"
PLACES = (2, 4, 8, 16)  # chunks that a device's memory is for


def summary(reports: list[Report]) -> dict[str, Any]:
    """What a record keeps of some builds of the same tree: the report of the one of median duration."""
    report = sorted(reports, key=lambda each: each.seconds)[len(reports) // 2]
    figures = {name: value for name, value in asdict(report).items() if name != "seconds"}
    if report.loaded_bytes:
        figures["streamed_bytes_per_second"] = report.loaded_bytes / report.pass_seconds
    return figures


def _close(workers: list[Worker], points: SharedPoints) -> None:
    for worker in workers:
        worker.close()
    points.free()


class _Build(Variant):
    """Ranked by wall time: the host takes part."""

    problem = TreeBuild
    host_driven = True
    source = SOURCE
    tunables: ClassVar[dict[str, Tunable]] = {
        "threads": Tunable({"cpu": 2, "gpu": 8}, (1, 2, 4, 8, 16, 32), "host threads per device that prepare points"),
    }
    settings: ClassVar[dict[str, Any]] = {}
    limited: ClassVar[bool] = False

    def __init__(self, setup: Setup) -> None:
        self.data: TreeBuild = setup.problem
        p = self.data.parameters
        limit = self.data.memory_limit
        chosen = {"places": 2, **self.settings, "threads": setup.tunables["threads"]}
        if "places" in setup.tunables:
            chosen["places"] = chosen["kept"] = setup.tunables["places"]
        if self.limited and limit is None:
            limit = max(self.data.count * self.data.dims // 4, memory.least(p.clusters, p.dims, chosen["places"]))
        settings = Settings(p.clusters, p.levels, p.iterations, self.data.seed, p.dims, memory_limit=limit, **chosen)
        self.chosen = settings
        try:
            self.open(setup)
        except UsageError as error:
            raise UnsupportedError(str(error)) from error
        self.tree: tree.Tree | None = None
        self.reports: list[Report] = []

    def open(self, setup: Setup) -> None:
        """Open the workers, and bring the points to where they reach them."""
        local = LocalWorker(setup.device, setup.kernel, self.chosen, self.of_pass(setup.device.info))
        self.workers: list[Worker] = [local]
        self.local = local
        self.points: Points = PrivatePoints(setup.input("pinned points", self._pinned(setup)))

    def of_pass(self, info: DeviceInfo) -> dict[str, Any]:
        """Tunables of the pass's kernels on a device."""
        return passes.defaults(info, self.data.clusters, self.chosen.two_kernels)

    def rest(self) -> None:
        """Give the device's memory back between executions: other variants share it."""
        self.local.inner.rest()

    def _pinned(self, setup: Setup) -> Any:
        """The points in page-locked host memory, where the device has it: that is where a build starts."""

        def make() -> np.ndarray:
            memory = setup.device.pinned(self.data.points.nbytes).reshape(self.data.points.shape)
            memory[:] = self.data.points
            return memory

        return make

    def launch(self) -> None:
        build = Build(self.points, self.chosen, self.workers)
        try:
            self.tree = build.run()
        finally:
            self.rest()
        self.reports.append(build.report)

    def results(self) -> dict[str, np.ndarray]:
        assert self.tree
        return self.tree.arrays()

    def traffic(self) -> Traffic | None:
        """None: when a node stops, and which classes a tile meets in a pass, only the device knows; passes declare."""
        return None

    def notes(self) -> dict[str, Any]:
        assert self.tree
        return {
            "split_nodes": self.tree.nodes, "words": self.tree.words, **summary(self.reports),
            "residual": self.data.residual(self.tree.points),
        }  # fmt: skip


class SourceNodeByNode(_Build):
    """As the patent has it, every node alone: classify, sum, new centres on the host; children back to the queues."""

    name, title, rung = "source_node_by_node", "two kernels, the host merges after each; every node alone", 1
    settings: ClassVar = {"two_kernels": True, "resident": False, "batch": 1}


class SourceBatched(_Build):
    """Three queues: fragments go together."""

    name, title, rung = "source_batched", "the same, fragments batched: three queues", 2
    settings: ClassVar = {"two_kernels": True, "resident": False}


class SourceStreamed(_Build):
    """A device memory of a quarter of the data unless the problem limits it: chunks, reversed traversal."""

    name, title, rung = (
        "source_streamed",
        "the same, large nodes in chunks, two halves of the memory, reversed traversal",
        3,
    )
    limited = True
    settings: ClassVar = {"two_kernels": True, "resident": False}


class SourceStreamedForward(_Build):
    """The same, every pass from the first chunk to the last."""

    name, title, role, rung = "source_streamed_forward", "the same, no reversed traversal", "control", 4
    limited = True
    settings: ClassVar = {"two_kernels": True, "resident": False, "kept": 0}


class NodeByNode(_Build):
    """Every node is sent, split and brought back alone, by one kernel; new centres are made on the device."""

    name, title, role, rung = (
        "node_by_node",
        "one pass for both kernels, centres made on the device; node by node",
        "beyond",
        6,
    )
    source = BEYOND
    settings: ClassVar = {"batch": 1, "resident": False}


class Batched(_Build):
    """Fragments go together."""

    name, title, role, rung = (
        "batched",
        "one pass for both kernels, centres made on the device; fragments batched",
        "beyond",
        7,
    )
    source = BEYOND
    settings: ClassVar = {"resident": False}


class Streamed(_Build):
    """Points in rows, in the traversal of the source; what is on the device stays there, down to the leaves."""

    name, title, role, rung = (
        "streamed",
        "one pass, subtrees on the device; large nodes in chunks as the source has them",
        "beyond",
        8,
    )
    source = BEYOND
    limited = True


class StreamedForward(_Build):
    """The same, every pass from the first chunk to the last."""

    name, title, role, rung = (
        "streamed_forward",
        "one pass, subtrees on the device; no reversed traversal",
        "control",
        9,
    )
    limited = True
    settings: ClassVar = {"kept": 0}


class StreamedBoth(_Build):
    """Both halves, or all of more parts, serve the next pass."""

    name, title, role, rung = "streamed_both", "chunks, all parts of the memory kept for the next pass", "beyond", 10
    source = BEYOND
    tunables: ClassVar[dict[str, Tunable]] = {**_Build.tunables, "places": Tunable(2, PLACES, "parts of the memory")}
    limited = True


class ResidentTree(_Build):
    """What is on the device stays there, down to the leaves; all nodes of a level in one launch."""

    name, title, role, rung = "resident", "whole subtrees on the device, all nodes of a level at once", "beyond", 11
    source = BEYOND


class _SeveralDevices(_Build):
    """A process for each of several devices of this kind; all of them split what is more than a device's share."""

    tunables: ClassVar[dict[str, Tunable]] = {**_Build.tunables, "devices": Tunable(2, (1, 2, 4, 8), "devices")}

    def open(self, setup: Setup) -> None:
        Kernels(setup.device, setup.kernel, self.chosen, self.of_pass(setup.device.info))
        self.workers, self.own, self.wanted = [], setup.device.info, setup.tunables["devices"]

    def launch(self) -> None:
        if not self.workers:
            self._start()
        super().launch()

    def _start(self) -> None:
        """Start the processes, at the first execution; they stay."""
        own, wanted = self.own, self.wanted
        alike = [info for info in discover() if info.healthy and (info.backend, info.kind) == (own.backend, own.kind)]
        infos = sorted(alike, key=lambda info: info.id != own.id)[:wanted]
        if len(infos) < wanted or infos[0].id != own.id:
            raise UnsupportedError(f"devices: {wanted} like {own.id} wanted, there are {len(alike)}")
        self.workers = [ProcessWorker(info, self.chosen, self.of_pass(info)) for info in infos]
        shared = SharedPoints(self.data.points.shape)
        weakref.finalize(self, _close, self.workers, shared)
        shared.array[:] = self.data.points
        self.points = shared

    def rest(self) -> None:
        """Each process has its device's memory for itself."""

    def notes(self) -> dict[str, Any]:
        return {**super().notes(), "devices": [worker.name for worker in self.workers]}


class SourceDevices(_SeveralDevices):
    """Devices take nodes in turn, and chunks of what is more than a device's share."""

    name, title, rung = "source_devices", "the same by several devices, one process for each", 5
    settings: ClassVar = {"two_kernels": True, "resident": False}


class SeveralDevices(_SeveralDevices):
    """Each device keeps the subtrees that it has begun."""

    name, title, role, rung = "several_devices", "resident, by several devices, one process for each", "beyond", 12
    source = BEYOND
    tunables: ClassVar[dict[str, Tunable]] = {
        **_SeveralDevices.tunables, "places": Tunable(8, PLACES, "parts of the memory"),
    }  # fmt: skip
