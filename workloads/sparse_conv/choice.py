"""Which tiling to generate code for: a model of what limits a work-group on an NVIDIA GPU, and a search over shapes.

Per compute unit and cycle: four schedulers issue one instruction of a warp each, local memory serves 32 words. The
rates are those of compute capability 8.0 and later. How fast code comes, and what barriers cost, is fitted to 105
measured times on an H200 (README); tunables override all of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from perfport.workload import ceil_div, round_up

from .cubin import INSTRUCTION_BYTES
from .operators import Operator
from .tiling import WARP, Tiling
from .weights import window_use

SCHEDULERS = 4
REGISTERS = 65536
MOST_REGISTERS = 255
MOST_WARPS = 64
MOST_GROUPS = 32
INPUTS_AHEAD = 24  # words of the window that the assembler reads early
SUMS = 128  # more spill
LONG_CODE = 50_000  # multiply-adds: above, several rows for a work-item were never the fastest
CODE_BYTES = 112 << 10  # of one work-group: what an instruction cache holds
LAUNCH_CYCLES = 6000
START_CYCLES = 2500  # addresses, the first copies, the last stores
BARRIER_CYCLES = 200  # of each block, shared by the work-groups that fill each other's waits
ISSUED = 0.75  # of the issue slots, at best
ISSUED_PINNED = 0.62  # by work-groups that take one tile after the other
APART = 0.98  # of it is left for each further work-group: they run different parts of the code
FETCH_BYTES = 2.0  # of code per cycle and compute unit that is not in the cache, if all fetch the same
WARPS_TOGETHER = 8  # that use a fetched instruction before it is gone
FETCH_POWER = 0.3  # by which that falls with the number of different slices that are fetched at once
CHOSEN = 2  # the value of the tunable `pinned` that leaves it to the model
OF_A_KIND = 3  # tilings of the short list
L2_BYTES = 40.0  # per cycle and compute unit, from the measured 8.9 TB/s of 132


@dataclass(frozen=True)
class Device:
    """What the model knows of a device."""

    compute_units: int
    local_bytes: int


@dataclass(frozen=True)
class Estimate:
    """Modelled cycles of one launch, what each resource alone would need of them, and the code of a slice."""

    cycles: float
    issue: float
    local: float
    l2: float
    fetch: float
    code_bytes: int


def inputs_read(weights: np.ndarray, tiling: Tiling) -> int:
    """Reads of local memory (instructions) of a work-item for a slice: rows of windows that some weight needs."""
    window = window_use(weights, tiling.height, tiling.operator.stride)
    group = (tiling.lead + np.arange(window.shape[2])) // tiling.load
    return int(sum(window[:, :, group == g].any(axis=2).sum() for g in np.unique(group)))


def registers(tiling: Tiling) -> int:
    """Registers of a work-item, estimated: sums, inputs read ahead, four for each copy, addresses."""
    ahead = min(tiling.operator.kernel_height * tiling.operator.kernel_width, INPUTS_AHEAD)
    return round_up(tiling.height * tiling.filters + ahead + 4 * tiling.turns + 32, 8)


def resident(tiling: Tiling, device: Device) -> int:
    """Work-groups that fit a compute unit at once; 0 where not one does."""
    if registers(tiling) > MOST_REGISTERS or tiling.local_bytes > device.local_bytes:
        return 0
    warps = tiling.items // WARP
    return min(
        REGISTERS // (registers(tiling) * tiling.items), device.local_bytes // max(tiling.local_bytes + 1024, 1),
        MOST_WARPS // warps, MOST_GROUPS,
    )  # fmt: skip


def estimate(tiling: Tiling, weights: np.ndarray, batch: int, device: Device) -> Estimate:
    """Model one launch; the first slice of filters stands for all."""
    return _estimate(
        tiling, int(np.count_nonzero(weights)), inputs_read(weights[: tiling.filters], tiling), batch, device
    )


def _estimate(tiling: Tiling, nonzero: int, reads: int, batch: int, device: Device) -> Estimate:
    products = nonzero / tiling.slices * tiling.height
    blocks = tiling.operator.channels // tiling.block
    staging = blocks * (3 * tiling.turns + 8)
    warps = tiling.items // WARP
    groups = tiling.tiles(batch) * tiling.slices
    of_unit = ceil_div(groups, device.compute_units)
    at_once = min(tiling.resident, of_unit)
    busy = min(1.0, 0.25 + 0.2 * at_once * warps / SCHEDULERS)  # few warps do not hide latencies
    issued = (ISSUED_PINNED if tiling.pinned else ISSUED) * busy * APART ** (at_once - 1)
    issue = of_unit * warps / SCHEDULERS * (products + reads + staging) / issued
    issue += of_unit / at_once * (blocks * BARRIER_CYCLES + START_CYCLES)
    local = of_unit * warps * (reads * tiling.load * tiling.conflicts + blocks * tiling.turns * tiling.vector)
    staged = 4.0 * blocks * tiling.block_copies * tiling.vector + 4.0 * tiling.items * tiling.height * tiling.filters
    l2 = of_unit * staged / L2_BYTES
    code = int(products + reads) * INSTRUCTION_BYTES
    fetch = _fetches(tiling, groups, at_once, device, code) * code / FETCH_BYTES
    busiest = max(issue, local, l2)
    if tiling.pinned:  # the first tiles of a unit wait for code, the others find it
        later = busiest * (1 - at_once / of_unit)
        cycles = max(fetch, busiest - later) + later
    else:
        cycles = max(busiest, fetch)
    return Estimate(LAUNCH_CYCLES + cycles, issue, local, l2, fetch, code)


def _fetches(tiling: Tiling, groups: int, at_once: int, device: Device, code: int) -> float:
    """How often a compute unit fetches the code of a slice, in units of a fetch that all share."""
    places = device.compute_units * at_once
    rounds = ceil_div(groups, places)
    of_slice = groups / tiling.slices
    different = min(float(tiling.slices), max(1.0, places / of_slice))
    if code > CODE_BYTES:
        passes = max(1.0, rounds * at_once * tiling.items / WARP / WARPS_TOGETHER)
    elif tiling.pinned:
        passes, different = 1.0, float(tiling.slices)
    elif of_slice >= places:
        passes = float(tiling.slices)
    else:  # neighbours on a compute unit may have different slices
        passes = rounds * min(at_once, max(1.0, round(different)))
    return float(passes * different**FETCH_POWER)


@dataclass(frozen=True, eq=False)
class Search:
    """Where a tiling is looked for.

    Attributes
    ----------
    operator : Operator
    weights : array of float32, shape (K, C, R, S)
    batch : int
        Images.
    device : Device
    fixed : mapping
        Values of tunables; those that are 0 (of `pinned`, `CHOSEN`) or missing are left to the model.
    """

    operator: Operator
    weights: np.ndarray
    batch: int
    device: Device
    fixed: Mapping[str, int]

    def shortlist(self, count: int) -> list[Tiling]:
        """Return up to ``count`` tilings of least modelled time that differ from each other, the best first.

        Of a kind (equal rows of a work-item, filters, pinned or not) there are at most `OF_A_KIND`, which differ by
        half in columns or work-items: what the model cannot tell apart, a measurement can. If there are others, a third
        is pinned.
        """
        pinned = _unlike((tiling for tiling in self.ordered if tiling.pinned), count)
        others = _unlike((tiling for tiling in self.ordered if not tiling.pinned), count)
        pinned = pinned[: max(count // 3, count - len(others))]
        chosen = {*pinned, *others[: count - len(pinned)]}
        return [tiling for tiling in self.ordered if tiling in chosen]

    def neighbours(self, best: Tiling, tried: Collection[Tiling], count: int) -> list[Tiling]:
        """Return up to ``count`` further tilings of the kind of the measured best, of least modelled time first.

        Half of them, if there are as many, have its shape and other blocks and stages, whose effect on the fetching of
        code is not modelled: those near four channels and four stages first, which were the fastest most often. The
        others have its blocks and stages and another shape.
        """
        kind = [tiling for tiling in self.ordered if _kind(tiling) == _kind(best) and tiling not in tried]
        staged = [tiling for tiling in kind if (tiling.columns, tiling.rows) == (best.columns, best.rows)]
        staged.sort(key=lambda tiling: (abs(math.log2(tiling.block / 4)), -tiling.stages))
        shapes = [tiling for tiling in kind if (tiling.block, tiling.stages) == (best.block, best.stages)]
        several = staged[: max(count // 2, count - len(shapes))]
        return several + shapes[: count - len(several)]

    @cached_property
    def ordered(self) -> list[Tiling]:
        """All candidates, those of least modelled time first; without code that is long for several rows' sake."""
        nonzero = int(np.count_nonzero(self.weights))
        reads: dict[tuple[int, ...], int] = {}

        def order(tiling: Tiling) -> tuple[float, float]:
            alike = (tiling.filters, tiling.height, tiling.lead, tiling.load)
            if alike not in reads:
                reads[alike] = inputs_read(self.weights[: tiling.filters], tiling)
            model = _estimate(tiling, nonzero, reads[alike], self.batch, self.device)
            return model.cycles, model.issue  # where fetching limits, all of a kind take as long

        tilings = list(self.candidates())
        least = min((tiling.height for tiling in tilings), default=1)
        return sorted((t for t in tilings if t.height == least or nonzero * t.height <= LONG_CODE), key=order)

    def candidates(self) -> Iterator[Tiling]:
        """Yield the tilings that fit the device.

        Slices are pinned to units only where there are several, and more tiles than are computed at once.
        """
        pinned = self.fixed.get("pinned", CHOSEN)
        for shape in self._shapes():
            fit = self.fixed.get("resident") or resident(shape, self.device)
            if not fit:
                continue
            for pin in (False, True) if pinned == CHOSEN else (bool(pinned),):
                tiling = replace(shape, resident=fit, pinned=pin)
                in_turns = tiling.tiles(self.batch) * tiling.slices > self.device.compute_units * fit
                sensible = not pin or pinned != CHOSEN or (tiling.slices > 1 and in_turns)
                if sensible and tiling.local_bytes <= self.device.local_bytes:
                    yield tiling

    def _shapes(self) -> Iterator[Tiling]:
        """Yield tilings of which it is not known yet how many work-groups fit a compute unit."""
        o = self.operator
        columns = {ceil_div(o.out_width, parts) for parts in (1, 2, 3, 4, 7)} | {16, 32, 64}
        columns = {value for value in columns if value <= max(64, 2 * o.out_width) and value <= 128}
        filters = {ceil_div(o.filters, parts) for parts in (1, 2, 3, 4, 5, 8, 16, 32)}
        blocks = {value for value in (1, 2, 3, 4, 5, 8) if o.channels % value == 0}
        if most := self.fixed.get("block"):
            blocks = {max(value for value in range(1, most + 1) if o.channels % value == 0)}
        for width, height, count in product(
            self._among("columns", columns), self._among("height", {1, 2, 4}), self._among("filters", filters)
        ):
            count = min(count, o.filters)
            if height * count > SUMS or (height > 1 and height > o.out_height):
                continue
            rows = {max(1, items // width) for items in (64, 128, 256, 384, 512, 640, 768, 1024)}
            rows = {min(value, ceil_div(o.out_height, height)) for value in rows}
            for deep, block, stages in product(
                self._among("rows", rows), sorted(blocks), self._among("stages", {3, 4})
            ):
                shape = Tiling(o, width, deep, height, count, block, stages, resident=1)
                if shape.items <= 1024 and shape.turns <= 8:
                    yield shape

    def _among(self, name: str, values: set[int]) -> list[int]:
        return [self.fixed[name]] if self.fixed.get(name) else sorted(values)


def _unlike(tilings: Iterable[Tiling], count: int) -> list[Tiling]:
    chosen: list[Tiling] = []
    for tiling in tilings:
        kind = [other for other in chosen if _kind(other) == _kind(tiling)]
        if len(kind) < OF_A_KIND and not any(_alike(tiling, other) for other in kind):
            chosen.append(tiling)
        if len(chosen) == count:
            break
    return chosen


def _alike(a: Tiling, b: Tiling) -> bool:
    return all(2 * max(pair) < 3 * min(pair) for pair in ((a.columns, b.columns), (a.items, b.items)))


def _kind(tiling: Tiling) -> tuple[int, int, bool]:
    return tiling.height, tiling.filters, tiling.pinned
