"""Which tiling to generate code for: a model of what limits a work-group on an NVIDIA GPU, and a search over shapes.

Per compute unit and cycle: four schedulers issue one instruction of a warp each, local memory serves 32 words. The
rates are those of compute capability 8.0 and later; what else is below is a guess that tunables can override.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from .operators import Operator
from .tiled import WARP, Tiling
from .weights import window_use

SCHEDULERS = 4
REGISTERS = 65536
MOST_REGISTERS = 255
MOST_WARPS = 64
MOST_GROUPS = 32
INPUTS_AHEAD = 24  # words of the window that the assembler reads early
SUMS = 128  # more spill
CODE_BYTES = 128 << 10  # of one work-group: what an instruction cache holds
INSTRUCTION_BYTES = 16
START_CYCLES = 1500  # addresses, the first copies, the last stores
BARRIER_SHARE = 0.2  # of the time, where no other work-group fills the wait at barriers
FETCH_BYTES = 8.0  # of code per cycle: every work-group runs through all of its slice's once
L2_BYTES = 40.0  # per cycle and compute unit, from the measured 8.9 TB/s of 132


@dataclass(frozen=True)
class Device:
    """What the model knows of a device."""

    compute_units: int
    local_bytes: int


@dataclass(frozen=True)
class Estimate:
    """Modelled cycles of one launch and what they are made of."""

    cycles: float
    issue: float
    local: float
    l2: float
    code_bytes: int


def inputs_read(weights: np.ndarray, tiling: Tiling) -> int:
    """Reads of local memory (instructions) of a work-item for a slice: rows of windows that some weight needs."""
    window = window_use(weights, tiling.height, tiling.operator.stride)
    group = (tiling.lead + np.arange(window.shape[2])) // tiling.load
    return int(sum(window[:, :, group == g].any(axis=2).sum() for g in np.unique(group)))


def registers(tiling: Tiling) -> int:
    """Registers of a work-item, estimated: sums, inputs read ahead, four for each copy, addresses."""
    ahead = min(tiling.operator.kernel_height * tiling.operator.kernel_width, INPUTS_AHEAD)
    return -(-(tiling.height * tiling.filters + ahead + 4 * tiling.turns + 32) // 8) * 8


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
    issue = warps / SCHEDULERS * (products + reads + staging)
    local = warps * (reads * tiling.load * tiling.conflicts + blocks * tiling.turns * tiling.vector)
    groups = tiling.groups(batch)
    at_once = min(tiling.resident, -(-groups // device.compute_units))
    busy = min(1.0, 0.25 + 0.2 * at_once * warps / SCHEDULERS)  # few warps do not hide latencies
    code = int(products + reads) * INSTRUCTION_BYTES
    slow = 1.0 if code <= CODE_BYTES else 1.5
    staged = 4.0 * blocks * tiling.block_copies * tiling.vector + 4.0 * tiling.items * tiling.height * tiling.filters
    l2 = staged / L2_BYTES
    alone = 1 + BARRIER_SHARE / at_once
    cycles = max(issue * slow * alone / busy, local, l2, code / FETCH_BYTES) + START_CYCLES / at_once
    rounds = -(-groups // (device.compute_units * at_once)) * at_once
    return Estimate(rounds * cycles, issue, local, l2, code)


def candidates(operator: Operator, device: Device, fixed: dict[str, int]) -> Iterator[Tiling]:
    """Tilings that fit the device; ``fixed`` holds those tunables that are not left to the model."""

    def among(name: str, values: set[int]) -> list[int]:
        return [fixed[name]] if fixed.get(name) else sorted(values)

    o = operator
    columns = {-(-o.out_width // parts) for parts in (1, 2, 3, 4, 7)} | {16, 32, 64}
    columns = {value for value in columns if value <= max(64, 2 * o.out_width) and value <= 128}
    filters = {-(-o.filters // parts) for parts in (1, 2, 3, 4, 5, 8, 16)}
    blocks = {value for value in (1, 2, 3, 4, 5, 8) if o.channels % value == 0}
    if fixed.get("block"):
        blocks = {max(value for value in range(1, fixed["block"] + 1) if o.channels % value == 0)}
    for width, height, count in product(
        among("columns", columns), among("height", {1, 2, 4}), among("filters", filters)
    ):
        count = min(count, o.filters)
        if height * count > SUMS or (height > 1 and height > o.out_height):
            continue
        rows = {max(1, items // width) for items in (64, 128, 256, 384, 512, 640)}
        rows = {min(value, -(-o.out_height // height)) for value in rows}
        for deep, block, stages in product(among("rows", rows), sorted(blocks), among("stages", {3})):
            shape = Tiling(o, width, deep, height, count, block, stages, 1)
            if shape.items > 1024 or shape.local_bytes > device.local_bytes or shape.turns > 8:
                continue
            fit = fixed.get("resident") or resident(shape, device)
            if fit:
                yield Tiling(o, width, deep, height, count, block, stages, fit, bool(fixed.get("slices_last")))


@lru_cache(maxsize=64)
def _chosen(
    operator: Operator, device: Device, batch: int, fixed: tuple[tuple[str, int], ...], weights: bytes
) -> Tiling | None:
    values = np.frombuffer(weights, np.float32).reshape(operator.shape)
    nonzero = int(np.count_nonzero(values))
    reads: dict[tuple[int, ...], int] = {}

    def cycles(tiling: Tiling) -> float:
        alike = (tiling.filters, tiling.height, tiling.lead, tiling.load)
        if alike not in reads:
            reads[alike] = inputs_read(values[: tiling.filters], tiling)
        return _estimate(tiling, nonzero, reads[alike], batch, device).cycles

    return min(candidates(operator, device, dict(fixed)), key=cycles, default=None)


def choose(operator: Operator, weights: np.ndarray, batch: int, device: Device, fixed: dict[str, int]) -> Tiling | None:
    """Return the tiling of least modelled time; None where none fits."""
    return _chosen(operator, device, batch, tuple(sorted(fixed.items())), weights.tobytes())
