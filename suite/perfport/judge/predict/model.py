"""The time of a variant on a device that it was not measured on, from a time that was measured elsewhere.

A measured time is taken apart: launches and the terms of the variant bound are what known rates explain, the rest is
carried over. docs/prediction.md derives the formulas and names their sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...measure.roofline import variant_bound
from ...model.record import Interval, Record
from ...model.work import Traffic
from ...store.case import Case
from ...store.ratios import time_of
from .devices import CORE, Device, Origin, Relation, as_seen_from, exact, usable
from .limits import Footprint, occupancy, registers_short

#: What no prediction is surer of than, relative: two runs of one case on one device differ by that.
FLOOR = 0.03
#: Of the part of a time that no ceiling explains, so much may change from one device to its like.
UNEXPLAINED = 0.3
#: A uniform distribution between two ends has 90 % of it within 0.9 of their half distance.
UNIFORM = 0.9
#: A term under an assumed ceiling may be off by this factor either way.
ASSUMED = 2.0
#: What a spill to memory may cost: on the boards of GCN 1 in a public table one register-heavy kernel ran at a sixth of
#: the rate that bandwidth gives it elsewhere (docs/prediction.md).
SPILLED = 6.0
#: An execution that is shorter than so many empty ones may be a single wave of work-groups on a large device: its time
#: is latency, whatever number of compute units there are.
ONE_WAVE = 64
#: Units that a variant may name without which it is done by plain integer arithmetic.
OPTIONAL_UNITS = ("dp4a",)


@dataclass(frozen=True)
class Pattern:
    """What the simulator saw of a variant's accesses, at small sizes.

    Attributes
    ----------
    bytes_per_load : float
        Bytes that one load of global memory or of an image brings to a work-item.
    lines : dict
        For hardware threads of so many work-items, and lines of so many bytes: the lines that one access touches, and
        the bytes of these lines over those that were issued.
    """

    bytes_per_load: float | None = None
    lines: Mapping[tuple[int, int], tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A case that was measured, as times are carried over from it."""

    case: Case
    record: Record
    device: Device
    footprint: Footprint
    pattern: Pattern

    @cached_property
    def seconds(self) -> float:
        """The measured time."""
        return time_of(self.record)

    @property
    def by_host(self) -> bool:
        """Whether the time is one of a host's loop: no device tells how long it takes elsewhere."""
        return self.record.timing is not None and (self.record.timing.rank == "wall")

    @cached_property
    def code(self) -> str:
        """What the variant was made of when it was measured: a digest of its files, else the commit of the run."""
        environment, own = self.case.run.environment, self.record.identity
        digests = (environment.get("code") or {}).get("variants", {})
        commit = (environment.get("commit") or {}).get("hash")
        return str(digests.get(f"{own.workload}/{own.problem}/{own.variant}") or commit or "")

    def same_code(self, other: Source) -> bool:
        """Whether both measured the same code; where it is not known of one, they did not."""
        return bool(self.code) and self.code == other.code

    @cached_property
    def here(self) -> Device:
        """The device with the ceilings that stood beside the measurement."""
        return replace(self.device, ceilings={**self.device.ceilings, **usable(self.record.ceilings)})

    @cached_property
    def explained(self) -> Explained | None:
        """What known rates explain of the measured time; ``None`` without traffic or ceilings."""
        return explain(self, self.here, Relation.SIBLING)


@dataclass(frozen=True)
class Explained:
    """What known rates explain of a time.

    Attributes
    ----------
    launches : float
        Seconds of the launches.
    terms : dict
        Seconds of each term, all overlapped; the longest binds.
    serial : float
        Seconds of all terms one after another, with every byte that leaves the first-level cache at its most.
    """

    launches: float
    terms: Mapping[str, float]
    serial: float

    @property
    def binding(self) -> str:
        """The longest term."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def overlapped(self) -> float:
        """Seconds where everything overlaps."""
        return self.terms[self.binding]


@dataclass(frozen=True)
class Estimate:
    """A time carried over, and what makes it unsure.

    Attributes
    ----------
    parts : dict
        Half widths, as logarithms of a factor, by what they come from. The interval at 90 % follows from them and from
        the width of the relation (`widths.Widths`).
    """

    source: Source
    relation: Relation
    seconds: float
    binding: str
    explained: Explained
    share: float
    parts: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def own(self) -> float:
        """Half width by all parts together."""
        return math.sqrt(sum(part**2 for part in self.parts.values()))


@dataclass(frozen=True)
class Split:
    """A measured time, taken apart in the two ways that say what a part takes elsewhere.

    Attributes
    ----------
    known : float
        Seconds of it that launches and the longest term explain, as a share of what these take at their rates: 1, but
        for what overlaps better.
    after : float
        Seconds of the rest where it follows what is explained.
    beside : float
        Seconds of the rest where both overlap in part, so that their squares add up.
    """

    known: float
    after: float
    beside: float

    @classmethod
    def of(cls, seconds: float, explained: Explained) -> Split:
        """Take a time apart by what is explained of it."""
        expected, launched = explained.launches + explained.overlapped, seconds - explained.launches
        if seconds <= expected:
            return cls(seconds / expected, 0.0, 0.0)
        return cls(1.0, seconds - expected, math.sqrt(launched**2 - explained.overlapped**2))

    def overlapping(self, there: Explained, scaling: float) -> float:
        """Return the time elsewhere, where the rest takes so many times longer and overlaps in part."""
        return self.known * there.launches + math.hypot(self.known * there.overlapped, scaling * self.beside)

    def following(self, there: float, scaling: float) -> float:
        """Return the time elsewhere, where what is explained takes so long, and the rest follows it."""
        return self.known * there + scaling * self.after


def explain(source: Source, device: Device, relation: Relation) -> Explained | None:
    """Return what the rates of a device explain of a source's work; ``None`` where there is nothing to explain by."""
    traffic = source.record.traffic
    if traffic is None or source.record.timing is None:
        return None
    far = relation in (Relation.GENERATION, Relation.VENDOR, Relation.KIND)
    caught = _leaving(traffic, device, source.pattern, most=False) if far else None
    least = traffic if caught is None else traffic.model_copy(update={"l2_bytes": caught})
    terms = _terms(source, device, least)
    if not terms:
        return None
    most = _leaving(traffic, device, source.pattern, most=True)
    serial = _terms(source, device, traffic.model_copy(update={"l2_bytes": most}))
    return Explained(_launches(source, device), terms, max(sum(serial.values()), sum(terms.values())))


def _terms(source: Source, device: Device, traffic: Traffic) -> dict[str, float]:
    timing, unit = source.record.timing, source.record.unit
    assert timing
    unit = None if unit in OPTIONAL_UNITS and unit not in device.ceilings else unit
    merged = device.kind == "cpu"
    bound = variant_bound(traffic, device.ceilings, exact(1.0), unit, timing.cache == "cold", merged=merged)
    terms = {} if bound is None else {name: seconds for name, seconds in bound.terms.items() if seconds}
    if (fetch := device.ceilings.get("fetch")) and source.pattern.bytes_per_load:
        read = traffic.global_read + traffic.constant_read + traffic.image_read
        terms["fetch"] = read / source.pattern.bytes_per_load / fetch.value
    return terms


def _leaving(traffic: Traffic, device: Device, pattern: Pattern, most: bool) -> float | None:
    """Bytes between the first-level cache and the second: known, or whole lines of what is issued.

    At the least a first-level cache serves repeats, if it holds the lines that all resident hardware threads touch in
    one access; where it does not, each access brings its lines anew.
    """
    if traffic.l2_bytes is not None:
        return traffic.l2_bytes
    issued = traffic.global_read + traffic.global_write
    threads, l1 = device.hierarchy.get("resident_threads_per_cu"), device.hierarchy.get("l1")
    width, line = device.hierarchy.get("hardware_thread"), device.hierarchy.get("memory_transaction")
    seen = [
        (shape, lines) for shape, lines in pattern.lines.items() if shape[0] == width and (line or 0) <= shape[1]
    ]  # fmt: skip
    if not seen:
        return issued if most else None
    (_, size), (touched, ratio) = min(seen, key=lambda each: each[0][1])
    if not most and threads and l1 and threads * touched * size <= l1:
        return None
    return max(issued * ratio, traffic.dram_bytes) if most or (threads and l1) else None


def _launches(source: Source, device: Device) -> float:
    """Seconds of the launches: an empty execution where both devices tell it, and the others one after another."""
    timing = source.record.timing
    number = timing.launches if timing else 0
    latency, empty = device.ceilings.get("launch_latency"), device.ceilings.get("empty_span")
    first = empty.value if empty and "empty_span" in source.here.ceilings and number else 0.0
    return first + max(number - 1, 0) * (latency.value if latency else 0.0)


def carry_over(source: Source, target: Device) -> Estimate | None:
    """Return the time on a target device; ``None`` where neither side explains anything.

    The relation of the two says what is admissible. Between devices of one architecture what is explained and the rest
    overlap in part, and the rest scales with units x clock. Elsewhere the rest may be latency, work, or
    whatever binds, and may also follow what is explained: the estimate is the geometric middle of the shortest and the
    longest time that these leave. Between vendors terms may follow one another, too.
    """
    relation = source.device.relation(target) or Relation.SIBLING
    before, there = source.explained, as_seen_from(target, source.here)
    after = explain(source, there, relation)
    if before is None or after is None:
        return None
    least, most = _scalings(source, there, relation, after.overlapped / before.overlapped)
    split = Split.of(source.seconds, before)
    near = relation in (Relation.SIBLING, Relation.RUNTIME)
    short, long = split.overlapping(after, least), split.overlapping(after, most)
    if not near:
        fill = _fill(source, there)
        serial = after.serial if relation in (Relation.VENDOR, Relation.KIND) else after.overlapped
        short = min(short, split.following(after.launches + after.overlapped, least))
        long = max(split.overlapping(after, most * fill), split.following(after.launches + serial, most * fill))
    parts = {
        "two runs of one case differ": FLOOR,
        "what no ceiling explains may scale otherwise": UNEXPLAINED * (split.beside / source.seconds) ** 2
        if near else UNIFORM / 2 * math.log(long / short),
        **_assumed(there, after),
    }  # fmt: skip
    notes = _notes(there, after, source, target)
    if over := registers_short(source.footprint, target):
        parts[over] = math.log(SPILLED)
    if source.footprint.dynamic_local and not near and source.pattern.bytes_per_load is None:
        parts["how much local memory a work-group takes is not known"] = math.log(ASSUMED)
    seconds = math.sqrt(short * long)
    share = (before.launches + before.overlapped) / source.seconds
    return Estimate(source, relation, seconds, after.binding, after, share, parts, notes)


def _scalings(source: Source, there: Device, relation: Relation, bound: float) -> tuple[float, float]:
    """Return the least and the most by which the unexplained part of a time may be longer on another device."""
    core = 1.0
    if all(CORE in each for each in (source.here.ceilings, there.ceilings)):
        core = source.here.ceilings[CORE].value / there.ceilings[CORE].value
    if relation in (Relation.SIBLING, Relation.RUNTIME):
        if there.origins.get(CORE) is not Origin.SET:  # a measured rate is one of a chip whose clock its power limits
            core = _ratio(source.here, there, _waves) or core
        return core, core
    clock = _ratio(source.here, there, _clock) or 1.0
    waves = clock * (_ratio(source.here, there, lambda device: device.hierarchy.get("compute_units")) or 1.0)
    scalings = [core, bound, waves]
    if source.seconds < ONE_WAVE * _empty(source.here):
        scalings.append(clock)
    return min(scalings), max(scalings)


def _ratio(one: Device, other: Device, value: Callable[[Device], float | None]) -> float | None:
    """Return how many times more one device has than another; ``None`` where that is not told of both."""
    first, second = value(one), value(other)
    return first / second if first and second else None


def _clock(device: Device) -> float | None:
    return device.hierarchy.get("boost_clock") or device.hierarchy.get("base_clock")


def _waves(device: Device) -> float | None:
    """Units x clock; ``None`` where either is not known."""
    units, clock = device.hierarchy.get("compute_units"), _clock(device)
    return units * clock if units and clock else None


def _empty(device: Device) -> float:
    """Seconds of an execution that does nothing; of a launch where that was not measured."""
    known = device.ceilings.get("empty_span") or device.ceilings.get("launch_latency")
    return known.value if known else 0.0


def _fill(source: Source, there: Device) -> float:
    """Return how many times more hardware threads hide latencies on the source: what is not hidden takes longer."""
    here, elsewhere = occupancy(source.footprint, source.device), occupancy(source.footprint, there)
    return max(1.0, here / elsewhere) if here and elsewhere else 1.0


def _assumed(there: Device, after: Explained) -> dict[str, float]:
    """Half width by ceilings of which nobody knows the value: their share of all terms, by `ASSUMED`."""
    total = sum(after.terms.values())
    terms = {name: seconds / total for name, seconds in after.terms.items() if _origin(there, name) is Origin.ASSUMED}
    named = ", ".join(sorted(terms, key=lambda name: -terms[name]))
    return {f"not known of the device: {named}": math.log(ASSUMED) * sum(terms.values())} if terms else {}


def _origin(device: Device, term: str) -> Origin | None:
    return device.origins.get("dram_read" if term == "dram" else term)


def _notes(there: Device, after: Explained, source: Source, target: Device) -> tuple[str, ...]:
    origin = _origin(there, after.binding)
    notes = [f"{after.binding} as {origin.value}"] if origin else []
    if (filled := occupancy(source.footprint, target)) is not None:
        notes.append(f"occupancy {filled:.0%}")
    return tuple(notes)


def interval(seconds: float, half: float) -> Interval:
    """Return a time with the ends of an interval whose half width is the logarithm of a factor."""
    return Interval(value=seconds, low=seconds * math.exp(-half), high=seconds * math.exp(half))
