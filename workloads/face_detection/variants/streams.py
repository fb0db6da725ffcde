"""Detectors for CPUs: one work-item to a tile, vectors of neighbouring windows (kernels/detect_vectors.cl)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from perfport.workload import Kernel, Setup, Traffic, UnsupportedError, UsageError

from . import stream_tables, stream_traffic
from .configuration import Configuration, Launch, Techniques
from .detector import Detector, Passing
from .integrals import STRIP, Integrals
from .stream_integrals import LineIntegrals
from .tile import TileImage

#: The tunables that the kernel knows.
TUNABLES = ("vector", "tile", STRIP)
#: One launch of a work-item for each tile; the kernel knows no other way.
TECHNIQUES = Techniques(persistent=False, dynamic=False, offsets=True, shifts=True)


@dataclass(frozen=True)
class Vectors(Configuration):
    """Tiles whose windows go through the stages ``vector`` at a time."""

    image: TileImage
    vector: int

    @property
    def file(self) -> str:
        """The kernel file."""
        return "detect_vectors.cl"

    def macros(self) -> dict[str, Any]:
        """The macros of the kernels that follow from it."""
        return {**super().macros(), "VECTOR": self.vector}


def configure(setup: Setup) -> Vectors:
    """Return what the tunables come to: tiles are halved until local memory holds the image under one."""
    problem, vector, side = setup.problem, setup.tunables["vector"], setup.tunables["tile"]
    if setup.device.info.kind != "cpu":
        raise UnsupportedError(f"vector: windows as vectors are for CPUs, {setup.device.info.id} is none")
    if not side:
        raise UsageError(f"vector: with {vector}, expected a tile, got tile 0")
    step = max(level.step for level in problem.pyramid.levels)
    room = setup.device.info.local_memory_bytes - 4  # an instrumented build has a counter there
    while (image := stream_tables.image(side, step, problem.cascade, problem.tilted)).nbytes > room:
        side //= 2
        if side < vector:
            raise UnsupportedError(
                f"vector: a tile of {vector} x {vector} windows takes more than {room} bytes of local memory"
            )
    return Vectors(
        problem=problem, techniques=TECHNIQUES, image=image, group=1, batch=side**2, single=0, together=0, per_item=1,
        by_bank=0, resident=0, vector=vector,
    )  # fmt: skip


class StreamDetector(Detector):
    """The step with tables and arguments of its own kernel, which takes no table of the base class."""

    configuration: Vectors

    def __init__(self, setup: Setup, configuration: Vectors, integrals: Integrals, passing: Passing) -> None:
        super().__init__(setup, configuration, integrals, passing)
        cascade, image = self.problem.cascade, configuration.image
        upload = self.device.upload
        self._tables = (
            setup.input(f"vector nodes {image}", lambda: upload(stream_tables.nodes(cascade, image))),
            setup.input("roots", lambda: upload(cascade.tree_first)),
            setup.input("leaves", lambda: upload(cascade.leaves)),
            setup.input("vector stages", lambda: upload(stream_tables.stages(cascade))),
        )

    def _launch(self, kernel: Kernel, launch: Launch, number: int, extra: tuple[Any, ...]) -> None:
        configuration, pyramid = self.configuration, self.problem.pyramid
        self.device.launch(
            kernel, configuration.groups(launch), 1, self.integrals.sums, *self._tables, *self._levels,
            np.uint32(pyramid.pitch), np.uint32(self.integrals.plane), np.uint64(self.integrals.frame_words),
            np.uint32(pyramid.windows), *self._frame, np.uint32(launch.first), self.passing.count,
            self.passing.numbers, np.uint32(self.passing.capacity), *extra, local_bytes=configuration.image.nbytes,
        )  # fmt: skip

    def traffic(self) -> Traffic:
        """Modelled from the counts of the reference, which an instrumented build confirms."""
        configuration = self.configuration
        vectors = stream_traffic.detection(self.problem, configuration.image, configuration.vector)
        return Traffic.total(self.integrals.traffic(), Traffic(dram_read=self.integrals.spilled_bytes), vectors)


def detector(setup: Setup, passing: Passing) -> StreamDetector:
    """Return the step that the tunables describe.

    Raises
    ------
    UnsupportedError
        On a device that is no CPU, and where local memory holds no image of a tile that is as wide as a vector.
    UsageError
        Without tiles.
    """
    return StreamDetector(setup, configure(setup), LineIntegrals(setup), passing)
