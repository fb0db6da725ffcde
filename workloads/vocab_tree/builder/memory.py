"""What a build may hold in a device's memory: how many points and nodes at a time."""

from __future__ import annotations

from dataclasses import dataclass

from perfport.workload import UsageError

from .. import fixed_point

LEAST_CHUNK = 32  # points; all chunks but the last of a node are multiples of it
SCATTER_TILE = 1024  # points of a work-group that moves points
MARGIN = 4096  # bytes for what is small: counters, tables of a few tiles


@dataclass(frozen=True)
class Plan:
    """Sizes that fit a device.

    Attributes
    ----------
    chunk : int
        Points of a chunk.
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


def _point_bytes(clusters: int, dims: int, places: int) -> tuple[int, int]:
    """Bytes of a point in a chunk (a row in each place; label, number, order, tables of tiles), and resident (rows and
    order twice, tables of tiles)."""
    return places * dims + 11 + 4 * clusters // SCATTER_TILE, 2 * dims + 14 + 32 * clusters // SCATTER_TILE


def least(clusters: int, dims: int, places: int = 2) -> int:
    """Return the bytes that a build needs."""
    return LEAST_CHUNK * max(_point_bytes(clusters, dims, places)) + 2 * node_bytes(clusters, dims) + MARGIN


def plan(limit: int, clusters: int, dims: int, batch: int, places: int = 2) -> Plan:
    """Return what fits ``limit`` bytes, with at most ``batch`` nodes to a launch and so many ``places`` for chunks.

    Raises
    ------
    UsageError
        If not even a chunk of `LEAST_CHUNK` points does.
    """
    node, (in_chunk, resident) = node_bytes(clusters, dims), _point_bytes(clusters, dims, places)
    if limit < (needed := least(clusters, dims, places)):
        raise UsageError(
            f"memory_limit: expected at least {needed} bytes, for chunks of {LEAST_CHUNK} points, got {limit}"
        )
    nodes = max(1, min(batch, (limit - MARGIN) // 8 // node))
    left = limit - MARGIN - node * nodes
    chunk = min(left // in_chunk, fixed_point.POINTS_LIMIT) // LEAST_CHUNK * LEAST_CHUNK
    points = min(left // resident, fixed_point.POINTS_LIMIT) // LEAST_CHUNK * LEAST_CHUNK
    return Plan(chunk, points, nodes)
