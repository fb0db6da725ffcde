"""Predictions of stored cases on other devices: from the devices that are nearest, with an interval, or why not."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from ...machine.device_profile import all_profiles, load_profile, profile_names
from ...model.errors import UsageError, nearest
from ...model.names import order
from ...model.record import Identity, Interval, Record
from ...store.case import Case, Subject
from ...store.collection import Collection
from ...store.comparable import is_peer
from ...store.ratios import is_ranked, time_of
from ...store.results import Run
from .devices import LEAST, Device, Relation, from_profile, of_cases, of_profile, place_of
from .limits import Footprint, footprint, unsupported
from .model import Estimate, Pattern, Source, carry_over, interval
from .widths import WIDEST, Residual, Widths


class Key(NamedTuple):
    """What is predicted: a case wherever it runs."""

    subject: Subject
    variant: str
    tunables: str
    profile: str
    cache: str

    @classmethod
    def of(cls, case: Case) -> Key:
        """Return what a measured case is wherever it runs."""
        i, timing = case.record.identity, case.record.timing
        tunables = json.dumps(i.tunables, sort_keys=True)
        return cls(case.subject.on_any_inputs, i.variant, tunables, i.profile or "", timing.cache if timing else "")


class Outcome(StrEnum):
    """What there is of a case on a device."""

    MEASURED = "measured"
    MODELLED = "modelled"
    NO_GROUND = "no ground"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Prediction:
    """A case on a device that it was not measured on, or that it was.

    Attributes
    ----------
    case : Case
        A measured case that shows what is predicted: the source's, or the device's own.
    seconds : Interval or None
        With an interval at 90 % where it is modelled, also where that is too wide to be a prediction; ``None`` where
        there is no number at all.
    estimate : Estimate or None
    reason : str
        Why there is no ground, or why it cannot run.
    """

    key: Key
    device: Device
    case: Case
    outcome: Outcome
    seconds: Interval | None = None
    estimate: Estimate | None = None
    reason: str = ""

    @property
    def metric(self) -> Interval | None:
        """The problem's metric at that time."""
        metric, timing = self.case.record.metric, self.case.record.timing
        if self.seconds is None or metric is None or timing is None:
            return None
        measured = timing.ranked.value
        ends = [
            metric.value * (measured / s if metric.direction == "higher" else s / measured)
            for s in (self.seconds.low, self.seconds.value, self.seconds.high)
        ]
        return Interval(value=ends[1], low=min(ends), high=max(ends))


@dataclass(frozen=True)
class Seen:
    """What counts tell of a case beyond its record."""

    record: Record
    group: int | None = None
    pattern: Pattern = field(default_factory=Pattern)


#: Returns what counts tell of a run's record.
Counted = Callable[[Run, Record], Seen]


def nothing_counted(_: Run, record: Record) -> Seen:
    """Return a record as it is: where no counts are stored."""
    return Seen(record)


class Predictor:
    """The measured cases of a collection as sources, and the widths that their residuals give.

    Parameters
    ----------
    collection : Collection
    counted : callable, optional

    Attributes
    ----------
    devices : dict
        The live devices by platform and chip; equal chips of several hosts are one.
    sources : dict
        What was measured of each key, one source for each live device: the latest that may be ranked.
    """

    def __init__(self, collection: Collection, counted: Counted = nothing_counted) -> None:
        self.collection = collection
        self._cases = [
            case for case in collection.current
            if is_ranked(case.record) and _sound(case.record) and not is_peer(case)
            and len(case.record.identity.devices) == 1 and not case.site.several
        ]  # fmt: skip
        by_place: dict[tuple[str, str], list[Case]] = defaultdict(list)
        for case in self._cases:
            by_place[place_of(case)].append(case)
        self.devices = {place: of_cases(cases) for place, cases in sorted(by_place.items())}
        self._local = self._local_memory()
        self.sources: dict[Key, dict[Device, Source]] = defaultdict(dict)
        for case in sorted(self._cases, key=lambda case: case.record.time):
            source = self._source(case, counted)
            self.sources[Key.of(case)][source.device] = source

    def _local_memory(self) -> dict[tuple[Subject, str, str], int]:
        """Local memory of a work-group as OpenCL runtimes tell it: all of it, whoever asks for it."""
        told: dict[tuple[Subject, str, str], int] = {}
        for case in self._cases:
            if case.record.identity.backend == "opencl":
                most = max((int(each.get("local_bytes") or 0) for each in case.record.resources.values()), default=0)
                told[Key.of(case)[:3]] = most
        return told

    def _source(self, case: Case, counted: Counted) -> Source:
        seen = counted(case.run, case.record)
        taken = footprint(seen.record, seen.group, self._local.get(Key.of(case)[:3]))
        return Source(case, seen.record, self.devices[place_of(case)], taken, seen.pattern)

    @cached_property
    def residuals(self) -> list[Residual]:
        """Every case of a live device, predicted by the other live devices alone that measured the same code."""
        found = []
        for key, by_device in self.sources.items():
            for target, measured in by_device.items():
                others = [
                    source for device, source in by_device.items() if device != target and source.same_code(measured)
                ]
                if not others or unsupported_case(measured, target):
                    continue
                if (carried := combined(others, target)) is not None:
                    estimate, half = carried
                    problem = f"{key.subject.workload}/{key.subject.problem}"
                    found.append(Residual(estimate, half, measured.seconds, target.name, problem))
        return found

    @cached_property
    def widths(self) -> Widths:
        """The widths that all residuals together ask for."""
        return Widths.of(self.residuals)

    def predictions(self, target: Device, subjects: Container[Subject] | None = None) -> Iterator[Prediction]:
        """Yield every case on a device, in the order of tables; with ``subjects`` those of these settings alone."""
        place = {id(case): number for number, group in enumerate(self.collection.comparable) for case in group.rows}
        sources = {
            key: list(by_device.values())
            for key, by_device in self.sources.items()
            if subjects is None or key.subject in subjects
        }

        def row(key: Key) -> tuple[Any, ...]:
            first = sources[key][0]
            return place.get(id(first.case), 0), order(first.case.record)

        for key in sorted(sources, key=row):
            yield self.predict(key, target)

    def predict(self, key: Key, target: Device, of_any_size: bool = False) -> Prediction:
        """Return what there is of a case on a device: measured, modelled with an interval, or why neither.

        Parameters
        ----------
        of_any_size : bool
            Whether it does not matter that the data are too large for the device's memory: a rate is asked for.
        """
        by_device = self.sources[key]
        if target in by_device:
            source = by_device[target]
            assert source.record.timing
            return Prediction(key, target, source.case, Outcome.MEASURED, source.record.timing.ranked)
        seen_by = replace(target, hierarchy={k: v for k, v in target.hierarchy.items() if k != "memory"})
        return self._modelled(key, seen_by if of_any_size else target, list(by_device.values()))

    def _modelled(self, key: Key, target: Device, sources: Sequence[Source]) -> Prediction:
        first = sources[0]
        reasons = [unsupported_case(source, target) for source in sources]
        if all(reasons):
            return Prediction(key, target, first.case, Outcome.UNSUPPORTED, reason=str(reasons[0]))
        fit = [source for source, reason in zip(sources, reasons, strict=True) if not reason]
        carried = combined(fit, target)
        if carried is None:
            reason = "the variant does not state what traffic it causes, or no ceiling of the device applies to it"
            return Prediction(key, target, first.case, Outcome.NO_GROUND, reason=reason)
        estimate, own = carried
        half = self.widths.half(estimate, own)
        if half is None:
            missing = _missing_relation(estimate, target)
            return Prediction(key, target, estimate.source.case, Outcome.NO_GROUND, None, estimate, missing)
        seconds, wide = interval(estimate.seconds, half), 2 * half > math.log(WIDEST)
        outcome = Outcome.NO_GROUND if wide else Outcome.MODELLED
        reason = _widest(estimate, own, half) if wide else ""
        return Prediction(key, target, estimate.source.case, outcome, seconds, estimate, reason)


def _sound(record: Record) -> bool:
    """Whether a record's time and traffic can be computed with: one of somebody else's may hold any number."""
    amounts = record.traffic.model_dump(exclude={"provenance"}, exclude_none=True).values() if record.traffic else ()
    return LEAST < time_of(record) < 1 / LEAST and all(amount < 1 / LEAST for amount in amounts)


def targets(predictor: Predictor) -> list[Device]:
    """Return every device that a table has a column for: the live ones, then the GPUs' profiles that none of them has.

    Of CPUs profiles state no ceilings.
    """
    live = list(predictor.devices.values())
    profiles = [profile for profile in all_profiles().values() if profile.kind == "gpu"]
    chips = [device.title for device in live]
    absent = [each for each in profiles if not any(re.search(m, chip, re.I) for m in each.match for chip in chips)]
    return live + [of_profile(profile.name) for profile in absent]


def find_target(predictor: Predictor, name: str, option: str = "--device") -> Device:
    """Return the device of a name: a live one by a part of its name, else a profile by its name or file.

    A profile that a live device has stands for that device; of several for the one that measured most.

    Raises
    ------
    UsageError
        For a name of neither, or one that several live devices have.
    """
    live = list(predictor.devices.values())
    named = [device for device in live if name.lower() in device.name.lower()]
    if len(named) == 1:
        return named[0]
    if name in profile_names() or name.endswith((".yaml", ".yml")):
        profile = load_profile(name, f"{option}: ")
        own = [each for each in live if any(re.search(match, each.title, re.I) for match in profile.match)]
        count = {each: sum(each in by_device for by_device in predictor.sources.values()) for each in own}
        return max(own, key=lambda each: count[each]) if own else from_profile(profile)
    known = [*(device.name for device in live), *profile_names()]
    if named:
        raise UsageError(f"{option}: {name!r} is part of several: {', '.join(device.name for device in named)}")
    raise UsageError(f"{option}: unknown device {name!r}{nearest(name, known)}; there are: {', '.join(known)}")


def unsupported_case(source: Source, target: Device) -> str | None:
    """Return why the case of a source cannot run on a device; ``None`` where nothing is known against it."""
    identity: Identity = source.record.identity
    taken: Footprint = source.footprint
    return unsupported(identity, source.record.unit, taken, target)


def combined(sources: Sequence[Source], target: Device) -> tuple[Estimate, float] | None:
    """Return the estimate from the sources whose devices are nearest, and its half width by its own parts.

    Of equally alike devices one of the same chip is nearer. Of several that are equally near it is the geometric mean;
    half of their spread widens it.
    """
    estimates = [estimate for source in sources if (estimate := carry_over(source, target))]
    if not estimates:
        return None

    def distance(estimate: Estimate) -> tuple[int, bool]:
        return list(Relation).index(estimate.relation), estimate.source.device.title != target.title

    closest = min(map(distance, estimates))
    alike = [estimate for estimate in estimates if distance(estimate) == closest]
    logs = [math.log(estimate.seconds) for estimate in alike]
    middle = replace(alike[0], seconds=math.exp(sum(logs) / len(logs)))
    return middle, math.hypot(middle.own, (max(logs) - min(logs)) / 2)


def _missing_relation(estimate: Estimate, target: Device) -> str:
    if estimate.source.by_host:
        return "the host drives the execution: its time depends on a host and a runtime that were not measured"
    return f"no {target.kind} shares enough cases with a {estimate.source.device.kind} to tell how far times carry over"


def _widest(estimate: Estimate, own: float, half: float) -> str:
    """Return what makes an interval too wide: the largest part, or that times carry over badly as such."""
    part = max(estimate.parts, key=lambda name: estimate.parts[name])
    factor = math.exp(2 * half)
    why = part if own >= half / 2 else f"times of {estimate.relation.value} are too far off where they were measured"
    return f"the interval spans a factor of {factor:.1f}: {why}"
