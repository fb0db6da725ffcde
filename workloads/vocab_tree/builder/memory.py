"""What a build may hold in a device's memory: how many points and nodes at a time."""

from __future__ import annotations

from dataclasses import dataclass

from perfport.errors import UsageError

from .. import fixed_point

LEAST_CHUNK = 256  # points
SCATTER_TILE = 1024  # points of a work-group that moves points
MARGIN = 1 << 16  # bytes for what is small: tables of one node, counters


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


def plan(limit: int, clusters: int, dims: int, batch: int) -> Plan:
    """Return what fits ``limit`` bytes, with at most ``batch`` nodes to a launch.

    Raises
    ------
    UsageError
        If not even a chunk of `LEAST_CHUNK` points does.
    """
    node = node_bytes(clusters, dims)
    in_chunk = dims + 5  # label and distance
    resident = 2 * dims + 13 + 32 * clusters // SCATTER_TILE + 1  # both orders of points; tables of tiles
    least = 2 * LEAST_CHUNK * max(in_chunk, resident) + 2 * node + MARGIN
    if limit < least:
        raise UsageError(f"memory_limit: expected at least {least} bytes, for chunks of {LEAST_CHUNK} points, got {limit}")
    nodes = max(1, min(batch, (limit - MARGIN) // 8 // node))
    left = limit - MARGIN - node * nodes
    # Half of what is left, and a row less: a chunk takes less than half the memory.
    chunk = min((left - 1) // 2 // in_chunk, fixed_point.POINTS_LIMIT) // LEAST_CHUNK * LEAST_CHUNK
    return Plan(max(chunk, LEAST_CHUNK), min(left // resident, fixed_point.POINTS_LIMIT), nodes)
