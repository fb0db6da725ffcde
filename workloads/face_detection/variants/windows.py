"""Variants of `windows`: the source's ladder, each rung one technique more; ablations are tunables of the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Problem, Setup, Step, Tunable, Variant

from ..problems import Windows
from . import instrumented
from .configuration import Techniques, configure
from .detector import Detector, Passing
from .integrals import Integrals

IMAGES = {
    "strip": Tunable({"cpu": 256, "gpu": 32}, (16, 32, 64, 256), "rows of a column that one work-item sums"),
    "scan_group": Tunable({"cpu": 1, "gpu": 128}, (1, 64, 128, 256), "work-items that sum a row"),
    "column_group": Tunable({"cpu": 64, "gpu": 128}, (64, 128, 256), "work-items side by side that sum columns"),
}
STATIC = {
    "work_group": Tunable({"cpu": 16, "gpu": 256}, (16, 32, 64, 128, 256), "work-items of a work-group"),
    "batch": Tunable({"cpu": 256, "gpu": 256}, (32, 64, 128, 256), "windows of a work-group"),
}
COARSE = {
    "work_group": Tunable({"cpu": 16, "gpu": 32}, (16, 32, 64), "work-items: one hardware thread"),
    "batch": Tunable({"cpu": 256, "gpu": 32}, (32, 64, 128, 256), "windows that a work-group takes at a time"),
}
PERSISTENT = {"groups_per_cu": Tunable({"cpu": 4, "gpu": 12}, (4, 8, 12, 16, 32), "work-groups per compute unit")}
LOCAL = {
    "cooperative_windows": Tunable(
        {"cpu": 0, "gpu": 2}, (0, 2, 4, 8, 16), "M: windows from the local queue at a time; 0: by its length"
    ),
    "single_item_stages": Tunable(3, (1, 2, 3, 5), "stages that take one work-item per window"),
}
SWITCH = (0, 1)
SOURCE = "optimisation of Viola-Jones face detection"


class Detecting(Variant):
    """A detector by one set of techniques; of `windows` unless said otherwise."""

    problem: ClassVar[type[Problem]] = Windows
    needs = ("fp64",)  # the standard deviation of a window, as OpenCV computes it
    source = SOURCE
    techniques: ClassVar[Techniques]

    def __init__(self, setup: Setup) -> None:
        capacity = setup.problem.parameters.capacity
        self.detector = self.detecting(setup, Passing(*self.lists(setup, capacity), capacity))
        self.steps: Sequence[Step] = (self.detector,)

    def detecting(self, setup: Setup, passing: Passing) -> Detector:
        """The step that finds the windows that pass."""
        techniques = self.chosen(setup)
        integrals = Integrals(setup, per_level=not techniques.uberkernel)
        return Detector(setup, configure(setup, techniques), integrals, passing)

    def lists(self, setup: Setup, capacity: int) -> tuple[Buffer, Buffer]:
        """Where the windows that pass and their number go: here they are outputs."""
        return setup.output("windows", np.uint32, capacity), setup.output("count", np.uint32, 1)

    def chosen(self, setup: Setup) -> Techniques:
        """The techniques that this variant uses."""
        return self.techniques

    def notes(self) -> dict[str, Any]:
        """Figures of an instrumented build."""
        return {
            **instrumented.figures(self.detector), "windows": self.detector.problem.windows,
            "nodes_in_constant_memory": self.detector.in_constants, "tile": self.detector.configuration.tile,
        }  # fmt: skip


class PerScale(Detecting):
    """Pyramid, integral images and windows level by level."""

    name, title, rung = "per_scale", "one launch per level, one work-item per window", 1
    techniques = Techniques(uberkernel=False, persistent=False, dynamic=False)
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **STATIC}


class Uberkernel(Detecting):
    """All levels lie in one atlas."""

    name, title, rung = "uberkernel", "all levels in one launch", 2
    techniques = Techniques(persistent=False, dynamic=False)
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **STATIC}


class CoarseGrained(Detecting):
    """No barrier is needed within a hardware thread."""

    name, title, rung = "coarse_grained", "a work-group is one hardware thread and the unit of assignment", 3
    techniques = Techniques(persistent=False, dynamic=False)
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **COARSE}


class PersistentThreads(Detecting):
    """Batches are dealt out by the work-group's number."""

    name, title, rung = "persistent_threads", "a fixed number of work-groups loop over the batches", 4
    techniques = Techniques(dynamic=False)
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **COARSE, **PERSISTENT}


class DynamicMapping(Detecting):
    """A window's place is computed from its number."""

    name, title, rung = "dynamic_mapping", "work-groups take the next batch from a global counter", 5
    techniques = Techniques()
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **COARSE, **PERSISTENT}


class GlobalQueue(Detecting):
    """Writing the queue is part of every execution."""

    name, title, rung = "global_queue", "all windows written out as a queue in global memory", 6
    techniques = Techniques(global_queue=True)
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **COARSE, **PERSISTENT}


class LocalQueue(Detecting):
    """The work-items that lost their windows help with the others."""

    name, title, rung = "local_queue", "windows that survive the first stages queue in local memory", 7
    techniques = Techniques(global_queue=True, local_queue=True)
    tunables: ClassVar[dict[str, Tunable]] = {**IMAGES, **COARSE, **PERSISTENT, **LOCAL}


class Tuned(Detecting):
    """Everything; each technique is a tunable, so that it can be switched off alone."""

    name, title, rung = "tuned", "instruction-level work; every technique can be switched off", 8
    tunables: ClassVar[dict[str, Tunable]] = {
        **IMAGES, **COARSE, **PERSISTENT, **LOCAL,
        "work_group": Tunable({"cpu": 16, "gpu": 32}, (16, 32, 64, 128, 256), "work-items of a work-group"),
        "batch": Tunable({"cpu": 256, "gpu": 32}, (32, 64, 128, 256, 512, 1024), "windows taken at a time"),
        "uberkernel": Tunable(1, SWITCH, "all levels in one launch"),
        "persistent": Tunable(1, SWITCH, "a fixed number of work-groups (0 needs dynamic 0)"),
        "dynamic": Tunable(1, SWITCH, "batches from a counter"),
        "global_queue": Tunable(1, SWITCH, "windows from a queue in global memory"),
        "local_queue": Tunable(1, SWITCH, "survivors of the first stages in a queue in local memory"),
        "offsets": Tunable(1, SWITCH, "corners of rectangles as offsets; loads grouped ahead of arithmetic"),
        "shifts": Tunable(1, SWITCH, "divisions by multiply and shift, 24-bit multiplications"),
        "select": Tunable(1, SWITCH, "selections in place of branches"),
        "unroll": Tunable(2, (1, 2, 4), "trees per step of the loop over a stage"),
        "constant": Tunable(1, SWITCH, "the cascade in constant memory where it fits"),
    }  # fmt: skip

    def chosen(self, setup: Setup) -> Techniques:
        """Those that the tunables switch on."""
        switches = {name: setup.tunables[name] for name in Techniques.__dataclass_fields__}
        return Techniques(**{name: value if name == "unroll" else bool(value) for name, value in switches.items()})
