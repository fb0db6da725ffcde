"""Faces from the passing windows, found on the device by kernels/grouping.cl."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfport.workload import Setup, Traffic, UsageError, ceil_div

from .. import grouping
from ..problems import Faces
from . import inputs
from .detector import Passing
from .integrals import STRIP, probes

GROUP = 64  # work-items, and windows along each side of a tile of pairs
GROUP_WORDS = 6  # frame, windows, mean box
FACE_WORDS = 5  # frame, box
FIRST_READ = 1024  # faces that the first read takes along


class Groups:
    """A step: connected components of close windows, and the mean boxes of those that do not lie in a stronger one.

    Parameters
    ----------
    setup : Setup
    passing : Passing
    """

    def __init__(self, setup: Setup, passing: Passing) -> None:
        self.device = setup.device
        self.data: Faces = setup.problem
        capacity, pyramid = self.data.parameters.capacity, self.data.pyramid
        width, height = pyramid.window
        macros = {"WINDOW_WIDTH": width, "WINDOW_HEIGHT": height}
        names = ("boxes", "link", "add", "list", "keep")
        self.kernels = {name: setup.kernel("grouping.cl", name, **macros) for name in names}
        boxes, frames, parents = (setup.scratch(nbytes * capacity) for nbytes in (16, 4, 4))
        sums, groups = setup.scratch(20 * capacity), setup.scratch(4 + 4 * GROUP_WORDS * capacity)
        self.faces = setup.scratch(8 + 4 * FACE_WORDS * capacity)
        count = passing.count
        self.arguments: dict[str, tuple[Any, ...]] = {
            "boxes": (
                passing.numbers, count, np.uint32(capacity), inputs.levels(setup, setup.tunables[STRIP]),
                np.uint32(len(pyramid.levels)), np.uint32(pyramid.windows), boxes, frames, parents, sums, groups,
                self.faces,
            ),
            "link": (count, np.uint32(capacity), boxes, frames, parents),
            "add": (count, np.uint32(capacity), boxes, parents, sums),
            "list": (count, np.uint32(capacity), frames, sums, np.uint32(self.data.parameters.neighbours), groups),
            "keep": (count, groups, self.faces),
        }  # fmt: skip

    def launch(self) -> None:
        """Enqueue the passes; the device knows how many windows there are."""
        for name, kernel in self.kernels.items():
            self.device.launch(kernel, 8 * self.device.info.compute_units, GROUP, *self.arguments[name])

    def read(self) -> np.ndarray:
        """Read the faces back, int64, shape (faces, `FACE_WORDS`), in any order.

        Raises `UsageError` where more windows pass than the list holds.
        """
        capacity = self.data.parameters.capacity
        first = min(FIRST_READ, capacity)
        words = self.device.read(self.faces, np.int32, (2 + FACE_WORDS * first,))
        faces, windows = words[:2].view(np.uint32).tolist()
        if windows > capacity:
            raise UsageError(f"capacity: {windows} windows pass, the list holds {capacity}")
        if faces > first:
            words = self.device.read(self.faces, np.int32, (2 + FACE_WORDS * faces,))
        return words[2 : 2 + FACE_WORDS * faces].astype(np.int64).reshape(-1, FACE_WORDS)

    def traffic(self) -> Traffic:
        """Modelled; the atomic operations are those of one order of the pairs, others need a few more or fewer."""
        windows, pyramid = self.data.reference.windows, self.data.pyramid
        frame, inside = np.divmod(windows, pyramid.windows)
        n, atomics, in_frame = len(windows), 0, []
        for number in np.unique(frame):
            strong, operations = _united(pyramid.boxes(inside[frame == number]), self.data.parameters.neighbours)
            in_frame.append(strong)
            atomics += operations
        tiles = ceil_div(n, GROUP)
        loaded = tiles * (tiles + 1) / 2  # tiles of pairs
        searched = probes([level.windows for level in pyramid.levels]) / pyramid.windows
        compared = sum(size * (size - 1) / 2 for size in np.unique(frame, return_counts=True)[1].tolist())
        groups, faced = sum(in_frame), sum(size * (size - 1) for size in in_frame)  # pairs of groups of a frame
        return Traffic(
            flops=4.0 * n, integer_ops=n * (8 + 3 * searched) + 15 * compared + 8 * groups**2,
            global_read=n * (52 + 4 * searched) + 52 * loaded * min(n, GROUP) + 4 * groups**2 + 10 * faced,
            global_write=44.0 * n + 44 * groups,
            local_read=20 * compared, local_write=20 * loaded * min(n, GROUP),
            global_atomics=float(atomics + 5 * n + 2 * groups), local_atomics=2 * loaded * min(n, GROUP),
        )  # fmt: skip


def _united(boxes: np.ndarray, neighbours: int) -> tuple[int, int]:
    """Return how many groups of more than ``neighbours`` there are, and the atomic operations that find them."""
    start, end = grouping.close_pairs(boxes)
    pairs = np.unique(np.sort(np.stack([start, end], axis=1)[start != end], axis=1)[:, ::-1], axis=0)
    parents, operations = list(range(len(boxes))), 0

    def root(i: int) -> int:
        nonlocal operations
        at, operations = parents[i], operations + 2
        while parents[at] != at:
            parents[i], i, at = parents[at], at, parents[at]
            operations += 2
        return at

    row, known = (-1, -1), -1
    for i, j in pairs.tolist():
        if (i, j // GROUP) != row:
            row, known = (i, j // GROUP), i
        operations += 1
        if parents[j] != known:
            a, b = root(i), root(j)
            known = min(a, b)
            if a != b:
                parents[max(a, b)] = known
                operations += 1
    roots = np.array([root(i) for i in range(len(boxes))], np.int64)
    return int((np.bincount(roots) > neighbours).sum()), operations
