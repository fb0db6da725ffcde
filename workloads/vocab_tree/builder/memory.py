"""What a build may hold in a device's memory: how many points and nodes at a time."""

from __future__ import annotations

from dataclasses import dataclass

from perfport.errors import UsageError

from .. import fixed_point

LEAST_CHUNK = 32  # points
SCATTER_TILE = 1024  # points of a work-group that moves points
MARGIN = 4096  # bytes for what is small: counters, tables of a few tiles


@dataclass(frozen=True)
class Plan:
    """Sizes that fit a device.

    Attributes
    ----------
    chunk : int
        Points of a chunk: less than half the memory holds one.
    points : int
        Points of nodes that are resident together.
    nodes : int
        Nodes of a launch.
    """

    chunk: int
    points: int
    nodes: int


def node_bytes(clusters: int, dims: int) -> int:
    """Bytes that a node takes besides its points: centres, halves, sums, counts, flags, chosen points."""
    return 6 * clusters * dims + 12 * clusters + 8


def _point_bytes(clusters: int, dims: int) -> tuple[int, int]:
    """Bytes of a point in a chunk (row, label, distance or order and its part of it, of half a chunk each; tables of
    tiles), and resident (rows and order twice, tables of tiles)."""
    return dims + 6 + 4 * clusters // SCATTER_TILE, 2 * dims + 14 + 32 * clusters // SCATTER_TILE


def least(clusters: int, dims: int) -> int:
    """Return the bytes that a build needs."""
    return 2 * LEAST_CHUNK * max(_point_bytes(clusters, dims)) + 2 * node_bytes(clusters, dims) + MARGIN


def plan(limit: int, clusters: int, dims: int, batch: int) -> Plan:
    """Return what fits ``limit`` bytes, with at most ``batch`` nodes to a launch.

    Raises
    ------
    UsageError
        If not even a chunk of `LEAST_CHUNK` points does.
    """
    node, (in_chunk, resident) = node_bytes(clusters, dims), _point_bytes(clusters, dims)
    if limit < (needed := least(clusters, dims)):
        raise UsageError(
            f"memory_limit: expected at least {needed} bytes, for chunks of {LEAST_CHUNK} points, got {limit}"
        )
    nodes = max(1, min(batch, (limit - MARGIN) // 8 // node))
    left = limit - MARGIN - node * nodes
    # Half of what is left, and a row less: a chunk takes less than half the memory.
    chunk = min((left - 1) // 2 // in_chunk, fixed_point.POINTS_LIMIT) // LEAST_CHUNK * LEAST_CHUNK
    return Plan(max(chunk, LEAST_CHUNK), min(left // resident, fixed_point.POINTS_LIMIT), nodes)
