"""Whole builds on one device, in the ways that the source and this suite go about it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from perfport.errors import UnsupportedError, UsageError
from perfport.work import Traffic
from perfport.workload import Setup, Tunable, Variant

from .. import passes, tree
from ..builder import memory
from ..builder.build import Build, Report
from ..builder.jobs import Settings
from ..builder.workers import LocalWorker, PrivatePoints
from ..problems import TreeBuild, residual_of_words

SOURCE = "CN105573834, host side"


def summary(report: Report) -> dict[str, Any]:
    """What a record keeps of a build."""
    return {name: value for name, value in asdict(report).items() if name != "seconds"}


class _Build(Variant):
    """Ranked by wall time: the host takes part."""

    problem = TreeBuild
    host_driven = True
    source = SOURCE
    tunables: ClassVar[dict[str, Tunable]] = {
        "threads": Tunable({"cpu": 2, "gpu": 8}, (1, 2, 4, 8, 16, 32), "host threads that prepare points"),
    }
    settings: ClassVar[dict[str, Any]] = {}
    limited: ClassVar[bool] = False

    def __init__(self, setup: Setup) -> None:
        self.data: TreeBuild = setup.problem
        p = self.data.parameters
        limit = self.data.memory_limit
        if self.limited and limit is None:
            limit = max(self.data.count * self.data.dims // 4, memory.least(p.clusters, p.dims))
        settings = Settings(
            p.clusters, p.levels, p.iterations, self.data.seed, p.dims, memory_limit=limit,
            threads=setup.tunables["threads"], **self.settings,
        )  # fmt: skip
        try:
            chosen = passes.defaults(setup.device.info, p.dims)
            self.worker = LocalWorker(setup.device, setup.kernel, settings, chosen)
        except UsageError as error:
            raise UnsupportedError(str(error)) from error
        pinned = setup.input("pinned points", self._pinned(setup))
        self.points, self.chosen = PrivatePoints(pinned), settings
        self.tree: tree.Tree | None = None
        self.report = Report()

    def _pinned(self, setup: Setup) -> Any:
        """The points in page-locked host memory, where the device has it: that is where a build starts."""

        def make() -> np.ndarray:
            memory = setup.device.pinned(self.data.points.nbytes).reshape(self.data.points.shape)
            memory[:] = self.data.points
            return memory

        return make

    def launch(self) -> None:
        build = Build(self.points, self.chosen, [self.worker])
        try:
            self.tree = build.run()
        finally:
            self.worker.inner.rest()  # other variants share the device
        self.report = build.report

    def results(self) -> dict[str, np.ndarray]:
        assert self.tree
        return self.tree.arrays()

    def traffic(self) -> Traffic | None:
        """None: what a build causes depends on the data in too many ways to be declared; its kernels' problems are."""
        return None

    def notes(self) -> dict[str, Any]:
        assert self.tree
        return {
            "split_nodes": self.tree.nodes, "words": self.tree.words, **summary(self.report),
            "residual": residual_of_words(self.data.points, self.tree.points),
        }  # fmt: skip


class NodeByNode(_Build):
    """Every node is sent, split and brought back alone."""

    name, title, rung = "node_by_node", "a launch per node, children back to the queues", 1
    settings: ClassVar = {"batch": 1, "resident": False}


class Batched(_Build):
    """Fragments go together."""

    name, title, rung = "batched", "fragments batched, children back to the queues", 2
    settings: ClassVar = {"resident": False}


class Streamed(_Build):
    """A device memory of a quarter of the data unless the problem limits it: chunks, reversed traversal."""

    name, title, rung = "streamed", "chunks in two halves of the memory, reversed traversal", 3
    limited = True


class StreamedForward(_Build):
    """The same, every pass from the first chunk to the last."""

    name, title, role, rung = "streamed_forward", "chunks, no reversed traversal", "control", 4
    limited = True
    settings: ClassVar = {"kept": 0}


class StreamedBoth(_Build):
    """Both halves serve the next pass."""

    name, title, role, rung = "streamed_both", "chunks, both halves kept for the next pass", "beyond", 5
    source = "beyond the source"
    limited = True
    settings: ClassVar = {"kept": 2}


class ResidentTree(_Build):
    """What is on the device stays there, down to the leaves; all nodes of a level in one launch."""

    name, title, role, rung = "resident", "whole subtrees on the device, all nodes of a level at once", "beyond", 6
    source = "beyond the source"
