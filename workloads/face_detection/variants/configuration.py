"""What a detector is made of: its techniques, and what its tunables come to on a problem and a device."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from perfport.workload import Setup, UsageError, ceil_div

from ..problems import Windows
from ..pyramid import Level
from .tile import BANKS, TileImage, tile_image

SUMMED = 16  # partial sums that one work-item adds up, at most


@dataclass(frozen=True)
class Techniques:
    """One switch per technique; the files in kernels/ that a switch chooses between say what it does.

    ``constant``: the cascade's nodes in constant memory, where they fit.
    """

    uberkernel: bool = True
    persistent: bool = True
    dynamic: bool = True
    global_queue: bool = False
    local_queue: bool = False
    offsets: bool = False
    shifts: bool = False
    select: bool = False
    unroll: int = 1
    constant: bool = False

    def __post_init__(self) -> None:
        if self.dynamic and not self.persistent:
            raise UsageError(
                "dynamic: work-groups that take batches from a counter are persistent; set persistent to 1"
            )


class Launch(NamedTuple):
    """Number of its first unit (tile or window), how many there are, and its first level, the only one per level."""

    first: int
    units: int
    level: int


@dataclass(frozen=True)
class Configuration:
    """How windows are dealt out to work-groups and work-items.

    Attributes
    ----------
    image : TileImage or None
        With tiles: what a tile brings into local memory.
    group : int
        Work-items of a work-group.
    batch : int
        Windows that a work-group takes at a time.
    single : int
        Stages that take one work-item per window, ahead of the local queue.
    together : int
        Windows from the local queue at a time; 0: as many as suit its length.
    per_item : int
        Windows from the local queue that a work-item evaluates side by side.
    by_bank : int
        Waiting windows above which a tile's queue goes by banks.
    resident : int
        Work-groups of a persistent launch, at most.
    """

    problem: Windows = field(repr=False)
    techniques: Techniques
    image: TileImage | None
    group: int
    batch: int
    single: int
    together: int
    per_item: int
    by_bank: int
    resident: int

    def __post_init__(self) -> None:
        if not self.techniques.local_queue:
            return
        if self.together:
            lanes, rest = divmod(self.group, self.together)
            if rest or lanes & (lanes - 1) or not lanes:
                raise UsageError(
                    "cooperative_windows: expected work_group over a power of two, got "
                    f"{self.together} with work_group {self.group}"
                )
        elif self.group & (self.group - 1):
            raise UsageError(f"work_group: expected a power of two for cooperative_windows 0, got {self.group}")

    @property
    def tile(self) -> int:
        """Windows along a side of a tile; 0 without tiles."""
        return self.image.side if self.image else 0

    @property
    def file(self) -> str:
        """The kernel file that has the techniques."""
        return "detect_queued.cl" if self.techniques.local_queue else "detect_direct.cl"

    @property
    def shares_loads(self) -> bool:
        """Whether windows that a work-item evaluates side by side share a load of each stump."""
        return self.techniques.local_queue and self.per_item > 1 and self.problem.cascade.stumps

    def macros(self) -> dict[str, Any]:
        """The macros of the kernels that follow from it."""
        cascade, image = self.problem.cascade, self.image
        return {
            **{name.upper(): int(value) for name, value in asdict(self.techniques).items()},
            "STUMPS": int(cascade.stumps), "STAGES": cascade.stages, "WINDOW_WIDTH": cascade.width,
            "WINDOW_HEIGHT": cascade.height, "WORK_GROUP": self.group, "BATCH": self.batch,
            "SINGLE_ITEM_STAGES": self.single, "COOPERATIVE_WINDOWS": self.together, "PER_ITEM": self.per_item,
            "TILE": self.tile, "LOCAL_PITCH": image.row if image else 0, "LOCAL_LINES": image.lines if image else 0,
            "HALF": image.half if image else 0, "HALVED": cascade.nodes, "TILTED": int(self.problem.tilted),
            "LANES": min(BANKS, self.group), "BY_BANK": self.by_bank, "SUMMED": SUMMED,
        }  # fmt: skip

    def units(self, level: Level) -> int:
        """What work-groups take of a level: its tiles or its windows."""
        return level.tiles(self.tile) if self.tile else level.windows

    @cached_property
    def launches(self) -> list[Launch]:
        """The launches of all groups of levels, one group after the other."""
        return [launch for group in self.problem.pyramid.groups for launch in self.of_group(group)]

    def of_group(self, group: range) -> list[Launch]:
        """One launch for a group of levels, or one for each frame, or for each level of each frame."""
        pyramid, frames = self.problem.pyramid, self.problem.frames
        before = np.cumsum([0, *map(self.units, pyramid.levels)]).tolist()
        if self.techniques.uberkernel and len(pyramid.groups) == 1:  # then frames follow each other without a gap
            return [Launch(0, frames * before[-1], 0)]
        runs = [group] if self.techniques.uberkernel else [range(level, level + 1) for level in group]
        return [
            Launch(frame * before[-1] + before[run.start], before[run.stop] - before[run.start], run.start)
            for frame in range(frames)
            for run in runs
        ]

    def batches(self, launch: Launch) -> int:
        """Batches of a launch: tiles, or runs of windows."""
        return launch.units if self.tile else ceil_div(launch.units, self.batch)

    def groups(self, launch: Launch) -> int:
        """Work-groups of a launch."""
        batches = self.batches(launch)
        return min(batches, self.resident) if self.techniques.persistent else batches

    @property
    def all_batches(self) -> int:
        """Batches of all launches."""
        return sum(map(self.batches, self.launches))

    @property
    def all_groups(self) -> int:
        """Work-groups of all launches."""
        return sum(map(self.groups, self.launches))

    def batch_of(self, windows: np.ndarray) -> np.ndarray:
        """Number of the batch of each of these windows, int64."""
        if not self.tile:
            launches = sorted(self.launches)  # groups take the frames in turn
            first = np.array([launch.first for launch in launches])
            before = np.cumsum([0, *map(self.batches, launches)])
            launch = np.searchsorted(first, windows, "right") - 1
            return before[launch] + (windows - first[launch]) // self.batch
        pyramid = self.problem.pyramid
        frame, inside = np.divmod(windows, pyramid.windows)
        level, x, y = pyramid.locate(inside)
        before = np.cumsum([0, *(level.tiles(self.tile) for level in pyramid.levels)])
        across = np.array([ceil_div(level.columns, self.tile) for level in pyramid.levels])[level]
        side = self.tile * np.array([level.step for level in pyramid.levels])[level]  # pixels of the level
        return frame * before[-1] + before[level] + y // side * across + x // side


def configure(setup: Setup, techniques: Techniques) -> Configuration:
    """Return what the tunables of a variant come to. Raises `UsageError` where they do not fit together."""
    tunables, problem = setup.tunables, setup.problem
    image = _tile_image(setup, techniques)
    together = int(tunables.get("cooperative_windows", 0))
    return Configuration(
        problem=problem, techniques=techniques, image=image, group=tunables["work_group"],
        batch=image.side**2 if image else tunables["batch"],
        single=min(int(tunables.get("single_item_stages", 0)), problem.cascade.stages), together=together,
        per_item=1 if together else int(tunables.get("per_item", 1)), by_bank=tunables.get("by_bank", 0),
        resident=setup.device.info.compute_units * tunables.get("groups_per_cu", 1),
    )  # fmt: skip


def _tile_image(setup: Setup, techniques: Techniques) -> TileImage | None:
    """Layout of a tile's image; None without tiles, and where local memory does not hold one beside the queue."""
    side, problem = int(setup.tunables.get("tile", 0)), setup.problem
    if not side:
        return None
    if techniques.global_queue or not techniques.offsets:
        raise UsageError(
            f"tile: with {side}, expected global_queue 0 and offsets 1, "
            f"got {int(techniques.global_queue)} and {int(techniques.offsets)}"
        )
    step = max(level.step for level in problem.pyramid.levels)
    image = tile_image(side, step, problem.cascade, problem.tilted)
    others = 8 * side**2 + 12 * setup.tunables["work_group"] + 12 * BANKS + 64  # queue, sums, counters, columns, ticket
    return image if image.nbytes + others <= setup.device.info.local_memory_bytes else None
