"""What kernels for passes have in common.

All of them take the same buffers: points, tiles, centres, halves, moving; labels, sums, counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import (
    Buffer,
    Kernel,
    OpenDevice,
    Traffic,
    Tunable,
    UnsupportedError,
    ceil_div,
)

Loader = Callable[..., Kernel]  # (file, name, **macros)


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
    table = np.zeros((len(node), 4), np.uint32)
    table[:, 0], table[:, 1] = node, first[node] + number * length
    table[:, 2] = np.minimum(sizes[node] - number * length, length)
    return table


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

    def __init__(
        self, device: OpenDevice, loader: Loader, clusters: int, dims: int, tunables: Mapping[str, Any]
    ) -> None:
        self.device, self.clusters, self.dims, self.tunables = device, clusters, dims, tunables
        self.kernel = self.compile(loader)

    @abstractmethod
    def compile(self, loader: Loader) -> Kernel:
        """Choose the shape of launches and compile the kernel.

        Raises
        ------
        UnsupportedError
            If the kernel does not take so many clusters or dimensions, or the device has too little local memory.
        """

    def require_local(self, nbytes: int) -> int:
        """Return the bytes of local memory that a work-group takes, if the device has them."""
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

    def launch(self, number: int, *buffers: Buffer) -> None:
        """Enqueue ``number`` tiles; the buffers as the module says."""
        self.device.launch(self.kernel, number, self.group, *buffers, local_bytes=self.local_bytes)

    def classify(self, number: int, *buffers: Buffer) -> None:
        """Enqueue what makes labels; sums and counts mean nothing afterwards. The buffers as for `launch`."""
        self.launch(number, *buffers)

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


def through_dram(points: float, dims: int, nodes: float, clusters: int) -> dict[str, float]:
    """Return the bytes of points and centres that a pass reads, and of labels and sums that it writes."""
    return {
        "dram_read": points * dims + 2 * nodes * clusters * dims,
        "dram_write": points + 4 * nodes * clusters * (dims + 1),
    }
