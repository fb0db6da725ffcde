"""What the host takes part in: launching kernels, and transfers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .bench import Bench
from .kind import Kind, Shape, grid


@dataclass(frozen=True)
class Launch(Kind):
    """Device time from one empty kernel to the next, of many that are queued before the first starts."""

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return numbers of launches, and of work-groups."""
        groups = (1, bench.info.compute_units)
        return grid(launches=(50, 200, 500) if full else (200,), group=(1,), groups=groups if full else groups[:1])

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return seconds per launch."""
        kernel, launches = bench.kernel("empty.cl", "empty", {}), shape["launches"]

        def execute() -> None:
            for _ in range(launches):
                bench.device.launch(kernel, shape["groups"], shape["group"])

        bench.device.timed(execute)
        return [bench.device.timed(execute).span / launches for _ in range(count)]


@dataclass(frozen=True)
class Empty(Kind):
    """The span of an execution that is one launch of a kernel that does nothing: no execution takes less."""

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return the one shape."""
        return grid(groups=(1,), group=(1,))

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return seconds."""
        kernel = bench.kernel("empty.cl", "empty", {})

        def execute() -> None:
            bench.device.launch(kernel, shape["groups"], shape["group"])

        bench.device.timed(execute)
        return [bench.device.timed(execute).span for _ in range(count)]


@dataclass(frozen=True)
class Transfer(Kind):
    """A copy between host and device, by the host's clock; the device has finished before and after."""

    to_device: bool
    pinned: bool

    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return sizes of the copy."""
        sizes = (1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20) if full else (4 << 20, 64 << 20)
        return grid(bytes=tuple(size for size in sizes if size <= bench.info.max_alloc_bytes))

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return bytes per second."""
        nbytes = shape["bytes"]
        host, buffer = bench.host(self.pinned, nbytes), bench.buffer(f"transfer {nbytes}", nbytes)

        def seconds() -> float:
            bench.device.finish()
            start = time.perf_counter()
            if self.to_device:
                bench.device.write(buffer, host)
            else:
                bench.device.read(buffer, np.uint8, (nbytes,), host)
            bench.device.finish()
            return time.perf_counter() - start

        seconds()
        return [nbytes / seconds() for _ in range(count)]
