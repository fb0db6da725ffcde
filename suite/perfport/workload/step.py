"""A step of an execution: it enqueues launches, and says what they cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from ..model.work import Traffic


class Step(Protocol):
    """Anything that enqueues and says what that causes."""

    def launch(self) -> None:
        """Enqueue the launches on the device's own queue."""
        ...

    def traffic(self) -> Traffic | None:
        """Modelled bytes and operations of the last launches; ``None`` where nobody knows."""
        ...


@dataclass(frozen=True)
class Enqueue:
    """A step made of a function that enqueues, and of the traffic that this causes each time."""

    enqueue: Callable[[], None]
    causes: Traffic

    def launch(self) -> None:
        """As of `Step`."""
        self.enqueue()

    def traffic(self) -> Traffic:
        """As of `Step`."""
        return self.causes


def total_traffic(steps: Iterable[Step]) -> Traffic | None:
    """Return the sum of what steps cause; ``None`` where that of one is not known, or there is none.

    The traffic of a single step stays as it is: the bytes of the second-level cache are not unknown.
    """
    parts = [step.traffic() for step in steps]
    if len(parts) == 1:
        return parts[0]
    known = [part for part in parts if part]
    return Traffic.total(*known) if known and len(known) == len(parts) else None
