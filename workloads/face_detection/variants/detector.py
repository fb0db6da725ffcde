"""Detection on the integral images of a problem's frames: buffers, kernels, launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfport.workload import Buffer, Kernel, OpenDevice, Setup, Traffic, UsageError, ceil_div

from ..problems import Windows
from . import inputs, layout
from .configuration import Configuration, Launch
from .detection_traffic import DetectionTraffic
from .integrals import Integrals

CONSTANT_BYTES = 65_536  # what every OpenCL device of the full profile has for constants
ITEMS = 64  # of a work-group that resets, or writes the queue of all windows


@dataclass(frozen=True)
class Passing:
    """The list of passing windows on the device: their numbers in any order, and how many they are."""

    numbers: Buffer
    count: Buffer
    capacity: int

    def read(self, device: OpenDevice) -> np.ndarray:
        """Read back the numbers, ascending, int64. Raises `UsageError` where they overflow."""
        count = int(device.read(self.count, np.uint32, (1,))[0])
        if count > self.capacity:
            raise UsageError(f"capacity: {count} windows pass, the list holds {self.capacity}")
        return np.sort(device.read(self.numbers, np.uint32, (count,)).astype(np.int64))


class Detector:
    """A step: integral images, and the windows that pass the cascade, for one group of levels after the other."""

    def __init__(self, setup: Setup, configuration: Configuration, integrals: Integrals, passing: Passing) -> None:
        self.setup, self.device = setup, setup.device
        self.problem: Windows = setup.problem
        self.configuration, self.integrals, self.passing = configuration, integrals, passing
        techniques, image = configuration.techniques, configuration.image
        self.nodes = inputs.tile_nodes(setup, image) if image else inputs.nodes(setup, techniques.offsets)
        self.in_constants = techniques.constant and self.nodes.buffer.nbytes <= CONSTANT_BYTES
        self.macros: dict[str, Any] = {
            **configuration.macros(),
            "CONSTANT": int(self.in_constants), "PACKED": int(self.nodes.packed), "INSTRUMENT": 0,
        }  # fmt: skip
        self.reset, self.kernel = self._kernel("reset"), self._kernel("detect")
        self.tickets = setup.scratch(4 * len(configuration.launches))
        self.queue = setup.scratch(8 * self.problem.windows if techniques.global_queue else 8)
        self.enqueue = self._kernel("enqueue") if techniques.global_queue else None
        pyramid = self.problem.pyramid
        self._levels = (
            inputs.levels(setup, integrals.strip, configuration.tile), np.uint32(len(pyramid.levels)),
        )  # fmt: skip
        units = sum(map(configuration.units, pyramid.levels))
        self._frame = (np.uint32(units), *map(np.uint32, layout.division(units)))
        self._cascade = (self.nodes.buffer, *inputs.rest_of_cascade(setup, self.nodes.packed))

    def _kernel(self, name: str) -> Kernel:
        return self.setup.kernel(self.configuration.file, name, **self.macros)

    def launch(self) -> None:
        """Enqueue one detection."""
        self.detect(self.kernel)

    def detect(self, kernel: Kernel, counters: Mapping[str, Buffer] | None = None) -> None:
        """Enqueue one detection by ``kernel``; ``counters`` are those of an instrumented one."""
        configuration, pitch = self.configuration, np.uint32(self.problem.pyramid.pitch)
        launches = np.uint32(len(configuration.launches))
        self.device.launch(self.reset, 1, ITEMS, self.tickets, launches, self.passing.count)
        if self.enqueue:
            groups = ceil_div(self.problem.windows, ITEMS)
            arguments = (*self._levels, pitch, *self._frame, np.uint32(self.problem.windows), self.queue)
            self.device.launch(self.enqueue, groups, ITEMS, *arguments)
        number = first_group = 0
        for levels in self.problem.pyramid.groups:
            self.integrals.launch(levels)
            for launch in configuration.of_group(levels):
                extra: tuple[Any, ...] = ()
                if counters:
                    extra = (counters["groups"], np.uint32(first_group), counters["entered"])
                self._launch(kernel, launch, number, extra)
                number, first_group = number + 1, first_group + configuration.groups(launch)

    def _launch(self, kernel: Kernel, launch: Launch, number: int, extra: tuple[Any, ...]) -> None:
        """Enqueue the launch of this number."""
        configuration, pyramid, image = self.configuration, self.problem.pyramid, self.configuration.image
        self.device.launch(
            kernel, configuration.groups(launch), configuration.group, self.integrals.sums, *self._cascade,
            *self._levels, np.uint32(launch.level), np.uint32(pyramid.pitch), np.uint32(self.integrals.plane),
            np.uint64(self.integrals.frame_words), np.uint32(pyramid.windows), *self._frame, np.uint32(launch.first),
            np.uint32(launch.units), self.queue, self.tickets, np.uint32(number), self.passing.count,
            self.passing.numbers, np.uint32(self.passing.capacity), *extra,
            local_bytes=image.nbytes if image else 0,
        )  # fmt: skip

    def traffic(self) -> Traffic:
        """Modelled from the counts of the reference, which an instrumented build confirms."""
        model = DetectionTraffic(self.configuration, self.nodes, self.in_constants)
        return Traffic.total(self.integrals.traffic(), model.traffic(self.integrals.spilled_bytes))
