"""Modelled work on queues in local memory, stage by stage, from the windows' outcomes in the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfport.workload import ceil_div

from .configuration import SUMMED, Configuration
from .tile import BANKS


@dataclass
class QueueTraffic:
    """Bytes ``read`` and ``written``, windows ``added`` to queues, ``loads`` of nodes, ``steps``: stages of batches.

    ``wasted``: features evaluated for nothing, by stage, int64.
    """

    read: int = 0
    write: int = 0
    added: int = 0
    loads: int = 0
    steps: int = 0
    wasted: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass
class _Stage:
    """Queues of all batches ahead of a stage.

    ``filled``: windows waiting, shape (batches, columns of the queue); shape (batches,): whether columns are banks
    (``by_bank``), ``slots`` of a queue, work-items to a window (``lanes``) and windows at a time (``together``).
    """

    configuration: Configuration
    filled: np.ndarray
    by_bank: np.ndarray

    def __post_init__(self) -> None:
        group, columns = self.configuration.group, self.filled.shape[1]
        self.waiting = self.filled.sum(axis=1)
        self.slots = np.where(self.by_bank, columns * self.filled.max(axis=1), self.waiting)
        if self.configuration.together:
            self.lanes = np.full(len(self.filled), group // self.configuration.together)
        else:
            self.lanes = 2 ** np.floor(np.log2(group / np.clip(self.slots, 1, group))).astype(np.int64)
        self.together: Any = group // self.lanes

    def partial_sums(self) -> tuple[int, int]:
        """Bytes of partial sums read and written, where several work-items share a window."""
        rows = np.where(self.lanes > 1, ceil_div(self.slots, self.together), 0)  # of windows whose parts are added up
        first, last = np.maximum(self.lanes - SUMMED, 0), np.minimum(self.lanes, SUMMED) - 1
        parts = self.configuration.group + self.together * np.minimum(self.lanes, SUMMED)
        return int((8 * rows * self.together * (first + last)).sum()), int((8 * rows * parts).sum())

    def loading(self, packed: bool) -> tuple[int, int]:
        """Loads of a stump, and how often it is evaluated without a window."""
        if not self.configuration.shares_loads:
            return int(self.waiting.sum()), 0
        per_item, filled = self.configuration.per_item, self.filled
        wide = np.where(self.by_bank, filled.shape[1], 1)
        # Rows of windows at a time, and in a round; a batch where nothing waits has none.
        rows, step = self.together // wide, np.maximum(self.together * per_item // wide, 1)
        columns = np.where(self.by_bank[:, None], filled, 0)
        columns[:, 0] = np.where(self.by_bank, filled[:, 0], self.waiting)
        last = np.maximum(ceil_div(self.slots, self.together * per_item) - 1, 0)  # the rounds before it are full
        rest = np.clip(columns - (last * step)[:, None], 0, None)
        apart = packed & ((last + 1) * self.together * per_item - self.together >= self.slots)
        shared = np.minimum(rest, rows[:, None])
        full = np.minimum(columns, (last * step)[:, None])
        before = full // step[:, None] * rows[:, None] + np.minimum(full % step[:, None], rows[:, None])
        loads = before.sum(axis=1) + np.where(apart, rest.sum(axis=1), shared.sum(axis=1))
        served = full.sum(axis=1) + np.where(apart, 0, rest.sum(axis=1))
        evaluated = per_item * (before.sum(axis=1) + np.where(apart, 0, shared.sum(axis=1)))
        return int(loads.sum()), int((evaluated - served).sum()) * packed


def in_local_queue(configuration: Configuration, packed: bool) -> QueueTraffic:
    """Return the work on local queues; ``packed``: whether stumps are."""
    problem, group = configuration.problem, configuration.group
    outcome, trees = problem.reference.outcome, np.diff(problem.cascade.stage_first)
    late = np.flatnonzero(outcome >= configuration.single)
    columns, batches = BANKS if configuration.tile else 1, configuration.all_batches
    outcome, place = outcome[late], configuration.batch_of(late)
    if configuration.image:
        # A window waits in the column that is the bank of its first corner.
        level, x, y = problem.pyramid.locate(late % problem.pyramid.windows)
        step = np.array([level.step for level in problem.pyramid.levels])[level]
        side = configuration.tile * step  # pixels of the level
        place = place * columns + (y % side * configuration.image.row + x % side // step) % BANKS
    entry = 8 if configuration.tile else 12
    by_bank = np.full(batches, bool(configuration.tile))

    def counting(banks: np.ndarray) -> np.ndarray:
        """Bytes that a batch reads to learn how many windows wait."""
        return 4 * group * np.where(banks, columns, 1)

    total = QueueTraffic(int(counting(by_bank).sum()), 8 * columns * batches + entry * len(late), len(late))
    wasted = [0] * configuration.single
    for number in range(configuration.single, problem.cascade.stages):
        filled = np.bincount(place[outcome >= number], minlength=batches * columns).reshape(batches, columns)
        stage = _Stage(configuration, filled, by_bank)
        survivors, busy = int((outcome > number).sum()), stage.waiting > 0
        rounds = ceil_div(stage.slots, stage.together * configuration.per_item)
        loads, idle = stage.loading(packed)
        sums_read, sums_written = stage.partial_sums()
        next_by_bank = by_bank & (stage.waiting > configuration.by_bank)
        wasted.append(idle * int(trees[number]))
        total.loads += loads * int(trees[number])
        total.added, total.steps = total.added + survivors, total.steps + int(busy.sum())
        total.read += sums_read + int((entry * stage.lanes * stage.waiting + counting(next_by_bank) * busy).sum())
        total.read += int((4 * group * configuration.per_item * rounds * by_bank).sum())
        total.write += sums_written + 4 * columns * int(busy.sum()) + entry * survivors
        by_bank = next_by_bank
    total.read += 4 * len(problem.reference.windows)
    total.wasted = np.array(wasted)
    return total
