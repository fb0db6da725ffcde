"""Variants of `smo_train`: sequential minimal optimisation with first- and second-order choice of the working set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Setup, Traffic, Tunable, UnsupportedError, Variant, ceil_div, round_up

from ..smo import SmoTrain
from . import inputs
from .training_work import Training
from .working_sets import WorkingSets

MIB = 1 << 20
ITERATION_LIMIT = 10_000_000
BATCH_LIMIT = 1024  # iterations; a queue should not hold more launches
STATUS_WORDS = ("done", "iterations", "cache_hits", "rows_computed", "stuck", "sets", "walks", "stepped")
#: How often a work-group looks whether the others have come, at one barrier of the grid: more than a second on a GPU.
POLLS = 1 << 21
FILLERS = 4  # work-groups that share the missing rows of a tile of points


class _Smo(Variant):
    """Everything happens on the device: the host enqueues batches of iterations and reads a few words after each.

    Iterations enqueued beyond convergence do nothing. A batch is about an eighth of the iterations so far, so that
    neither reading back nor the surplus costs much. A training that has not converged after `ITERATION_LIMIT`
    iterations ends, and its model fails the check.
    """

    problem = SmoTrain
    host_driven = True
    first_order: ClassVar[int]
    kernels: ClassVar[str] = "smo.cl"
    step_kernels: ClassVar[tuple[str, ...]] = ("pick", "update")
    staged_words = 0  # of local memory that hold a work-group's points
    tunables: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 32, 64, 128, 256, 512), "work-items per work-group"),
        "lanes": Tunable({"cpu": 1, "gpu": 32}, (1, 8, 16, 32), "work-items that share a kernel row's element"),
        "rows": Tunable(4, (1, 2, 4, 8), "points that a team reads side by side"),
        "width": Tunable({"cpu": 16, "gpu": 4}, (4, 8, 16), "words per load"),
        "lane_points": Tunable({"cpu": 16, "gpu": 1}, (1, 4, 16), "points per work-item and step in passes over f"),
        "groups_per_unit": Tunable({"cpu": 1, "gpu": 2}, (1, 2, 4, 8), "work-groups per compute unit, at most"),
        "batch": Tunable({"cpu": 64, "gpu": 64}, (16, 32, 64, 128, 256), "iterations enqueued at first"),
    }

    def __init__(self, setup: Setup) -> None:
        self.device, self.tunables_used = setup.device, setup.tunables
        problem: SmoTrain = setup.problem
        self.data = problem
        tunables = setup.tunables
        if tunables["group"] % tunables["lanes"]:
            raise UnsupportedError(f"group ({tunables['group']}) must be a multiple of lanes ({tunables['lanes']})")
        matrix = inputs.pitched(setup, tunables["width"])
        granule = self.granule()
        self.padded = round_up(problem.points, granule)
        nbytes = min(problem.parameters.cache_mb * MIB, self.device.info.max_alloc_bytes)
        self.slots = int(min(max(2, nbytes // (4 * self.padded)), max(2, problem.points)))
        chunk = round_up(ceil_div(self.padded, self.most_groups()), granule)
        self.chunk, self.groups, self.group = chunk, ceil_div(self.padded, chunk), tunables["group"]
        macros = {
            "NPOINTS": problem.points, "PADDED": self.padded, "CHUNK": chunk, "GROUPS": self.groups,
            "SLOTS": self.slots, "FIRST_ORDER": self.first_order, **self.macros(matrix.pitch),
            "GAMMA": _literal(problem.gamma), "PENALTY": _literal(problem.penalty), "TAU": _literal(problem.tau),
        }  # fmt: skip
        self._reset, *self._steps, self._model = (
            setup.kernel(self.kernels, name, **macros) for name in ("reset", *self.step_kernels, "model")
        )
        cache = setup.scratch(4 * self.slots * self.padded)
        start = np.zeros(3 * self.padded + 4 * self.groups, np.float32)
        start[2 * self.padded : 2 * self.padded + problem.points] = problem.labels
        floats, ints = setup.upload(start), setup.scratch(4 * self._words())
        # No macro: compilers would unroll by it for half a minute.
        vectors = np.uint32(matrix.pitch // tunables["width"])
        self.matrix = matrix
        self.memory = (matrix.buffer, cache, floats, ints, vectors)
        self.outputs = (setup.output("alpha", np.float32, problem.points), setup.output("b", np.float32, 1))
        self._status = setup.scratch(4 * len(STATUS_WORDS))
        self._last = dict.fromkeys(STATUS_WORDS, 0)
        self._history: list[dict[str, int]] = []  # status after each batch of the last training
        self._enqueued = 0  # iterations of it, those after convergence included

    def granule(self) -> int:
        """What padded points and the points of a work-group are multiples of."""
        return 16

    def most_groups(self) -> int:
        """Work-groups, if there are points for all of them."""
        groups: int = self.device.info.compute_units * self.tunables_used["groups_per_unit"]
        return groups

    def macros(self, pitch: int) -> dict[str, int]:
        """Compile-time parameters of the form of the iterations; ``pitch`` is of the data, in words."""
        return {"RESIDENT": 0, "STAGED": 0}

    def _words(self) -> int:
        return 3 * self.padded + 2 * self.slots + 6 * self.groups + 96

    def _run(self, kernel: Any, *more: Any, local_bytes: int = 0) -> None:
        self.device.launch(kernel, self.groups, self.group, *self.memory, *more, local_bytes=local_bytes)

    def _train(self, execute: Callable[[Callable[[], None]], None]) -> None:
        """One training; ``execute`` runs each batch."""

        def begin() -> None:
            self._run(self._reset)

        def iterate() -> None:
            self.iterate(batch)
            self._run(self._model, self._status, *self.outputs)

        self._history, self._enqueued = [], 0
        execute(begin)
        batch = self.first_batch()
        while True:
            execute(iterate)
            self._enqueued += batch
            words = self.device.read(self._status, np.int32, (len(STATUS_WORDS),))
            self._last = dict(zip(STATUS_WORDS, words.tolist(), strict=True))
            self._history.append(self._last)
            if self._last["stuck"]:
                raise UnsupportedError(f"{self.device.info.id} does not run {self.groups} work-groups at the same time")
            if self._last["done"] or self._last["iterations"] >= ITERATION_LIMIT:
                return
            batch = self.next_batch(batch)

    def first_batch(self) -> int:
        """Iterations that are enqueued before the host looks for the first time."""
        batch: int = self.tunables_used["batch"]
        return batch

    def next_batch(self, batch: int) -> int:
        """How many follow a batch."""
        return max(batch, min(self._last["iterations"] // 8, BATCH_LIMIT))

    def iterate(self, count: int) -> None:
        """Enqueue iterations."""
        for _ in range(count):
            for kernel in self._steps:
                self._run(kernel)

    def launch(self) -> None:
        self._train(lambda enqueue: enqueue())

    def step_counts(self) -> tuple[int, int]:
        """Executions of picking and of updating in the last training."""
        return self._enqueued, self._enqueued

    def walks(self) -> float:
        """Walks over the data in the last training.

        The first order computes two missing rows in one walk. How often both were missing is not recorded: within a
        batch, misses are taken as independent of each other.
        """
        if not self.first_order:
            return self._last["rows_computed"]
        walks, before = 0.0, dict.fromkeys(STATUS_WORDS, 0)
        for after in self._history:
            iterations, rows = (after[name] - before[name] for name in ("iterations", "rows_computed"))
            walks += rows - rows**2 / (4 * iterations) if iterations else 0.0
            before = after
        return walks

    def work(self) -> Training:
        """Return what the last training did."""
        picks, updates = self.step_counts()
        return Training(
            points=self.data.points, padded=self.padded, chunk=self.chunk, groups=self.groups, group=self.group,
            **{name: self.tunables_used[name] for name in ("lanes", "rows", "width", "lane_points")},
            vectors=self.matrix.pitch // self.tunables_used["width"], slots=self.slots,
            first_order=bool(self.first_order), staged=self.staged_words > 0,
            resident=self.step_kernels == ("iterate",), picks=picks, updates=updates, models=len(self._history),
            iterations=self._last["iterations"], computed=self._last["rows_computed"], calls=self.walks(),
        )  # fmt: skip

    def traffic(self) -> Traffic:
        """Modelled, from the iterations and rows of the last training."""
        return self.work().traffic(self.matrix.buffer.nbytes, self.device.info.last_level_cache_bytes or 0)

    def notes(self) -> dict[str, Any]:
        """Counts of the last training, and the time of each kernel in one more, measured by device events."""
        kernels: dict[str, float] = {}

        def execute(enqueue: Callable[[], None]) -> None:
            for name, seconds in self.device.timed(enqueue, split=True).kernels.items():
                kernels[name] = kernels.get(name, 0.0) + seconds

        self._train(execute)
        support = int(np.count_nonzero(self.device.read(self.outputs[0], np.float32, (self.data.points,))))
        return {
            "iterations": self._last["iterations"], "converged": bool(self._last["done"]), "support_vectors": support,
            "cache_hits": self._last["cache_hits"], "rows_computed": self._last["rows_computed"],
            "cache_slots": self.slots, "kernel_seconds": kernels,
        }  # fmt: skip


class SmoFirstOrder(_Smo):
    """The most violating pair; its two rows in one pass over the data, as in the source."""

    name, title, rung = "smo_first_order", "most violating pair, both kernel rows in one pass", 1
    source = "Catanzaro 2011, SMO"
    first_order = 1


class SmoSecondOrder(_Smo):
    """The second point maximises the gain of the step: fewer iterations, one row at a time."""

    name, title, rung = "smo_second_order", "second-order choice of the second point", 2
    source = "Catanzaro 2011 (heuristics of its reference implementation); Fan, Chen, Lin 2005"
    first_order = 0


class SmoResident(SmoSecondOrder):
    """No launch for an iteration: work-groups stay on the device and wait for each other at barriers of the grid.

    There is a work-group for each compute unit of an NVIDIA GPU, which then runs them all at the same time, and a
    single one elsewhere: neither OpenCL C 1.2 nor its runtimes for CPUs promise that groups can wait for each other.
    """

    name, title, role, rung = "smo_resident", "second order, the whole training in one launch", "beyond", 3
    source = "beyond the source"
    step_kernels = ("iterate",)
    tunables: ClassVar[dict[str, Tunable]] = {
        **{name: tunable for name, tunable in _Smo.tunables.items() if name not in ("groups_per_unit", "batch")},
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 64, 128, 256, 512), "work-items of a work-group"),
        "rows": Tunable({"cpu": 4, "gpu": 5}, (1, 2, 3, 4, 5, 8), "points that a team reads side by side"),
        "staged": Tunable(
            {"cpu": 0, "gpu": 1}, (0, 1), "1: each work-group's points in local memory, where they fit (lanes > 1)"
        ),
    }

    def granule(self) -> int:
        """With a point for each work-item and teams for rows there is nothing to round up to."""
        lane_points: int = self.tunables_used["lane_points"]
        return lane_points if self.tunables_used["lanes"] > 1 else 16

    def most_groups(self) -> int:
        info = self.device.info
        return info.compute_units if "ptx" in info.capabilities else 1

    def macros(self, pitch: int) -> dict[str, int]:
        group, lanes, rows = (self.tunables_used[name] for name in ("group", "lanes", "rows"))
        words = (self.chunk + 1) * pitch  # the last is the point of the row
        trees, sums = 4 * group, 2 * group // lanes * rows * (lanes + 1)
        fits = 4 * (words + trees + sums + 64) <= self.device.info.local_memory_bytes
        self.staged_words = words if self.tunables_used["staged"] and lanes > 1 and fits else 0
        return {"RESIDENT": 1, "STAGED": int(self.staged_words > 0), "STAGED_WORDS": self.staged_words, "POLLS": POLLS}

    def first_batch(self) -> int:
        return ITERATION_LIMIT

    def iterate(self, count: int) -> None:
        self._run(self._steps[0], np.uint32(count), local_bytes=4 * self.staged_words)

    def step_counts(self) -> tuple[int, int]:
        """One pick finds that training is over; no update has to ask."""
        return self._last["iterations"] + self._last["done"], 0


class SmoWorkingSets(_Smo):
    """Many points at a time: a step of the whole device for hundreds of steps of one work-group.

    Decomposition (T. Joachims, "Making Large-Scale SVM Learning Practical", 1999) with working sets of a size for
    GPUs (Z. Wen et al., "ThunderSVM", JMLR 19, 2018), but that each chunk of points sends its two worst, unsorted.
    """

    name, title, role, rung = "smo_working_sets", "working sets of many points, solved by one work-group", "beyond", 4
    source = "beyond the source; Joachims 1999; Wen et al. 2018"
    first_order = 1
    kernels = "smo_sets.cl"
    step_kernels = ("choose", "fill", "gather", "solve", "update")
    tunables: ClassVar[dict[str, Tunable]] = {
        **{name: tunable for name, tunable in _Smo.tunables.items() if name not in ("groups_per_unit", "batch")},
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 64, 128, 256, 512), "work-items per work-group"),
        "chunks": Tunable(
            {"cpu": 64, "gpu": 256}, (64, 128, 256, 512), "chunks of points: half the members of a set, at most"
        ),
        "batch": Tunable(16, (4, 8, 16, 32), "working sets enqueued before the host looks"),
    }

    def granule(self) -> int:
        lane_points: int = self.tunables_used["lane_points"]
        return lane_points if self.tunables_used["lanes"] > 1 else 16

    def most_groups(self) -> int:
        """No more than let all members' rows lie in the cache at a time."""
        chunks: int = self.tunables_used["chunks"]
        return min(chunks, self.slots // 2)

    def macros(self, pitch: int) -> dict[str, int]:
        group, lanes, rows = (self.tunables_used[name] for name in ("group", "lanes", "rows"))
        self.members = 2 * self.groups
        self.tile = group // lanes * rows if lanes > 1 else 256
        # To and fro between two members may take long where the others hold them back: they come again in the next set.
        return {
            "RESIDENT": 0, "STAGED": 0, "MEMBERS": self.members, "TILE": self.tile, "FILLERS": FILLERS,
            "STEP_LIMIT": 16 * self.members,
        }  # fmt: skip

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        gram, members = setup.scratch(4 * self.members**2), setup.scratch(4 * (5 * self.members + 2))
        launches = (1, FILLERS * ceil_div(self.padded, self.tile), self.members, 1, self.groups)
        self._set = tuple(zip(self._steps, launches, strict=True)), (gram, members)

    def next_batch(self, batch: int) -> int:
        return batch

    def walks(self) -> float:
        return self._last["walks"]

    def traffic(self) -> Traffic:
        """As above, with the work of the sets."""
        last = self._last
        sets = WorkingSets(
            replace(self.work(), chunk=self.tile), self.chunk, self.tile, FILLERS, enqueued=self._enqueued,
            sets=last["sets"], hits=last["cache_hits"], stepped=last["stepped"],
        )  # fmt: skip
        return sets.traffic(self.matrix.buffer.nbytes, self.device.info.last_level_cache_bytes or 0)

    def iterate(self, count: int) -> None:
        launches, buffers = self._set
        for _ in range(count):
            for kernel, groups in launches:
                self.device.launch(kernel, groups, self.group, *self.memory, *buffers)


def _literal(value: np.float32) -> str:
    """A C literal that is exactly this float."""
    return f"{float(value)!r}f"
