"""Tables as kernels read them: records whose fields have the names that the kernels' structs have."""

from __future__ import annotations

import numpy as np

from perfport.workload import ceil_div

from ..cascade import Cascade
from ..pyramid import Level, Pyramid

#: A level of the pyramid, as in kernels/level.cl.
LEVEL = np.dtype(
    [
        ("place", "<u4"), ("width", "<u4"), ("height", "<u4"), ("columns", "<u4"), ("step", "<u4"),
        ("first_window", "<u4"), ("columns_multiplier", "<u4"), ("columns_shift", "<u4"), ("first_row", "<u4"),
        ("first_piece", "<u4"), ("column_table", "<u4"), ("row_table", "<u4"), ("rows", "<u4"), ("scale", "<f4"),
        ("first_tile", "<u4"),
    ]
)  # fmt: skip
_RECTANGLES = [("rectangles", "<i4", (3, 4)), ("weights", "<i4", 3), ("threshold", "<f4")]
_STUMP = [("leaves", "<i8", 2)]  # below the threshold, and otherwise
_TREE = [("left", "<i4"), ("right", "<i4"), ("first_leaf", "<i4"), ("unused", "<i4")]
_REST = [("tilted", "<i4"), ("padding", "<i4", 3)]
#: Two rectangles and the third, weights (the fourth is padding): as in kernels/node_packed.cl.
PACKED_NODE = np.dtype(
    [("corners", "<u2", (2, 4)), ("rest", [("corners", "<u2", 4), ("weights", "i1", 4), ("threshold", "<f4")])]
)
#: What an instrumented build counts for each work-group, as in kernels/counts.cl.
TALLY = np.dtype([("features", "<u4"), ("slots", "<u4"), ("windows", "<u4"), ("batches", "<u4")])


def node_type(stumps: bool, offsets: bool) -> np.dtype:
    """Return a node as in kernels/node_offsets.cl or kernels/node_coordinates.cl."""
    if stumps and offsets:
        return np.dtype(_RECTANGLES + _STUMP)
    return np.dtype(_RECTANGLES + (_STUMP if stumps else _TREE) + _REST)


def nodes(cascade: Cascade, corners: np.ndarray | None = None) -> np.ndarray:
    """Lay out the nodes of a cascade, shape (nodes,).

    Parameters
    ----------
    corners : int32, shape (nodes, 3, 4), optional
        Offsets of the rectangles' corners (`Cascade.offsets`), in place of their coordinates.
    """
    table = np.zeros(cascade.nodes, node_type(cascade.stumps, corners is not None))
    table["rectangles"] = cascade.rectangles if corners is None else corners
    table["weights"], table["threshold"] = cascade.weights, cascade.threshold
    if cascade.stumps:
        table["leaves"] = _stump_leaves(cascade)
    else:
        table["left"], table["right"] = cascade.children.T
        trees = np.repeat(np.arange(len(cascade.tree_first) - 1), np.diff(cascade.tree_first))
        table["first_leaf"] = cascade.tree_first[trees] + trees
    if "tilted" in (table.dtype.names or ()):
        table["tilted"] = cascade.tilted
    return table


def packed_nodes(cascade: Cascade, corners: np.ndarray) -> np.ndarray | None:
    """Lay out stumps in 32 bytes each, shape (nodes,); None where offsets or weights are too large for it."""
    if not cascade.stumps or corners.min() < 0 or corners.max() > 0xFFFF or np.abs(cascade.weights).max() > 127:
        return None
    table = np.zeros(cascade.nodes, PACKED_NODE)
    table["corners"], table["rest"]["corners"] = corners[:, :2], corners[:, 2]
    table["rest"]["weights"][:, :3], table["rest"]["threshold"] = cascade.weights, cascade.threshold
    return table


def gains(cascade: Cascade) -> tuple[np.ndarray, np.ndarray]:
    """Return what a stump below its threshold adds to the sum over a stage if the other leaf counts as 0.

    Returns
    -------
    gains : int64, shape (nodes,)
    thresholds : int64, shape (stages,)
        Of the stages, for such sums.
    """
    below, otherwise = _stump_leaves(cascade).T
    return below - otherwise, cascade.stage_threshold - np.add.reduceat(otherwise, cascade.stage_first[:-1])


def _stump_leaves(cascade: Cascade) -> np.ndarray:
    """Leaves of each stump below its threshold and otherwise, int64, shape (nodes, 2)."""
    return cascade.leaves[2 * np.arange(cascade.nodes)[:, None] - cascade.children]


def division(divisor: int) -> tuple[int, int]:
    """Return multiplier and shift with n // divisor == (n * multiplier >> 32) >> shift for n < 2^31, divisor > 1."""
    if divisor == 1:
        return 0, 0  # kernels do not divide by 1
    bits = (divisor - 1).bit_length()
    return (1 << (31 + bits)) // divisor + 1, bits - 1


def pieces(level: Level, strip: int) -> int:
    """Return how many pieces of ``strip`` rows the columns of a level's integral image have."""
    return (level.width + 1) * ceil_div(level.height, strip)


def level_table(pyramid: Pyramid, strip: int, tile: int) -> np.ndarray:
    """Lay out the levels, `LEVEL`, shape (levels,): pieces of ``strip`` rows, tiles of ``tile`` x ``tile`` windows."""
    levels = pyramid.levels
    table = np.zeros(len(levels), LEVEL)
    for name in ("width", "height", "columns", "rows", "step", "scale"):
        table[name] = [getattr(level, name) for level in levels]
    table["place"] = [level.y * pyramid.pitch + level.x for level in levels]
    table["first_window"] = [level.first for level in levels]
    table["first_row"] = [level.row for level in levels]
    table["columns_multiplier"], table["columns_shift"] = zip(
        *(division(level.columns) for level in levels), strict=True
    )
    table["first_piece"] = _before([pieces(level, strip) for level in levels])
    table["first_tile"] = _before([level.tiles(tile) for level in levels])
    table["column_table"] = _before([level.width + level.height for level in levels])
    table["row_table"] = table["column_table"] + table["width"]
    return table


def _before(counts: list[int]) -> np.ndarray:
    """Sum up what stands before each element."""
    return np.cumsum([0, *counts[:-1]])
