"""The detector: which techniques a launch of kernels/detect.cl uses, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from perfport.backend import Buffer, Kernel
from perfport.model.errors import UsageError
from perfport.model.work import Traffic
from perfport.workload import Setup

from ..problems import Windows
from ..pyramid import Level
from . import inputs
from .inputs import BANKS, TileImage
from .integrals import Integrals, probes

SUMMED = 16  # partial sums that one work-item adds up, at most
CONSTANT_BYTES = 65_536  # what every OpenCL device of the full profile has for constants


@dataclass(frozen=True)
class Techniques:
    """One switch per technique; kernels/detect.cl says what each one does.

    ``constant``: the cascade's nodes in constant memory, where they fit into `CONSTANT_BYTES`.
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


class Detector:
    """Pyramid, integral images and detection of a problem's frames on a device.

    Attributes
    ----------
    found, count : Buffer
        Numbers of passing windows in any order, and how many they are.
    """

    def __init__(self, setup: Setup, techniques: Techniques, found: Buffer, count: Buffer) -> None:
        self.setup, self.device = setup, setup.device
        self.problem: Windows = setup.problem
        self.techniques, self.found, self.count = techniques, found, count
        self.integrals = Integrals(setup, per_level=not techniques.uberkernel)
        cascade, pyramid = self.problem.cascade, self.problem.pyramid
        self.group = setup.tunables["work_group"]
        self.image = self._tile_image()
        self.tile = self.image.side if self.image else 0
        self.batch = self.tile**2 or setup.tunables["batch"]
        if self.image:
            self.nodes, self.node_words, self.packed = inputs.tile_nodes(setup, self.image)
        else:
            shape = (pyramid.pitch, 2 * pyramid.pitch * pyramid.lines)
            self.nodes, self.node_words = inputs.nodes(setup, techniques.offsets, *shape)
            self.packed = False
        self.in_constants = techniques.constant and self.nodes.nbytes <= CONSTANT_BYTES
        self.single = min(int(setup.tunables.get("single_item_stages", 0)), cascade.stages)
        self.together = int(setup.tunables.get("cooperative_windows", 0))
        self.per_item = 1 if self.together else int(setup.tunables.get("per_item", 1))
        if techniques.local_queue and self.together:
            lanes, rest = divmod(self.group, self.together)
            if rest or lanes & (lanes - 1) or not lanes:
                raise UsageError(
                    "cooperative_windows: expected work_group over a power of two, got "
                    f"{self.together} with work_group {self.group}"
                )
        elif techniques.local_queue and self.group & (self.group - 1):
            raise UsageError(f"work_group: expected a power of two for cooperative_windows 0, got {self.group}")
        self.macros: dict[str, Any] = {
            **{name.upper(): int(value) for name, value in asdict(techniques).items()},
            "CONSTANT": int(self.in_constants), "NODE_WORDS": self.node_words, "STUMPS": int(cascade.stumps),
            "STAGES": cascade.stages, "WINDOW_WIDTH": cascade.width, "WINDOW_HEIGHT": cascade.height,
            "WORK_GROUP": self.group, "BATCH": self.batch, "SINGLE_ITEM_STAGES": self.single,
            "COOPERATIVE_WINDOWS": self.together, "PER_ITEM": self.per_item, "TILE": self.tile,
            "LOCAL_PITCH": self.image.row if self.image else 0, "LOCAL_LINES": self.image.lines if self.image else 0,
            "HALF": self.image.half if self.image else 0, "HALVED": cascade.nodes * self.node_words,
            "TILTED": int(self.problem.tilted), "LANES": min(BANKS, self.group), "PACKED": int(self.packed),
            "BY_BANK": setup.tunables.get("by_bank", 0), "SUMMED": SUMMED, "INSTRUMENT": 0,
        }  # fmt: skip
        self.reset, self.kernel = (setup.kernel("detect.cl", name, **self.macros) for name in ("reset", "detect"))
        self.launches = self._launches()
        self.tickets = setup.scratch(4 * len(self.launches))
        self.queue = setup.scratch(8 * self.problem.windows if techniques.global_queue else 8)
        self.enqueue = setup.kernel("detect.cl", "enqueue", **self.macros) if techniques.global_queue else None
        levels = inputs.levels(setup, self.integrals.strip, self.tile)
        self._levels = (levels, np.uint32(len(pyramid.levels)))
        units = sum(map(self._units, pyramid.levels))
        self._frame = (np.uint32(units), *map(np.uint32, inputs.division(units)))
        self._cascade = (self.nodes, *inputs.rest_of_cascade(setup, self.packed))

    def _tile_image(self) -> TileImage | None:
        """Layout of a tile's image; None without tiles, and where local memory does not hold one beside the queue."""
        side, techniques = int(self.setup.tunables.get("tile", 0)), self.techniques
        if not side:
            return None
        if techniques.global_queue or not techniques.offsets:
            raise UsageError(
                f"tile: with {side}, expected global_queue 0 and offsets 1, "
                f"got {int(techniques.global_queue)} and {int(techniques.offsets)}"
            )
        problem = self.problem
        step = max(level.step for level in problem.pyramid.levels)
        image = inputs.tile_image(side, step, problem.cascade, problem.tilted)
        others = 8 * side**2 + 12 * self.group + 12 * BANKS + 64  # queue, partial sums and counters, columns, ticket
        return image if image.nbytes + others <= self.device.info.local_memory_bytes else None

    def _units(self, level: Level) -> int:
        """What work-groups take of a level: its tiles or its windows."""
        return level.tiles(self.tile) if self.tile else level.windows

    def _launches(self) -> list[tuple[int, int, int]]:
        """First unit (tile or window), number of units and level of each launch."""
        units = [self._units(level) for level in self.problem.pyramid.levels]
        if self.techniques.uberkernel:
            return [(0, self.problem.frames * sum(units), 0)]
        first = np.cumsum([0, *units * self.problem.frames]).tolist()
        return [(first[at], of_level, at % len(units)) for at, of_level in enumerate(units * self.problem.frames)]

    def batches(self, units: int) -> int:
        """Batches of a launch: tiles, or runs of windows."""
        return units if self.tile else -(-units // self.batch)

    def groups(self, units: int) -> int:
        """Work-groups of a launch."""
        batches = self.batches(units)
        if not self.techniques.persistent:
            return batches
        return min(batches, self.device.info.compute_units * self.setup.tunables["groups_per_cu"])

    def launch(self) -> None:
        """Enqueue one execution."""
        self.integrals.launch()
        self.detect(self.kernel)

    def detect(self, kernel: Kernel, counters: Mapping[str, Buffer] | None = None) -> None:
        """Enqueue the detection alone; ``counters`` are those of an instrumented kernel."""
        items = 64
        self.device.launch(self.reset, 1, items, self.tickets, np.uint32(len(self.launches)), self.count)
        pitch = np.uint32(self.problem.pyramid.pitch)
        if self.enqueue:
            groups = -(-self.problem.windows // items)
            arguments = (*self._levels, pitch, *self._frame, np.uint32(self.problem.windows), self.queue)
            self.device.launch(self.enqueue, groups, items, *arguments)
        first_group = 0
        for number, (first, total, level) in enumerate(self.launches):
            extra: tuple[Any, ...] = ()
            if counters:
                extra = (counters["groups"], np.uint32(first_group), counters["entered"])
            self.device.launch(
                kernel, self.groups(total), self.group, self.integrals.sums, *self._cascade, *self._levels,
                np.uint32(level), pitch, np.uint32(self.integrals.plane), np.uint64(self.integrals.frame_words),
                np.uint32(self.problem.pyramid.windows), *self._frame, np.uint32(first), np.uint32(total), self.queue,
                self.tickets, np.uint32(number), self.count, self.found, np.uint32(self.problem.parameters.capacity),
                *extra, local_bytes=self.image.nbytes if self.image else 0,
            )  # fmt: skip
            first_group += self.groups(total)

    def passing(self) -> np.ndarray:
        """Read back the numbers of the passing windows, ascending, int64. Raises `UsageError` where they overflow."""
        capacity = self.problem.parameters.capacity
        count = int(self.device.read(self.count, np.uint32, (1,))[0])
        if count > capacity:
            raise UsageError(f"capacity: {count} windows pass, the list holds {capacity}")
        return np.sort(self.device.read(self.found, np.uint32, (count,)).astype(np.int64))

    def instrumented(self) -> dict[str, Any]:
        """Run an instrumented build of the same kernel once, and return its figures.

        Returns
        -------
        dict
            ``entered``: windows by stage, and those that passed; ``features`` evaluated; ``busy_slots``: share of
            work-item slots that evaluated a feature while the longest work of the work-group lasted;
            ``windows_max_over_mean``, ``features_max_over_mean``: over work-groups; ``batches``, ``batches_per_group``,
            ``work_groups``, ``atomics``: takings from the counter; ``queue_bytes``.
        """
        # Not through the setup: these kernels are no part of what is timed.
        artifact = self.setup.session.build("detect.cl", {**self.setup.profile, **self.macros, "INSTRUMENT": 1})
        kernel = self.device.load(artifact).kernel("detect")
        number = sum(self.groups(total) for _, total, _ in self.launches)
        stages = self.problem.cascade.stages
        counters = {"groups": self.device.empty(16 * number), "entered": self.device.empty(4 * stages)}
        try:
            for buffer in counters.values():
                self.device.fill(buffer, 0)
            self.detect(kernel, counters)
            self.device.finish()
            features, slots, windows, batches = self.device.read(counters["groups"], np.uint32, (number, 4)).T.astype(
                np.float64
            )
            entered = self.device.read(counters["entered"], np.uint32, (stages,)).tolist()
        finally:
            for buffer in counters.values():
                buffer.free()
        taken = batches.sum() + number if self.techniques.dynamic else 0
        return {
            "entered": [*entered, len(self.passing())], "features": int(features.sum()),
            "busy_slots": float(features.sum() / slots.sum()) if slots.any() else 0.0,
            "windows_max_over_mean": float(windows.max() / windows.mean()),
            "features_max_over_mean": float(features.max() / features.mean()) if features.any() else 0.0,
            "batches": int(batches.sum()), "batches_per_group": float(batches.mean()), "work_groups": number,
            "atomics": int(taken), "queue_bytes": self.queue.nbytes if self.techniques.global_queue else 0,
        }  # fmt: skip

    def traffic(self) -> Traffic:
        """Modelled from the counts of the reference, which an instrumented build confirms."""
        cache = self.device.info.last_level_cache_bytes or 0
        images, counts, cascade = self.integrals.traffic(cache), self.problem.reference.counts, self.problem.cascade
        levels, use = self.problem.pyramid.levels, self.techniques
        windows = counts.windows
        nodes, rectangles = int(counts.nodes.sum()), int(counts.rectangles.sum())
        trees = int((counts.entered[:-1] * np.diff(cascade.stage_first)).sum())
        passing = int(counts.entered[-1])
        searched = self.problem.frames * probes([self._units(level) for level in levels])
        if self.tile:  # by every work-item, once for a tile
            placing = 4 * self.group * (6 * sum(total for _, total, _ in self.launches) + searched * use.uberkernel)
        else:
            placing = 4 * (5 if not use.shifts else 7) * windows
            if use.uberkernel or use.global_queue:
                placing += 4 * searched
        in_queue, wasted = (
            dict.fromkeys(("read", "write", "added", "loads", "steps"), 0),
            np.zeros(cascade.stages, np.int64),
        )
        if use.local_queue:
            in_queue, wasted = self._in_local_queue()
        if use.offsets:
            # Windows that a work-item evaluates side by side share a load of each stump.
            shared = int(counts.nodes[self.single :].sum()) - in_queue["loads"] if self._shares_loads else 0
            of_node = 40 if self.packed else 16 * (5 if cascade.stumps and use.select else 4)
            table = of_node * (nodes - shared)
        else:
            table = 4 * (4 * nodes + 5 * rectangles)
        if not cascade.stumps:
            table += 4 * 2 * nodes + (4 + 4 + 8) * trees  # children; root, first leaf, leaf
        elif not (use.offsets and use.select):
            table += (16 if use.select else 8) * nodes
        early = self.single if use.local_queue else cascade.stages
        stage_bytes = 8 * int(counts.entered[:-1].sum()) + 8 * int(counts.entered[:early].sum())
        stage_bytes += 8 * self.group * in_queue["steps"]
        rectangles += int((wasted * counts.rectangles / np.maximum(counts.nodes, 1)).sum())
        nodes += int(wasted.sum())
        trees += int(wasted.sum())
        corners, staged = 4 * 4 * rectangles, self._staged()
        gathers = 4 * 8 * windows + (staged if self.tile else corners)
        queue = 8 * windows if use.global_queue else 0
        in_constants = table if self.in_constants else 0
        atlas = 4.0 * self.problem.frames * self.integrals.frame_words
        spilled = atlas if atlas > cache else 0.0
        features = 5 * rectangles - nodes + trees + (4 if use.offsets else 3) * nodes
        if self.packed:  # corners are taken out of their words; no leaf is put together, the first product has no sum
            features += 4 * rectangles * (nodes - shared) // max(nodes, 1) - 5 * nodes
        finding = (10 + 7 * use.shifts if use.global_queue else 12 + use.uberkernel) * windows
        if use.uberkernel or use.global_queue:
            finding += 3 * self.problem.frames * probes([level.windows for level in levels])
        batches = sum(self.batches(total) for _, total, _ in self.launches)
        takings = sum(self.groups(total) for _, total, _ in self.launches) + batches if use.dynamic else 0
        finding += batches * self.batch * use.dynamic
        return Traffic(
            flops=float(nodes), integer_ops=images.integer_ops + 9 * windows + features + finding,
            dram_read=images.dram_read + spilled + self.nodes.nbytes + queue,
            dram_write=images.dram_write + 4.0 * passing + queue,
            global_read=images.global_read + placing + table - in_constants + stage_bytes + gathers + queue,
            global_write=images.global_write + 4.0 * passing + queue,
            constant_read=float(in_constants),
            local_read=images.local_read + in_queue["read"] + 4.0 * self.group * takings + corners * bool(self.tile),
            local_write=images.local_write + in_queue["write"] + 4.0 * takings + staged,
            global_atomics=float(takings + passing), local_atomics=float(in_queue["added"]),
        )  # fmt: skip

    def _staged(self) -> int:
        """Bytes of the integral images that come into local memory, tile by tile."""
        if not self.tile:
            return 0
        words = 0
        for level in self.problem.pyramid.levels:
            sides = []
            for count, window in (
                (level.columns, self.problem.cascade.width),
                (level.rows, self.problem.cascade.height),
            ):
                tiles, rest = divmod(count, self.tile)
                whole = tiles * ((self.tile - 1) * level.step + window + 1)
                sides.append(whole + ((rest - 1) * level.step + window + 1 if rest else 0))
            words += sides[0] * sides[1]
        return 4 * words * (1 + self.problem.tilted) * self.problem.frames

    def _batch_of(self) -> np.ndarray:
        """Number of each window's batch, int64."""
        parts, before = [], 0
        if self.tile:
            for level in self.problem.pyramid.levels:
                y, x = (np.arange(count) // self.tile for count in (level.rows, level.columns))
                parts.append((before + y[:, None] * -(-level.columns // self.tile) + x).ravel())
                before += level.tiles(self.tile)
            return (np.concatenate(parts) + before * np.arange(self.problem.frames)[:, None]).ravel()
        for _, total, _ in self.launches:
            parts.append(before + np.arange(total) // self.batch)
            before += self.batches(total)
        return np.concatenate(parts)

    @property
    def _shares_loads(self) -> bool:
        return self.techniques.local_queue and self.per_item > 1 and self.problem.cascade.stumps

    def _bank_of(self) -> np.ndarray:
        """Column of a tile's queue that each window would wait in, int64."""
        assert self.image
        parts, row = [], self.image.row
        for level in self.problem.pyramid.levels:
            y, x = (np.arange(count) % self.tile for count in (level.rows, level.columns))
            parts.append(((y[:, None] * level.step * row + x) % BANKS).ravel())
        return np.tile(np.concatenate(parts), self.problem.frames)

    def _in_local_queue(self) -> tuple[dict[str, int], np.ndarray]:
        """Bytes read and written by the work on local queues, windows put into them, and loads of nodes.

        Second, features evaluated for nothing by stage. From the windows' outcomes.
        """
        wasted, steps = [0] * self.single, 0
        outcome, first_tree = self.problem.reference.outcome, self.problem.cascade.stage_first
        late = np.flatnonzero(outcome >= self.single)
        columns, place = BANKS if self.tile else 1, self._batch_of()
        if self.tile:
            place = place * columns + self._bank_of()
        outcome, place = outcome[late], place[late]
        batches = sum(self.batches(total) for _, total, _ in self.launches)
        entry = 8 if self.tile else 12
        by_bank = np.full(batches, bool(self.tile))
        counted = 4 * self.group * np.where(by_bank, columns, 1)  # reading how many wait
        added, read, write, loads = len(late), int(counted.sum()), 8 * columns * batches + entry * len(late), 0
        for stage in range(self.single, self.problem.cascade.stages):
            filled = np.bincount(place[outcome >= stage], minlength=batches * columns).reshape(batches, columns)
            waiting = filled.sum(axis=1)
            slots = np.where(by_bank, columns * filled.max(axis=1), waiting)
            if self.together:
                lanes = np.full(batches, self.group // self.together)
            else:
                lanes = 2 ** np.floor(np.log2(self.group / np.clip(slots, 1, self.group))).astype(np.int64)
            together = self.group // lanes
            rounds, survivors = -(-slots // (together * self.per_item)), int((outcome > stage).sum())
            items, idle = (
                self._loading(filled, by_bank, slots, together) if self._shares_loads else (waiting, np.zeros(1))
            )
            trees = int(np.diff(first_tree)[stage])
            loads += int(items.sum()) * trees
            wasted.append(int(idle.sum()) * trees)
            sums = np.where(lanes > 1, -(-slots // together), 0)  # rows of windows whose parts are added up
            first, last = np.maximum(lanes - SUMMED, 0), np.minimum(lanes, SUMMED) - 1
            next_by_bank = by_bank & (waiting > self.setup.tunables.get("by_bank", 0))
            counted = 4 * self.group * np.where(next_by_bank, columns, 1)
            added, steps = added + survivors, steps + int((waiting > 0).sum())
            read += int(
                ((entry * lanes * waiting) + 8 * sums * together * (first + last) + counted * (waiting > 0)).sum()
            )
            read += int((4 * self.group * self.per_item * rounds * by_bank).sum())
            parts = self.group + together * np.minimum(lanes, SUMMED)
            write += int((8 * sums * parts + 4 * columns * (waiting > 0)).sum()) + entry * survivors
            by_bank = next_by_bank
        read += 4 * len(self.problem.reference.windows)
        return {"read": read, "write": write, "added": added, "loads": loads, "steps": steps}, np.array(wasted)

    def _loading(
        self, filled: np.ndarray, by_bank: np.ndarray, slots: np.ndarray, together: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Loads of a stump by the work-items of each batch, where one serves up to ``per_item`` windows side by side.

        Second, how often it is evaluated without a window. ``filled``: windows waiting, shape (batches, columns of the
        queue); the others have shape (batches,).
        """
        wide = np.where(by_bank, filled.shape[1], 1)
        # Rows of windows at a time, and in a round; a batch where nothing waits has none.
        rows, step = together // wide, np.maximum(together * self.per_item // wide, 1)
        columns = np.where(by_bank[:, None], filled, 0)
        columns[:, 0] = np.where(by_bank, filled[:, 0], filled.sum(axis=1))
        last = np.maximum(-(-slots // (together * self.per_item)) - 1, 0)  # round, the rounds before it are full
        rest = np.clip(columns - (last * step)[:, None], 0, None)
        apart = self.packed & ((last + 1) * together * self.per_item - together >= slots)
        shared = np.minimum(rest, rows[:, None])
        full = np.minimum(columns, (last * step)[:, None])
        before = full // step[:, None] * rows[:, None] + np.minimum(full % step[:, None], rows[:, None])
        loads = before.sum(axis=1) + np.where(apart, rest.sum(axis=1), shared.sum(axis=1))
        served = full.sum(axis=1) + np.where(apart, 0, rest.sum(axis=1))
        evaluated = self.per_item * (before.sum(axis=1) + np.where(apart, 0, shared.sum(axis=1)))
        return loads, (evaluated - served) * self.packed
