"""Tables of the detector by vectors: records whose fields have the names that kernels/detect_vectors.cl has."""

from __future__ import annotations

import numpy as np

from perfport.workload import ceil_div, round_up

from ..cascade import Cascade
from . import layout
from .tile import TileImage

STAGE = np.dtype([("first", "<i4"), ("third", "<i4"), ("end", "<i4"), ("unused", "<i4"), ("threshold", "<i8")])


def vector_node(stumps: bool) -> np.dtype:
    """Return a node's record."""
    rest = [("gain", "<i8")] if stumps else [("left", "<i4"), ("right", "<i4")]
    return np.dtype([("corners", "<i4", 12), ("weights", "<i4", 3), ("threshold", "<f4"), *rest])


def image(side: int, step: int, cascade: Cascade, tilted: bool) -> TileImage:
    """Lay out a tile's image for windows up to ``step`` pixels apart, lines by whole vectors of 8 words."""
    reach = (side - 1) * step + 1
    words, lines = reach + cascade.width, reach + cascade.height
    half = round_up(ceil_div(words, 2), 8) if step == 2 else 0
    return TileImage(side, round_up(half + words // 2 if half else words, 8), lines, half, 1 + tilted)


def order(cascade: Cascade) -> np.ndarray:
    """Return the nodes in the order of the table: of a stage's stumps those of three rectangles come last."""
    if not cascade.stumps:
        return np.arange(cascade.nodes)
    stage = np.repeat(np.arange(cascade.stages), np.diff(cascade.stage_first))
    return np.lexsort((cascade.weights[:, 2] != 0, stage))


def nodes(cascade: Cascade, of: TileImage) -> np.ndarray:
    """Lay out the nodes; where the image has halves a second time, for levels whose windows are 2 pixels apart."""
    halves = (0, of.half) if of.half else (0,)
    table = np.zeros((len(halves), cascade.nodes), vector_node(cascade.stumps))
    for row, half in zip(table, halves, strict=True):
        row["corners"] = cascade.offsets(of.row, of.row * of.lines, half).reshape(-1, 12)
    table["weights"], table["threshold"] = cascade.weights, cascade.threshold
    if cascade.stumps:
        table["gain"] = layout.gains(cascade)[0]
    else:
        children = np.where(cascade.children > 0, cascade.children, cascade.children - 1)
        table["left"], table["right"] = children.T
    return table[:, order(cascade)].ravel()


def stages(cascade: Cascade) -> np.ndarray:
    """Lay out the stages, `STAGE`, shape (stages,)."""
    table = np.zeros(cascade.stages, STAGE)
    table["first"], table["end"] = cascade.stage_first[:-1], cascade.stage_first[1:]
    table["third"], table["threshold"] = table["end"], cascade.stage_threshold
    if cascade.stumps:
        with_third = np.add.reduceat((cascade.weights[:, 2] != 0).astype(np.int32), cascade.stage_first[:-1])
        table["third"], table["threshold"] = table["end"] - with_third, layout.gains(cascade)[1]
    return table
