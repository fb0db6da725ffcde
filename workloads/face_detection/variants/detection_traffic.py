"""Modelled bytes and operations of a detection, from the windows' outcomes in the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfport.workload import Traffic

from .configuration import Configuration
from .inputs import Nodes
from .integrals import probes
from .queue_traffic import QueueTraffic, in_local_queue


@dataclass(frozen=True)
class Evaluated:
    """What is evaluated of the cascade."""

    nodes: int
    rectangles: int
    trees: int


class DetectionTraffic:
    """The model. An instrumented build confirms the counts that it rests on."""

    def __init__(self, configuration: Configuration, nodes: Nodes, in_constants: bool) -> None:
        self.configuration, self.use, self.problem = configuration, configuration.techniques, configuration.problem
        self.nodes, self.in_constants = nodes, in_constants
        self.counts, self.cascade = self.problem.reference.counts, self.problem.cascade
        trees = int((self.counts.entered[:-1] * np.diff(self.cascade.stage_first)).sum())
        self.needed = Evaluated(int(self.counts.nodes.sum()), int(self.counts.rectangles.sum()), trees)
        self.queue = QueueTraffic(wasted=np.zeros(self.cascade.stages, np.int64))
        if self.use.local_queue:
            self.queue = in_local_queue(configuration, nodes.packed)
        wasted = int(self.queue.wasted.sum())
        per_node = self.counts.rectangles / np.maximum(self.counts.nodes, 1)
        rectangles = self.needed.rectangles + int((self.queue.wasted * per_node).sum())
        self.done = Evaluated(self.needed.nodes + wasted, rectangles, trees + wasted)

    def traffic(self, spilled: float) -> Traffic:
        """All of it; ``spilled``: bytes of integral images that the last cache does not hold."""
        passing, windows, use = int(self.counts.entered[-1]), self.counts.windows, self.use
        table, takings, staged = self._table_bytes(), self._takings(), self._staged_bytes()
        in_constants = table if self.in_constants else 0
        corners, listed = 4 * 4 * self.done.rectangles, 8 * windows if use.global_queue else 0
        gathers = 4 * 8 * windows + (staged if self.configuration.image else corners)
        group = self.configuration.group
        return Traffic(
            flops=float(self.done.nodes), integer_ops=float(9 * windows + self._feature_ops() + self._finding_ops()),
            dram_read=spilled + self.nodes.buffer.nbytes + listed, dram_write=4.0 * passing + listed,
            global_read=self._placing_bytes() + table - in_constants + self._stage_bytes() + gathers + listed,
            global_write=4.0 * passing + listed,
            constant_read=float(in_constants),
            local_read=self.queue.read + 4.0 * group * takings + corners * bool(self.configuration.image),
            local_write=self.queue.write + 4.0 * takings + staged,
            global_atomics=float(takings + passing), local_atomics=float(self.queue.added),
        )  # fmt: skip

    def _placing_bytes(self) -> int:
        """Words of levels, read to place windows or tiles."""
        levels, use = self.problem.pyramid.levels, self.use
        searched = self.problem.frames * probes([self.configuration.units(level) for level in levels])
        if self.configuration.tile:  # by every work-item, once for a tile
            units = sum(launch.units for launch in self.configuration.launches)
            return 4 * self.configuration.group * (6 * units + searched * use.uberkernel)
        placing = 4 * (5 if not use.shifts else 7) * self.counts.windows
        return placing + 4 * searched if use.uberkernel or use.global_queue else placing

    @property
    def _shared_loads(self) -> int:
        """Loads of stumps that windows evaluated side by side by a work-item save."""
        if not (self.use.offsets and self.configuration.shares_loads):
            return 0
        return int(self.counts.nodes[self.configuration.single :].sum()) - self.queue.loads

    def _table_bytes(self) -> int:
        """Nodes, and what trees have beside them."""
        nodes, use, stumps = self.needed.nodes, self.use, self.cascade.stumps
        if use.offsets:
            of_node = 40 if self.nodes.packed else 16 * (5 if stumps and use.select else 4)
            table = of_node * (nodes - self._shared_loads)
        else:
            table = 4 * (4 * nodes + 5 * self.needed.rectangles)
        if not stumps:
            return table + 4 * 2 * nodes + (4 + 4 + 8) * self.needed.trees  # children; root, first leaf, leaf
        if not (use.offsets and use.select):
            table += (16 if use.select else 8) * nodes
        return table

    def _stage_bytes(self) -> int:
        """First trees and thresholds of stages."""
        entered = self.counts.entered
        early = self.configuration.single if self.use.local_queue else self.cascade.stages
        read = 8 * int(entered[:-1].sum()) + 8 * int(entered[:early].sum())
        return read + 8 * self.configuration.group * self.queue.steps

    def _feature_ops(self) -> int:
        """Integer operations of features."""
        done = self.done
        operations = 5 * done.rectangles - done.nodes + done.trees + (4 if self.use.offsets else 3) * done.nodes
        if self.nodes.packed:
            # Corners are taken out of their words; no leaf is put together, the first product has no sum.
            loaded = done.nodes - self._shared_loads
            operations += 4 * done.rectangles * loaded // max(done.nodes, 1) - 5 * done.nodes
        return operations

    def _takings(self) -> int:
        """How often a work-group asks the counter for a batch."""
        return self.configuration.all_groups + self.configuration.all_batches if self.use.dynamic else 0

    def _finding_ops(self) -> int:
        """Integer operations that find windows and their places."""
        use, levels = self.use, self.problem.pyramid.levels
        operations = (10 + 7 * use.shifts if use.global_queue else 12 + use.uberkernel) * self.counts.windows
        if use.uberkernel or use.global_queue:
            operations += 3 * self.problem.frames * probes([level.windows for level in levels])
        return operations + self.configuration.all_batches * self.configuration.batch * use.dynamic

    def _staged_bytes(self) -> int:
        """Bytes of the integral images that come into local memory, tile by tile."""
        tile, cascade = self.configuration.tile, self.cascade
        if not tile:
            return 0

        def words(level_step: int, count: int, window: int) -> int:
            """Words along one side of a level: those of whole tiles, and of the rest."""
            tiles, rest = divmod(count, tile)
            whole = tiles * ((tile - 1) * level_step + window + 1)
            return whole + ((rest - 1) * level_step + window + 1 if rest else 0)

        area = sum(
            words(level.step, level.columns, cascade.width) * words(level.step, level.rows, cascade.height)
            for level in self.problem.pyramid.levels
        )
        return 4 * area * (1 + self.problem.tilted) * self.problem.frames
