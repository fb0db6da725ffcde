"""Modelled work of the detector by vectors, from the windows' outcomes in the reference."""

from __future__ import annotations

import numpy as np

from perfport.workload import Traffic

from ..problems import Windows
from ..reference import LEFT_OUT
from . import stream_tables
from .integrals import probes
from .tile import TileImage


def vectors_by_stage(problem: Windows, vector: int) -> np.ndarray:
    """Return how many vectors of ``vector`` windows have one that enters a stage, int64, shape (stages,)."""
    frames = problem.reference.outcome.reshape(problem.frames, -1)
    furthest = []
    for level in problem.pyramid.levels:
        outcome = frames[:, level.first : level.first + level.windows].reshape(-1, level.columns)
        padded = np.pad(outcome, ((0, 0), (0, -level.columns % vector)), constant_values=LEFT_OUT)
        furthest.append(padded.reshape(-1, vector).max(axis=1))
    reached = np.bincount(np.concatenate(furthest) - LEFT_OUT, minlength=problem.cascade.stages + 2)
    return reached[::-1].cumsum()[::-1][1:-1]


def detection(problem: Windows, image: TileImage, vector: int) -> Traffic:
    """Return the work of tiles and vectors.

    A vector evaluates every node of a stage that one of its windows enters, for all its places. Of the words that it
    loads for sums of windows 2 pixels apart every second one is of no use.
    """
    cascade, windows = problem.cascade, problem.windows
    vectors, trees = vectors_by_stage(problem, vector), np.diff(cascade.stage_first)
    nodes = np.diff(cascade.tree_first[cascade.stage_first])
    of_node = 2 + (cascade.weights[:, 2] != 0)  # the second is taken though its weight may be 0
    rectangles = np.add.reduceat(of_node, cascade.tree_first[cascade.stage_first[:-1]])
    evaluated, summed = int((vectors * nodes).sum()), int((vectors * rectangles).sum())
    # Of a stump its gain is added, of other trees each leaf, or 0 in its place.
    added = evaluated if cascade.stumps else int((vectors * (nodes + trees)).sum())
    of_trees = 0 if cascade.stumps else 8 * int((vectors * trees).sum()) + 8 * added + 4 * (3 * evaluated - summed)
    passing, (staged, cleared) = int(problem.reference.counts.entered[-1]), _staged_bytes(problem, image)
    tiles = [level.tiles(image.side) for level in problem.pyramid.levels]
    placing = 4 * problem.frames * (6 * sum(tiles) + probes(tiles))
    apart = [level for level in problem.pyramid.levels if level.step == 2]
    unused = problem.frames * sum(level.rows * (level.columns - level.columns % vector) for level in apart)
    tables = 12 * evaluated + 20 * summed + of_trees + 20 * int(vectors.sum())
    return Traffic(
        flops=float(vector * evaluated),
        integer_ops=float(9 * windows + vector * (5 * summed - evaluated + 2 * added)),
        dram_read=float(stream_tables.nodes(cascade, image).nbytes), dram_write=4.0 * passing,
        global_read=float(placing + staged + 32 * (windows + unused) + tables),
        global_write=4.0 * passing, local_read=16.0 * vector * summed, local_write=float(staged + cleared),
        global_atomics=float(passing),
    )  # fmt: skip


def _staged_bytes(problem: Windows, image: TileImage) -> tuple[int, int]:
    """Bytes of the integral images that come into local memory, tile by tile; and those that are cleared before."""
    window = problem.pyramid.window
    staged = cleared = 0
    for level in problem.pyramid.levels:
        words, lines = (
            np.minimum(image.side, count - np.arange(0, count, image.side)) * level.step - level.step + length + 1
            for count, length in zip((level.columns, level.rows), window, strict=True)
        )
        staged += int(words.sum() * lines.sum())
        cleared += int(lines.sum()) * image.row * bool(level.columns % image.side)
    return 4 * problem.frames * image.planes * staged, 4 * problem.frames * image.planes * cleared
