"""Reference detector in NumPy: the same integers and the same FP32 comparisons as the kernels, in plain form."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from perfport.workload import ceil_div, usable_cores

from .cascade import Cascade
from .pyramid import Pyramid, reduced

KEPT_FRAMES = 8
BLOCK = 1 << 14  # windows evaluated at a time: their sums stay in a core's cache
LEFT_OUT = -1  # outcome of a window that is not evaluated


@dataclass
class Counts:
    """What evaluating windows took.

    Attributes
    ----------
    windows : int
    entered : int64, shape (stages + 1,)
        Windows that entered each stage; the last entry counts those that passed all.
    nodes, rectangles, corners : int64, shape (stages,)
        Features evaluated, their rectangles and the different corners of these, by stage.
    """

    windows: int
    entered: np.ndarray
    nodes: np.ndarray
    rectangles: np.ndarray
    corners: np.ndarray

    @staticmethod
    def zero(stages: int) -> Counts:
        """No windows."""
        return Counts(0, np.zeros(stages + 1, np.int64), *np.zeros((3, stages), np.int64))

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.windows + other.windows, self.entered + other.entered,
            self.nodes + other.nodes, self.rectangles + other.rectangles, self.corners + other.corners,
        )  # fmt: skip


def integrals(image: np.ndarray, tilted: bool) -> np.ndarray:
    """Return integral images of pixels, of their squares and, if asked for, of pixels in tilted rectangles.

    Sums are modulo 2^32; differences that are less than 2^32 are right nevertheless.

    Returns
    -------
    array of uint32, shape (2 or 3, height + 1, width + 1)
        ``[2, y, x]`` sums the pixels (i, j) with j < y and |i - x + 1| <= y - 1 - j.
    """
    height, width = image.shape
    out = np.zeros((2 + tilted, height + 1, width + 1), np.uint32)
    pixels = image.astype(np.uint32)
    for plane, values in zip(out, (pixels, pixels * pixels), strict=False):
        np.cumsum(np.cumsum(values, axis=0, dtype=np.uint32), axis=1, dtype=np.uint32, out=plane[1:, 1:])
    if tilted:
        rows = np.zeros((height, width + 1), np.uint32)
        np.cumsum(pixels, axis=1, dtype=np.uint32, out=rows[:, 1:])
        # A row's share of the triangle widens by one pixel on both sides from line to line.
        right, left = np.zeros((2, width + 1), np.uint32)
        ends = np.arange(width + 1)
        wider, narrower = np.minimum(ends + 1, width), np.maximum(ends - 1, 0)
        # right[x] sums rows[j][min(x + k, width)], left[x] rows[j][max(x - 1 - k, 0)], k = y - 1 - j
        for y in range(height):
            # Column `width` collects what lies beyond the right edge: there every row counts whole.
            right, left = right[wider] + rows[y], np.where(ends > 0, left[narrower], 0) + rows[y][narrower]
            out[2, y + 1] = right - left
    return out


class _Evaluation:
    """A cascade on the integral images of one frame; windows are given by the places of their corners in these."""

    def __init__(self, cascade: Cascade, pyramid: Pyramid, image: np.ndarray, threads: ThreadPoolExecutor) -> None:
        self.cascade = cascade
        tilted = bool(cascade.tilted.any())
        # Levels below each other, so that a feature's corners are as far apart on all of them. Not the atlas of the
        # kernels: a fault in that would go unseen.
        pitch = max(level.width for level in pyramid.levels) + 1
        lines = sum(level.height + 1 for level in pyramid.levels)
        sums = np.zeros((2 + tilted, lines, pitch), np.uint32)
        self.windows = np.empty(pyramid.windows, np.int64)
        line = 0
        levels = threads.map(lambda level: integrals(reduced(image, level), tilted), pyramid.levels)
        for level, planes in zip(pyramid.levels, levels, strict=True):
            sums[:, line : line + level.height + 1, : level.width + 1] = planes
            row, column = np.divmod(np.arange(level.windows), level.columns)
            place = (line + row * level.step) * pitch + column * level.step
            self.windows[level.first : level.first + level.windows] = place
            line += level.height + 1
        self.plane = lines * pitch
        self.words = sums.reshape(-1)
        x, y, w, h = cascade.normalisation
        self.frame = _corners(y * pitch + x + np.array([[0, w, h * pitch, h * pitch + w]]), np.ones(1, int))
        offsets, used = cascade.offsets(pitch, 2 * self.plane), cascade.weights != 0
        self.corners = [
            _corners(of_node[own], weights[own])
            for of_node, weights, own in zip(offsets, cascade.weights, used, strict=True)
        ]
        #: Of each node: itself, its rectangles, their different corners.
        self.taken = np.array(
            [(1, own.sum(), len(different)) for own, different in zip(used, self.corners, strict=True)]
        )

    def total(self, at: np.ndarray, corners: list[tuple[int, np.uint32]]) -> np.ndarray:
        """Weighted sum of rectangles modulo 2^32, uint32."""
        total = np.zeros(len(at), np.uint32)
        for offset, weight in corners:
            term = self.words[offset:].take(at, mode="wrap")  # none is outside; the default mode looks first
            term *= weight
            total += term
        return total

    def normalise(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the factor of the windows' features, and whether their variance is large enough."""
        pixel_sum, square_sum = (self.total(at + plane, self.frame).astype(np.int64) for plane in (0, self.plane))
        variance = self.cascade.area * square_sum - pixel_sum * pixel_sum  # times the square of the area
        norm = (1.0 / np.sqrt(np.maximum(variance, 1).astype(np.float64))).astype(np.float32)
        return norm, (variance > 0) & (self.cascade.area * norm.astype(np.float64) < 0.1)

    def votes(self, tree: int, node: int, at: np.ndarray, norm: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """Return where a tree leads from a node, int64; add up what it takes."""
        cascade = self.cascade
        root = cascade.tree_first[tree]
        taken += len(at) * self.taken[node]
        below = self.total(at, self.corners[node]).view(np.int32).astype(np.float32) * norm < cascade.threshold[node]
        children = cascade.children[node]
        low, high = (0 if child > 0 else cascade.leaves[root + tree - child] for child in children)
        votes = high + below * (low - high)
        for child, here in zip(children, (below, ~below), strict=True):
            if child > 0:
                votes[here] = self.votes(tree, root + child, at[here], norm[here], taken)
        return votes

    def passes(self, stage: int, at: np.ndarray, norm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which windows pass a stage, and how many features, rectangles and corners that takes."""
        cascade, votes = self.cascade, np.zeros(len(at), np.int64)
        taken = np.zeros(3, np.int64)
        for tree in range(cascade.stage_first[stage], cascade.stage_first[stage + 1]):
            votes += self.votes(tree, cascade.tree_first[tree], at, norm, taken)
        return votes >= cascade.stage_threshold[stage], taken


def _corners(offsets: np.ndarray, weights: np.ndarray) -> list[tuple[int, np.uint32]]:
    """Return the different corners of rectangles, by their offsets (rectangles, 4), and their weights modulo 2^32."""
    different, which = np.unique(offsets, return_inverse=True)
    total = np.zeros(len(different), np.int64)
    np.add.at(total, which.reshape(offsets.shape), np.array([1, -1, -1, 1]) * weights[:, None])
    return list(zip(different.tolist(), total.astype(np.uint32), strict=True))


def outcomes(cascade: Cascade, pyramid: Pyramid, image: np.ndarray, flat: bool = False) -> tuple[np.ndarray, Counts]:
    """Evaluate the windows of a frame, uint8, shape (height, width), whose variance is large enough.

    ``flat``: evaluate the others in their place; OpenCV's OpenCL kernel does both.

    Returns
    -------
    outcome : int16, shape (windows,)
        `LEFT_OUT`, the stage that the window failed, or the number of stages.
    counts : Counts
    """
    with ThreadPoolExecutor(usable_cores()) as threads:  # what takes time releases the interpreter's lock
        evaluation = _Evaluation(cascade, pyramid, image, threads)
        windows, counts = evaluation.windows, Counts.zero(cascade.stages)
        counts.windows = len(windows)
        outcome = np.full(len(windows), LEFT_OUT, np.int16)
        parts = zip(*threads.map(evaluation.normalise, _blocks(windows)), strict=True)
        norm, textured = (np.concatenate(part) for part in parts)
        live = np.flatnonzero(textured != flat)
        for stage in range(cascade.stages):
            counts.entered[stage] = len(live)
            blocks = _blocks(live)
            done = list(threads.map(lambda at, stage=stage: evaluation.passes(stage, windows[at], norm[at]), blocks))
            passing = np.concatenate([np.empty(0, bool), *(passed for passed, _ in done)])
            for _, taken in done:
                for count, more in zip((counts.nodes, counts.rectangles, counts.corners), taken, strict=True):
                    count[stage] += more
            outcome[live[~passing]] = stage
            live = live[passing]
    outcome[live] = cascade.stages
    counts.entered[cascade.stages] = len(live)
    return outcome, counts


def _blocks(values: np.ndarray) -> Iterator[np.ndarray]:
    return (values[first : first + BLOCK] for first in range(0, len(values), BLOCK))


#: Outcomes and counts by digest of cascade, pyramid and frame, the oldest first.
_kept: dict[bytes, tuple[np.ndarray, Counts]] = {}


@dataclass
class Detection:
    """Windows of some frames that pass the cascade.

    Attributes
    ----------
    windows : int64, shape (passing,)
        Ascending numbers; frame f begins at f times the windows of a frame.
    outcome : int16, shape (windows of all frames,)
        `LEFT_OUT`, the stage that a window failed, or the number of stages.
    counts : Counts
    """

    windows: np.ndarray
    outcome: np.ndarray
    counts: Counts


def detect(cascade: Cascade, pyramid: Pyramid, frames: np.ndarray, flat: bool = False) -> Detection:
    """Evaluate windows of some frames, uint8, shape (frames, height, width); ``flat`` as in `outcomes`."""
    evaluated = _evaluated(cascade, pyramid, frames, flat)
    outcome = np.concatenate([of_frame for of_frame, _ in evaluated])
    counts = sum((counts for _, counts in evaluated), Counts.zero(cascade.stages))
    return Detection(np.flatnonzero(outcome == cascade.stages), outcome, counts)


def _evaluated(
    cascade: Cascade, pyramid: Pyramid, frames: np.ndarray, flat: bool = False
) -> list[tuple[np.ndarray, Counts]]:
    """Return outcome and counts of each frame.

    Equal frames are evaluated once, and the results of the last few calls are kept: experiments ask again and again.
    """
    digest = hashlib.sha256(pickle.dumps((cascade, pyramid, flat)))
    keys = [hashlib.sha256(digest.digest() + frame.tobytes()).digest() for frame in frames]
    for key, frame in zip(keys, frames, strict=True):
        if key not in _kept:
            _kept[key] = outcomes(cascade, pyramid, frame, flat)
    evaluated = [_kept[key] for key in keys]
    for key in list(_kept)[: -max(KEPT_FRAMES, len(keys))]:
        del _kept[key]
    return evaluated


def opencv_visits(cascade: Cascade, pyramid: Pyramid, outcome: np.ndarray) -> np.ndarray:
    """Return the numbers of the windows that pass and that OpenCV's CPU detector visits.

    Of a frame's ``outcome``, shape (windows,), for the step rule ``opencv``. It leaves out the right neighbour of a
    window that fails in the first stage. It also splits the rows of a level into stripes, which for some heights do not
    reach the last row.
    """
    stripes = ceil_div(pyramid.levels[0].width - pyramid.window[0] + 1, 32)
    visited = []
    for level in pyramid.levels:
        grid = outcome[level.first : level.first + level.windows].reshape(level.rows, level.columns)
        height = level.height - pyramid.window[1] + 1
        stripe = max((height // level.step + stripes - 1) // stripes, 1) * level.step
        grid = grid[: ceil_div(min(stripes * stripe, height), level.step)]
        skipped = np.zeros(len(grid), bool)
        passing = np.zeros(grid.shape, bool)
        for column in range(level.columns):
            here = grid[:, column]
            passing[:, column] = ~skipped & (here == cascade.stages)
            skipped = ~skipped & (here == 0)
        visited.append(level.first + np.flatnonzero(passing.ravel()))
    return np.concatenate(visited)
