"""What a ceiling is made of: the shapes to sweep, and how to run one of them."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...backend import OpenDevice
from .bench import Bench
from .entry import Ceiling

Shape = dict[str, Any]

#: Device time of one sample, where the work can be scaled: launching and the tail then do not count.
SAMPLE_S = 3e-3
#: So many times as long on a CPU, of values that are kept: its threads may wait for some ms until the operating system
#: runs them side by side.
CPU_TIMES = 10
MAX_SCALE = 1 << 14
#: How often the work is scaled, at most: a short execution takes longer than its share, which says too little.
SCALINGS = 3


def grid(**axes: Sequence[Any]) -> Iterator[Shape]:
    """Yield every combination of the axes' values."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def label(shape: Shape) -> str:
    """Return a shape as one line."""
    return " ".join(f"{name}={value}" for name, value in shape.items())


class NoCeilingError(Exception):
    """What ran is not what is counted, or it gave up: its time is no ceiling. The text says why."""


@dataclass(frozen=True)
class Execution:
    """One execution of a shape.

    Attributes
    ----------
    run : callable
        Enqueues it.
    amount : float
        Bytes or operations that it does.
    prepare : callable, optional
        Enqueues what has to be done ahead of it, outside the timed window.
    check : callable
        Compares what it has left with what was asked for. Raises `NoCeilingError`.
    """

    run: Callable[[], None]
    amount: float
    prepare: Callable[[], None] | None = None
    check: Callable[[], None] = lambda: None

    def seconds(self, device: OpenDevice) -> float:
        """Execute it once and return the device's time. Raises `NoCeilingError`."""
        span = device.timed(self.run, self.prepare).span
        self.check()
        return span


@dataclass(frozen=True)
class Kind(ABC):
    """One ceiling.

    Attributes
    ----------
    name, unit, direction
        As in `Ceiling`.
    needs : tuple of str
        Capabilities of the device without which there is no such ceiling.
    """

    name: str
    unit: str
    direction: Literal["higher", "lower"] = field(default="higher", kw_only=True)
    needs: tuple[str, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def shapes(self, bench: Bench, full: bool) -> Iterable[Shape]:
        """Return the shapes to sweep: those that have won somewhere, or all of them."""

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return so many values of one shape. Raises `NoCeilingError` where what ran is not what is counted."""
        raise NotImplementedError

    def curve(self, bench: Bench, shape: Shape, value: float) -> list[tuple[float, float]]:
        """Return how the ``value`` of the best shape depends on its working set; empty where it has none."""
        return []

    def absent(self, bench: Bench, entry: Ceiling, others: dict[str, Ceiling]) -> str:
        """Return why what was measured is no ceiling of this name, or nothing."""
        return ""


class Rate(Kind):
    """A ceiling that is an amount over the device time of one execution, whose work can be scaled.

    Where lower is better it is the time over the amount.
    """

    @abstractmethod
    def execution(self, bench: Bench, shape: Shape, scale: int) -> Execution:
        """Return the execution of a shape that does ``scale`` times the least work."""

    def samples(self, bench: Bench, shape: Shape, count: int) -> list[float]:
        """Return rates, after runs that warm up and say how much work fills a sample."""
        wanted = SAMPLE_S * (CPU_TIMES if bench.cpu and bench.keeps else 1)
        scale, chosen = 1, self.execution(bench, shape, 1)
        chosen.seconds(bench.device)
        for _ in range(SCALINGS):
            # The shorter of two: one that was interrupted would pass for long enough.
            span = max(min(chosen.seconds(bench.device) for _ in range(2)), 1e-9)
            if span >= wanted / 2 or scale == MAX_SCALE:
                break
            scale = min(math.ceil(scale * wanted / span), MAX_SCALE)
            chosen = self.execution(bench, shape, scale)
        spans = [chosen.seconds(bench.device) for _ in range(count)]
        return [span / chosen.amount if self.direction == "lower" else chosen.amount / span for span in spans]
