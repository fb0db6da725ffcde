"""Variants of `smo_train`: sequential minimal optimisation with first- and second-order choice of the working set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Setup, Traffic, Tunable, UnsupportedError, Variant, ceil_div, round_up

from ..smo import SmoTrain
from . import inputs
from .training_work import Training

MIB = 1 << 20
ITERATION_LIMIT = 10_000_000
BATCH_LIMIT = 1024  # iterations; a queue should not hold more launches
STATUS_WORDS = ("done", "iterations", "cache_hits", "rows_computed")


class _Smo(Variant):
    """Everything happens on the device: the host enqueues batches of iterations and reads a few words after each.

    Iterations enqueued beyond convergence do nothing. A batch is about an eighth of the iterations so far, so that
    neither reading back nor the surplus costs much. A training that has not converged after `ITERATION_LIMIT`
    iterations ends, and its model fails the check.
    """

    problem = SmoTrain
    host_driven = True
    first_order: ClassVar[int]
    iterate_kernel: ClassVar[str | None] = None  # does a whole batch in one launch, by one work-group
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
        self.padded = round_up(problem.points, 16)
        groups = self.device.info.compute_units * tunables["groups_per_unit"] if self.iterate_kernel is None else 1
        chunk = round_up(ceil_div(self.padded, groups), 16)
        self.chunk, self.groups, self.group = chunk, ceil_div(self.padded, chunk), tunables["group"]
        nbytes = min(problem.parameters.cache_mb * MIB, self.device.info.max_alloc_bytes)
        self.slots = int(min(max(2, nbytes // (4 * self.padded)), max(2, problem.points)))
        macros = {
            "NPOINTS": problem.points, "PADDED": self.padded, "CHUNK": chunk, "GROUPS": self.groups,
            "SLOTS": self.slots, "FIRST_ORDER": self.first_order,
            "GAMMA": _literal(problem.gamma), "PENALTY": _literal(problem.penalty), "TAU": _literal(problem.tau),
        }  # fmt: skip
        steps = ("pick", "update") if self.iterate_kernel is None else (self.iterate_kernel, self.iterate_kernel)
        self._reset, self._pick, self._update, self._model = (
            setup.kernel("smo.cl", name, **macros) for name in ("reset", *steps, "model")
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

    def _words(self) -> int:
        return 3 * self.padded + 2 * self.slots + 6 * self.groups + 32

    def _run(self, kernel: Any, *more: Any) -> None:
        self.device.launch(kernel, self.groups, self.group, *self.memory, *more)

    def _train(self, execute: Callable[[Callable[[], None]], None]) -> None:
        """One training; ``execute`` runs each batch."""

        def begin() -> None:
            self._run(self._reset)

        def iterate() -> None:
            self.iterate(batch)
            self._run(self._model, self._status, *self.outputs)

        self._history, self._enqueued = [], 0
        execute(begin)
        batch = self.tunables_used["batch"]
        while True:
            execute(iterate)
            self._enqueued += batch
            words = self.device.read(self._status, np.int32, (len(STATUS_WORDS),))
            self._last = dict(zip(STATUS_WORDS, words.tolist(), strict=True))
            self._history.append(self._last)
            if self._last["done"] or self._last["iterations"] >= ITERATION_LIMIT:
                return
            batch = max(batch, min(self._last["iterations"] // 8, BATCH_LIMIT))

    def iterate(self, count: int) -> None:
        """Enqueue iterations."""
        for _ in range(count):
            self._run(self._pick)
            self._run(self._update)

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

    def traffic(self) -> Traffic:
        """Modelled, from the iterations and rows of the last training."""
        picks, updates = self.step_counts()
        training = Training(
            points=self.data.points, padded=self.padded, chunk=self.chunk, groups=self.groups, group=self.group,
            **{name: self.tunables_used[name] for name in ("lanes", "rows", "width", "lane_points")},
            vectors=self.matrix.pitch // self.tunables_used["width"], slots=self.slots,
            first_order=bool(self.first_order), picks=picks, updates=updates, models=len(self._history),
            iterations=self._last["iterations"], computed=self._last["rows_computed"], calls=self.walks(),
        )  # fmt: skip
        return training.traffic(self.matrix.buffer.nbytes, self.device.info.last_level_cache_bytes or 0)

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
    """No launch per iteration: what small problems on devices with slow launches gain, for one compute unit's speed."""

    name, title, role, rung = "smo_resident", "second order, one work-group, many iterations per launch", "beyond", 3
    source = "beyond the source"
    iterate_kernel = "iterate"
    tunables: ClassVar[dict[str, Tunable]] = {
        **{name: tunable for name, tunable in _Smo.tunables.items() if name != "groups_per_unit"},
        "group": Tunable({"cpu": 1, "gpu": 256}, (1, 64, 128, 256, 512), "work-items of the work-group"),
        "rows": Tunable({"cpu": 4, "gpu": 2}, (1, 2, 4, 8), "points that a team reads side by side"),
        "batch": Tunable(256, (64, 256, 1024), "iterations in the first launch"),
    }

    def iterate(self, count: int) -> None:
        self._run(self._pick, np.uint32(count))

    def step_counts(self) -> tuple[int, int]:
        """Each pick is followed by a look at its outcome, and by an update but for the last."""
        iterations = self._last["iterations"]
        return iterations + self._last["done"], 2 * iterations + self._last["done"]


def _literal(value: np.float32) -> str:
    """A C literal that is exactly this float."""
    return f"{float(value)!r}f"
