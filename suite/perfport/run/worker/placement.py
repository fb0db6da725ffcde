"""The metric of a measured case, and its place under the bounds."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ...backend import OpenDevice
from ...machine.device_profile import match_profile
from ...measure.roofline import datasheet_ceilings, impossible, place, scattered
from ...model.arithmetic import geometric_mean
from ...model.errors import DeviceMemoryError
from ...model.record import Failure, Interval, MetricValue, Record, Status
from ...workload import Problem
from .probing import GroupCeilings


class Placement:
    """Fills in what a record derives from its timing.

    Parameters
    ----------
    device : OpenDevice
    problems : sequence of Problem
        The problem of the group on each instance of its inputs.
    ceilings : GroupCeilings
    """

    def __init__(self, device: OpenDevice, problems: Sequence[Problem], ceilings: GroupCeilings) -> None:
        profile = match_profile(device.info.name, device.info.kind)
        self._datasheet = datasheet_ceilings(profile) if profile else {}
        self._merged = device.info.kind == "cpu"
        self._problems = problems
        self._ceilings = ceilings

    def place(self, record: Record) -> None:
        """Fill in metric and bounds; a time that the problem bound does not allow makes the record ``impossible``.

        Ceilings whose probe stayed disturbed make it ``contended``, without bounds, unless it is impossible under the
        stored ones; and so does a time far below the bound that only a wide interval allows.
        """
        assert record.timing
        taken = record.timing.ranked
        record.metric = self._metric(taken)
        if record.identity.device_count > 1:  # ceilings are of one device
            record.ceilings = self._ceilings.values
            self.contend(record)
            return
        self._bound(record)
        if impossible(record.problem_bound) or scattered(
            record.problem_bound
        ):  # unless the ceilings were taken in a bad moment
            with contextlib.suppress(DeviceMemoryError):
                self._ceilings.take(self._ceilings.probe("again"))
            self._bound(record)
        if (bound := record.problem_bound) and impossible(bound):
            record.status = Status.IMPOSSIBLE
            record.failure = Failure(
                reason=f"{taken.value:.3g} s is less than the problem bound of {bound.seconds:.3g} s allows "
                f"({bound.share.value:.0%} of the {bound.binding} bound, which is at least {bound.low:.3g} s): "
                "the declared work, the clock or the ceiling is wrong"
                + (f" (swept again after the group: {self._ceilings.anew})" if self._ceilings.anew else "")
            )
        elif bound and scattered(bound) and record.status is Status.OK:
            self._contend(
                record,
                f"{taken.value:.3g} s is less than the problem bound of {bound.seconds:.3g} s allows "
                f"({bound.share.value:.0%} of the {bound.binding} bound), but samples reach {taken.high:.3g} s, "
                f"and the ceilings' intervals a bound of {bound.low:.3g} s",
            )
        self.contend(record)

    def contend(self, record: Record) -> bool:
        """Make an ``ok`` record ``contended`` where a probe stayed disturbed; return whether that was so."""
        if record.status is not Status.OK:
            return False
        assert record.timing
        if not (reason := self._ceilings.disturbed_for(record.timing.ranked.value)):
            return False
        self._contend(record, reason)
        return True

    @staticmethod
    def _contend(record: Record, reason: str) -> None:
        record.status = Status.CONTENDED
        record.failure = Failure(reason=reason)
        record.problem_bound = record.datasheet_bound = record.variant_bound = None  # nobody knows the ceilings

    def _metric(self, taken: Interval) -> MetricValue:
        metric = self._problems[0].metric
        values = [self._mean_metric(seconds) for seconds in (taken.value, taken.low, taken.high)]
        return MetricValue(
            tag=metric.tag, unit=metric.unit, direction=metric.direction,
            value=values[0], low=min(values), high=max(values),
        )  # fmt: skip

    def _mean_metric(self, seconds: float) -> float:
        values = [problem.metric_value(seconds) for problem in self._problems]
        return geometric_mean(values) if len(values) > 1 else values[0]

    def _bound(self, record: Record) -> None:
        """Fill in the bounds under the ceilings as they are known now."""
        record.ceilings = self._ceilings.values
        place(record, self._datasheet, merged=self._merged)
