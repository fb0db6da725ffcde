"""One pass over the points of one or many nodes: which kernel does it, in which shape, and what that costs.

All of them take the same buffers: points, tiles, centres, halves, moving; labels, sums, counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import (
    Buffer,
    DeviceInfo,
    Kernel,
    OpenDevice,
    Traffic,
    Tunable,
    UnsupportedError,
    ceil_div,
    round_up,
)

from . import fixed_point

Loader = Callable[..., Kernel]  # (file, name, **macros)
BLOCK = 8192  # points whose keys are computed at a time


def tiles(first: np.ndarray, sizes: np.ndarray, length: int) -> np.ndarray:
    """Cut nodes into runs of at most ``length`` points.

    Parameters
    ----------
    first, sizes : integer, (nodes,)
        First point and points of each node.
    length : int

    Returns
    -------
    uint32, (tiles, 4)
        Node, first point, points, 0; by node, then by point.
    """
    per_node = ceil_div(sizes, length)
    node = np.repeat(np.arange(len(sizes)), per_node)
    number = np.arange(len(node)) - np.repeat(np.cumsum(per_node) - per_node, per_node)
    found = np.zeros((len(node), 4), np.uint32)
    found[:, 0], found[:, 1] = node, first[node] + number * length
    found[:, 2] = np.minimum(sizes[node] - number * length, length)
    return found


class Pass(ABC):
    """A kernel for passes, compiled for a number of clusters and dimensions.

    Attributes
    ----------
    unit : int
        Points that a work-group takes at a time; a tile should be a multiple.
    """

    TUNABLES: ClassVar[dict[str, Tunable]] = {}
    unit: int
    group: int
    local_bytes: int = 0
    kernel: Kernel

    def __init__(self, device: OpenDevice, clusters: int, dims: int, tunables: Mapping[str, Any]) -> None:
        self.device, self.clusters, self.dims, self.tunables = device, clusters, dims, tunables

    def _require_local(self, nbytes: int) -> int:
        limit = self.device.info.local_memory_bytes
        if nbytes > limit:
            raise UnsupportedError(
                f"clusters: {self.clusters} of {self.dims} dimensions need {nbytes} bytes of local memory, "
                f"{self.device.info.id} has {limit}"
            )
        return nbytes

    def tile_points(self, points: int) -> int:
        """Return the length of tiles that give every compute unit as many work-groups as the tunables ask for."""
        groups = self.device.info.compute_units * int(self.tunables["groups_per_unit"])
        return max(1, ceil_div(points, groups * self.unit)) * self.unit

    def launch(self, number: int, *buffers: Buffer, queue: Any = None) -> None:
        """Enqueue ``number`` tiles; the buffers as the module says."""
        self.device.launch(self.kernel, number, self.group, *buffers, local_bytes=self.local_bytes, queue=queue)

    @abstractmethod
    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        """Return what a launch causes.

        Parameters
        ----------
        lengths : (tiles,)
            Points of each tile.
        counts : (tiles, clusters)
            Points of each class in each tile.
        """


def _through_dram(points: float, dims: int, nodes: float, clusters: int) -> dict[str, float]:
    return {
        "dram_read": points * dims + 2 * nodes * clusters * dims,
        "dram_write": points + 4 * nodes * clusters * (dims + 1),
    }


def _require_matrix_dims(dims: int) -> None:
    if dims % 32:
        raise UnsupportedError(f"dims: matrix units take 32 dimensions at a time, got {dims}")


class FusedPass(Pass):
    """``fused.cl``: rows in local memory, dot products of four bytes, sums by owners of dimensions."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (32, 64, 128, 256, 512), "work-items per work-group"),
        "points_each": Tunable(1, (1, 2, 4), "points that a work-item classifies at a time"),
        "centres_held": Tunable(10, (2, 4, 5, 8, 10, 16), "centres whose dot products a work-item holds, at most"),
        "sums": Tunable(1, (0, 1, 2), "0: an atomic per byte, 1: per two bytes, 2: lists by class"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 8}, (2, 4, 8, 16, 32), "work-groups per compute unit"),
    }

    def __init__(
        self, device: OpenDevice, loader: Loader, clusters: int, dims: int, tunables: Mapping[str, Any]
    ) -> None:
        super().__init__(device, clusters, dims, tunables)
        self.group, self.words = int(tunables["group"]), dims // 4
        self.unit, self.mode = self.group * int(tunables["points_each"]), int(tunables["sums"])
        self.held = max(n for n in range(1, int(tunables["centres_held"]) + 1) if clusters % n == 0)
        if self.group < self.words:
            raise UnsupportedError(f"group: expected at least a work-item per word of a point ({self.words})")
        if self.mode == 1 and self.unit > 257:
            raise UnsupportedError(f"sums: 16-bit halves hold 257 bytes; group x points_each is {self.unit}")
        if self.mode == 2 and clusters > 32:
            raise UnsupportedError(f"sums: registers hold lists of up to 32 classes, there are {clusters}")
        self.lanes = self.group // self.words
        extra = (0, 2 * clusters * self.words, clusters * self.unit // 2 + clusters)[self.mode]
        before = 2 * clusters * self.words + clusters * dims + 2 * clusters + self.unit + extra
        self.local_bytes = self._require_local(4 * (round_up(before, 4) + self.unit * (self.words + 4)))
        self.kernel = loader(
            "fused.cl", "pass", K=clusters, DIMS=dims, GROUP=self.group, POINTS=int(tunables["points_each"]),
            CENTRES=self.held, SUMS=self.mode,
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, words = self.clusters, float(self.dims), float(self.words)
        tiles_, points = len(lengths), float(lengths.sum())
        steps = float(ceil_div(lengths, self.unit).sum())
        classified = steps * self.unit  # work-items without a point of their own classify one again
        read = words / 4 * (k / self.held + 2 * k / int(self.tunables["points_each"]))  # 16-byte loads
        written = float((counts > 0).sum()) * (dims + 1)
        common = Traffic(
            integer_ops=classified * k * (16 * words + 3),
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + points * dims, global_write=points,
            local_read=classified * (16 * read + 4 * k) + 4 * tiles_ * k * (dims + 1),
            local_write=points * (dims + 4) + 4 * tiles_ * k * (2 * words + dims + 2),
            global_atomics=written, local_atomics=points,
            **_through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip
        common.local_read += 4 * float((counts > 0).sum())
        if self.mode == 2:
            rows = self._listed(lengths, counts)
            common.local_read += 4 * steps * k + 4 * steps * k * self.lanes * words + points * words * 6
            common.local_read += 4 * steps * k
            common.local_write += points * 2 + 8 * steps * k
            common.integer_ops += points * words * 5 + steps * k + rows * 7
            common.local_atomics += rows * 4
        elif self.mode == 1:
            halves = 2.0 * k * words
            common.local_read += points * words * 8 + 12 * steps * halves
            common.local_write += 4 * tiles_ * halves + 12 * steps * halves
            common.integer_ops += points * words * 3 + 4 * steps * halves
            common.local_atomics += points * words * 2
        else:
            common.local_read += points * words * 8
            common.integer_ops += points * words * 6
            common.local_atomics += points * dims
        return common

    def _listed(self, lengths: np.ndarray, counts: np.ndarray) -> float:
        """How often a work-item empties the halves of a class: once per held steps, where it has added to it."""
        held = 257 // ceil_div(self.unit, self.lanes)
        flushes = ceil_div(lengths, self.unit * held)
        return float((np.minimum(counts, self.lanes) * np.maximum(flushes, 1)[:, None]).sum()) * self.words


class PrunedPass(Pass):
    """``pruned.cl``: rows in registers, all centres by their upper bytes, exactly those that may be the nearest."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 32, "gpu": 512}, (32, 64, 128, 256, 512, 1024), "work-items per work-group"),
        "points_each": Tunable({"cpu": 1, "gpu": 2}, (1, 2, 4), "points whose rows a work-item holds"),
        "groups_per_unit": Tunable({"cpu": 4, "gpu": 1}, (1, 2, 4, 8), "work-groups per compute unit"),
    }
    KEPT = 8

    def __init__(
        self, device: OpenDevice, loader: Loader, clusters: int, dims: int, tunables: Mapping[str, Any]
    ) -> None:
        super().__init__(device, clusters, dims, tunables)
        self.group, self.points_each = int(tunables["group"]), int(tunables["points_each"])
        self.unit, self.kept = self.group * self.points_each, min(clusters, self.KEPT)
        words = dims // 4
        self.local_bytes = self._require_local(4 * (clusters * (2 * words + 4 + dims + 1 + 3) + 1))
        self.kernel = loader(
            "pruned.cl", "pass", K=clusters, DIMS=dims, GROUP=self.group, POINTS=self.points_each, KEPT=self.kept
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        """What a launch causes, but for the exact comparisons: `comparing`."""
        k, dims, words = self.clusters, float(self.dims), self.dims / 4
        tiles_, points = len(lengths), float(lengths.sum())
        whole, left = np.divmod(lengths, self.unit)
        items = float((whole * self.group + np.minimum(left, self.group)).sum())
        classified = items * self.points_each  # a work-item without another point classifies the last one again
        classes = float((counts > 0).sum())
        return Traffic(
            integer_ops=classified * k * (8 * words + 2) + points * (14 * words + 6) + 40 * tiles_ * k * words,
            flops=2 * points, special_ops=points + tiles_ * self.group,
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + classified * dims, global_write=points,
            local_read=items * k * (dims + 4) + tiles_ * 4 * (k * (dims + 1 + words) + self.group) + 4 * classes,
            local_write=4 * tiles_ * (k * (2 * words + dims + 4) + 1),
            global_atomics=classes * (dims + 1), local_atomics=points * (dims + 1) + tiles_ * k,
            **_through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip

    def compared(self, points: np.ndarray, centres: np.ndarray) -> tuple[float, float]:
        """Return how often points are compared exactly.

        Parameters
        ----------
        points : uint8, (count, dims)
        centres : uint16, (clusters, dims)
            Fixed point.

        Returns
        -------
        float
            Centres that are compared exactly, per point.
        float
            Share of points whose keys are all computed again.
        """
        shifted, squares = centres.astype(np.int64) + 128, np.square(points.astype(np.float32)).sum(axis=1)
        minus = -fixed_point.halves(centres).astype(np.int64)
        bases = (minus & ~255) | (255 - np.arange(self.clusters))
        farthest = np.sqrt(np.square((shifted & 255) - 128).sum(axis=1).max().astype(np.float32))
        found = np.empty(len(points), np.int64)
        for first in range(0, len(points), BLOCK):
            block = slice(first, first + BLOCK)
            keys = (
                256 * (points[block].astype(np.float32) @ (shifted >> 8).T.astype(np.float32)).astype(np.int64) + bases
            )
            bound = (np.sqrt(squares[block]) * farthest * np.float32(1.00001)).astype(np.int64) + 1
            found[block] = (keys >= (keys.max(axis=1) - 2 * bound - 510)[:, None]).sum(axis=1)
        again = (found >= self.kept) & (self.kept < self.clusters)
        return float(np.where(found == 1, 0, found).mean()), float(again.mean())

    def comparing(self, points: float, exactly: float, again: float) -> Traffic:
        """Return what comparisons cause, by what `compared` returns."""
        products = points * (exactly + again * self.clusters)
        return Traffic(integer_ops=products * (2 * self.dims + 2), local_read=products * (self.dims + 4))


class StreamPass(Pass):
    """``streams.cl``: one work-item to a group, vectors of 16 points."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "centres_held": Tunable(10, (2, 4, 5, 8, 10), "centres whose dot products are held at a time"),
        "groups_per_unit": Tunable(4, (1, 2, 4, 8, 16), "work-items per compute unit"),
        "ahead": Tunable(64, (16, 32, 64, 128), "points that are fetched ahead"),
        "vnni": Tunable(1, (0, 1), "use the processor's dot product of bytes, where the compiler takes it"),
    }
    unit = 16
    group = 1

    def __init__(
        self, device: OpenDevice, loader: Loader, clusters: int, dims: int, tunables: Mapping[str, Any]
    ) -> None:
        super().__init__(device, clusters, dims, tunables)
        self.held = min(int(tunables["centres_held"]), clusters)
        self.padded = round_up(clusters, self.held)
        self.vnni = bool(tunables["vnni"]) and "vnni" in device.info.capabilities
        self._require_local(6 * clusters * dims + 4 * (clusters + self.padded) + 2 * dims * self.padded)
        self.kernel = loader(
            "streams.cl", "pass", K=clusters, DIMS=dims, CENTRES=self.held, VNNI=int(self.vnni),
            AHEAD=int(tunables["ahead"]),
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, padded = self.clusters, float(self.dims), float(self.padded)
        tiles_, points = len(lengths), float(lengths.sum())
        blocks = float(ceil_div(lengths, 16).sum())
        flushes = float(ceil_div(lengths, 256).sum())
        return Traffic(
            integer_ops=blocks * 16 * padded * (2 * dims + 1) + 16 * blocks * 2 * dims * padded / self.held
            + points * (5 * dims / 4 + 1) + flushes * k * dims * 2,
            global_read=tiles_ * (k * (2 * dims + 4) + 20) + blocks * 16 * dims * padded / self.held + points * dims,
            global_write=points,
            local_read=blocks * padded * (2 * dims + 4) + points * (2 * dims + 4) + flushes * k * dims * 6
            + 4 * tiles_ * k * (dims + 1),
            local_write=tiles_ * (k * (6 * dims + 4) + padded * (2 * dims + 4)) + points * (2 * dims + 4)
            + flushes * k * dims * 6,
            global_atomics=float(tiles_) * k * (dims + 1), **_through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip


class MatrixPass(Pass):
    """``tensor_core.cu``: scores and sums as products on matrix units, for up to 16 clusters."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "warps": Tunable(4, (2, 4, 8, 16), "warps per work-group"),
        "stages": Tunable(2, (1, 2, 3, 4), "blocks of 32 points that a warp has in flight, at most"),
        "groups_per_unit": Tunable(8, (1, 2, 4, 8, 16), "work-groups per compute unit"),
    }
    ROW = 128
    CLUSTERS = 16

    def __init__(
        self, device: OpenDevice, loader: Loader, clusters: int, dims: int, tunables: Mapping[str, Any]
    ) -> None:
        super().__init__(device, clusters, dims, tunables)
        _require_matrix_dims(dims)
        if clusters > self.CLUSTERS:
            raise UnsupportedError(f"clusters: sums as products take up to {self.CLUSTERS}, got {clusters}")
        self.warps, stages = int(tunables["warps"]), int(tunables["stages"])
        self.group, self.unit = 32 * self.warps, 32 * self.warps
        self.padded = round_up(clusters, 8)
        fixed = 2 * self.padded * self.ROW + 4 * clusters * dims + 8 * self.padded + 32 * self.warps
        stage = self.warps * 32 * self.ROW
        while stages > 1 and fixed + stages * stage > device.info.local_memory_bytes:
            stages -= 1
        self.local_bytes = self._require_local(fixed + stages * stage)
        self.kernel = loader(
            "tensor_core.cu", "pass", K=clusters, DIMS=dims, WARPS=self.warps, STAGES=stages
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, padded = self.clusters, float(self.dims), float(self.padded)
        tiles_, points = len(lengths), float(lengths.sum())
        rows = 32 * float(ceil_div(lengths, 32).sum())
        warps = float(np.minimum(ceil_div(lengths, 32), self.warps).sum())
        return Traffic(
            integer_ops=rows * (padded * (4 * dims + 2) + 32 * dims), global_write=points,
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + rows * dims,
            global_atomics=float((counts > 0).sum()) * (dims + 1), local_atomics=warps * k * dims,
            local_read=rows * (2 * dims + padded * 2 * dims / 32 + padded / 8) + 4 * tiles_ * k * dims,
            local_write=rows * dims + tiles_ * (2 * padded * dims + 4 * k * dims),
            **_through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip


class MatrixAtomicsPass(Pass):
    """``tensor_core_atomics.cu``: scores as products on matrix units from rows in registers, sums by atomics."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "warps": Tunable(12, (4, 8, 12, 16, 20, 24), "warps per work-group"),
        "sharing": Tunable(4, (2, 4), "tiles of 16 points of a warp that share a load of centres"),
        "groups_per_unit": Tunable(1, (1, 2, 4, 8), "work-groups per compute unit"),
    }

    def __init__(
        self, device: OpenDevice, loader: Loader, clusters: int, dims: int, tunables: Mapping[str, Any]
    ) -> None:
        super().__init__(device, clusters, dims, tunables)
        _require_matrix_dims(dims)
        warps, sharing = int(tunables["warps"]), int(tunables["sharing"])
        self.group, self.block = 32 * warps, 16 * sharing
        self.unit = warps * self.block
        self.padded = round_up(clusters, 8)
        self.local_bytes = self._require_local(2 * self.padded * dims + 4 * clusters * (dims + 1) + 4 * self.padded)
        self.kernel = loader(
            "tensor_core_atomics.cu", "pass", K=clusters, DIMS=dims, WARPS=warps, SHARING=sharing
        )  # fmt: skip

    def traffic(self, lengths: np.ndarray, counts: np.ndarray) -> Traffic:
        k, dims, padded = self.clusters, float(self.dims), float(self.padded)
        tiles_, points = len(lengths), float(lengths.sum())
        rows = self.block * float(ceil_div(lengths, self.block).sum())
        return Traffic(
            integer_ops=rows * padded * (4 * dims + 2), global_write=points,
            global_read=tiles_ * (k * (2 * dims + 4) + 20 * self.group) + rows * dims,
            global_atomics=float((counts > 0).sum()) * (dims + 1), local_atomics=rows * dims + points,
            local_read=rows * padded * (2 * dims + 32) / self.block + 4 * tiles_ * k * (dims + 1),
            local_write=tiles_ * (padded * (2 * dims + 4) + 4 * k * (dims + 1)),
            **_through_dram(points, self.dims, tiles_, k),
        )  # fmt: skip


PassKind = type[FusedPass] | type[PrunedPass] | type[StreamPass] | type[MatrixPass] | type[MatrixAtomicsPass]


def suited(info: DeviceInfo, clusters: int, dims: int) -> PassKind:
    """Return the kernel that a build uses on a device."""
    if info.kind == "cpu" and "opencl" in info.capabilities:
        return StreamPass
    if {"cuda", "mma"} <= set(info.capabilities) and dims % 32 == 0:
        return MatrixPass if clusters <= MatrixPass.CLUSTERS else MatrixAtomicsPass
    return FusedPass


def defaults(info: DeviceInfo, clusters: int, dims: int) -> dict[str, Any]:
    """Return the tunables of that kernel."""
    return {name: tunable.default_for(info) for name, tunable in suited(info, clusters, dims).TUNABLES.items()}
