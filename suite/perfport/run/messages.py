"""What a worker tells its parent. The parent sends one kind of message, a `perfport.run.cases.Group`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.record import Record, Status


@dataclass(frozen=True)
class StepStarted:
    """A step is about to be taken: of the case of this key, or of the group as a whole.

    A crash or a missed time-out from here on is that case's.
    """

    key: str | None
    step: str


@dataclass(frozen=True)
class CeilingsInUse:
    """The ceilings that bound the cases of a device from here on, as the environment file holds them."""

    device: str
    values: dict[str, Any]


@dataclass(frozen=True)
class CeilingsProbed:
    """A probe of ceilings beside a group, as the environment file holds it."""

    probe: dict[str, Any]


@dataclass(frozen=True)
class CaseFinished:
    """A case has its record."""

    record: Record


@dataclass(frozen=True)
class GroupFinished:
    """Every case of the group has its record; the worker waits for the next group."""


@dataclass(frozen=True)
class WorkerFailed:
    """An error outside compile and verify; the worker ends."""

    status: Status
    log: str


@dataclass(frozen=True)
class DeviceLost:
    """The device reports an error that outlasts its case; the worker ends."""


Message = StepStarted | CeilingsInUse | CeilingsProbed | CaseFinished | GroupFinished | WorkerFailed | DeviceLost
