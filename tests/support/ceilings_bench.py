"""A bench with small arrays, and ceilings that are made up."""

from __future__ import annotations

from typing import Any

from perfport.backend import OpenDevice
from perfport.measure.ceilings import (
    KINDS,
    Ceiling,
)
from perfport.measure.ceilings.bench import Bench
from perfport.measure.ceilings.kind import Rate, Shape

SMALL = 3 << 20


RATES = [name for name, one in KINDS.items() if isinstance(one, Rate) and not one.needs]


class SmallBench(Bench):
    """Small arrays, and no flush between samples."""

    def __init__(self, device: OpenDevice) -> None:
        super().__init__(device)
        self.nbytes = SMALL

    def flush(self) -> None:
        """Leave the cache alone."""


def small(device: OpenDevice) -> Bench:
    return SmallBench(device)


def some(bench: Bench, name: str, full: bool = False) -> list[Shape]:
    """The quick shapes of a ceiling, each form of the kernel once."""
    found: dict[tuple[Any, ...], Shape] = {}
    for shape in KINDS[name].shapes(bench, full):
        found.setdefault(tuple(v for key, v in shape.items() if key not in ("groups", "group", "set_bytes")), shape)
    return list(found.values())


def made(value: float, **more: Any) -> Ceiling:
    """A ceiling with an interval of 1 % to either side."""
    return Ceiling(value=value, low=0.99 * value, high=1.01 * value, **{"unit": "B/s", **more})
