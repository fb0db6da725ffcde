"""One pass over the points of one or many nodes: which kernel does it, in which shape, and what that costs.

All of them take the same buffers: points, tiles, centres, halves, moving; labels, sums, counts.
"""

from __future__ import annotations

from typing import Any

from perfport.workload import DeviceInfo

from .base import Loader, Pass, tiles
from .fused import FusedPass
from .pruned import PrunedPass
from .tensor_core import MatrixAtomicsPass, MatrixPass
from .tiled import TiledPass
from .two_kernels import RUN, TwoKernelPass, interleave

__all__ = [
    "RUN", "FusedPass", "Loader", "MatrixAtomicsPass", "MatrixPass", "Pass", "PrunedPass", "TiledPass",
    "TwoKernelPass", "defaults", "interleave", "suited", "tiles",
]  # fmt: skip


def suited(info: DeviceInfo, clusters: int, two_kernels: bool = False) -> type[Pass]:
    """Return the kernel that a build uses on a device; the source's two where these are wanted."""
    if two_kernels:
        return TwoKernelPass
    if info.kind == "cpu" and "opencl" in info.capabilities:
        return TiledPass
    if {"ptx", "mma"} <= set(info.capabilities):
        return MatrixPass if clusters <= MatrixPass.CLUSTERS else MatrixAtomicsPass
    return FusedPass


def defaults(info: DeviceInfo, clusters: int, two_kernels: bool = False) -> dict[str, Any]:
    """Return the tunables of that kernel."""
    kind = suited(info, clusters, two_kernels)
    return {name: tunable.default_for(info) for name, tunable in kind.TUNABLES.items()}
