"""Devices that times are carried over from and modelled for: what is known of each, and how alike two of them are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from statistics import median
from typing import Any

from ...backend.cuda import matrix_capabilities
from ...machine.device_profile import CEILINGS, DeviceProfile, all_profiles, match_profile
from ...measure.ceilings.catalogue import KINDS
from ...measure.roofline import Named
from ...model.errors import UsageError, nearest, shown
from ...model.record import Interval
from ...store.case import Case

#: Ceilings of which the lower value is the better one.
TIMES = frozenset(name for name, kind in KINDS.items() if kind.direction == "lower")
#: Ceilings below it, or above its inverse, are those of no device.
LEAST = 1e-30
#: What gives a device's rate of doing what no other ceiling tells: its arithmetic, hence units times clock.
CORE = "fp32_fma"
#: Ceilings that may be set, with their units: those that the suite measures, and those that only profiles state.
UNITS = {name: kind.unit for name, kind in KINDS.items()} | {
    name: unit for name, unit in CEILINGS.items() if name in ("int24_mad", "int16_mad", "fetch")
}
_PREFIX = {"": 1.0, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Relation(StrEnum):
    """How alike the device that was measured is to the one that is modelled, the nearest first."""

    SIBLING = "same architecture and runtime"
    RUNTIME = "same architecture, other runtime"
    GENERATION = "same vendor, other architecture"
    VENDOR = "other vendor"
    KIND = "other kind of device"


class Origin(StrEnum):
    """Where a ceiling comes from, the best first."""

    MEASURED = "measured"
    PUBLISHED = "published"
    DATASHEET = "datasheet"
    SET = "set"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Device:
    """A device as the model knows it.

    Attributes
    ----------
    name : str
        Of a profile, or the id of a live device without its number (``cuda:nvidia``), with its chip.
    family : str
        What compilers and caches depend on: compute capability, architecture, or a CPU's chip.
    runtime : str
        Platform of a live device; empty for a profile, which has that of the device that it is modelled from.
    ceilings : dict
        SI units.
    origins : dict
        Of each ceiling.
    hierarchy : dict
        What the profile states, by its keys; of live devices also what the driver tells.
    capabilities : frozenset
        As of `DeviceInfo`, with the kind.
    """

    name: str
    title: str
    kind: str
    vendor: str
    family: str
    runtime: str
    ceilings: Named
    origins: Mapping[str, Origin]
    hierarchy: Mapping[str, float]
    capabilities: frozenset[str]
    nominal: Mapping[str, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.runtime, tuple(sorted((n, c.value) for n, c in self.ceilings.items()))))

    def relation(self, other: Device) -> Relation | None:
        """How alike two devices are; ``None`` for one and the same."""
        if self.kind != other.kind:
            return Relation.KIND
        if self.vendor != other.vendor:
            return Relation.VENDOR
        if self.family != other.family:
            return Relation.GENERATION
        if self.runtime and other.runtime and self.runtime != other.runtime:
            return Relation.RUNTIME
        return None if self == other else Relation.SIBLING


def exact(value: float) -> Interval:
    """Return a value without an uncertainty."""
    return Interval(value=value, low=value, high=value)


@cache
def of_profile(profile_name: str) -> Device:
    """Return a shipped profile as a device."""
    return from_profile(all_profiles()[profile_name])


def from_profile(profile: DeviceProfile) -> Device:
    """Return a device that nothing was measured on by the suite.

    Published measurements stand before the datasheet. Where only a copy or a triad was published, a read goes as fast
    as the faster of them: the datasheet's rate is not reached.
    """
    published = dict(profile.published)
    streams = [published[name] for name in ("dram_copy", "dram_triad") if name in published]
    if streams and "dram_read" not in published:
        published["dram_read"] = max(streams)
    published.pop("enqueue_latency", None)  # from enqueueing to the start: no time between launches
    values = profile.nominal | published
    hierarchy = {key: entry.value for key, entry in profile.hierarchy.items() if entry.value is not None}
    capability = profile.compute_capability or ""
    return Device(
        profile.name, profile.title, profile.kind, vendor_of(profile.vendor),
        capability or profile.architecture, "", {name: exact(value) for name, value in values.items()},
        {name: Origin.PUBLISHED if name in published else Origin.DATASHEET for name in values},
        hierarchy, frozenset(_capabilities(profile)), dict(profile.nominal),
    )  # fmt: skip


def _capabilities(profile: DeviceProfile) -> Iterable[str]:
    """What variants may ask of a profile's device: of a GPU what its vendor's compilers had for its architecture."""
    yield from (profile.kind, "opencl", "images", "fp64", "unaligned_vload")
    if "dp4a" in profile.nominal:
        yield "dp4a"
    if profile.compute_capability:
        major, minor = map(int, profile.compute_capability.split("."))
        yield from ("cuda", "ptx", *matrix_capabilities((major, minor)))


def vendor_of(*texts: str) -> str:
    """Return a vendor's short name, found in the text that a driver or a profile has."""
    told = " ".join(texts).lower()
    for vendor, words in {"nvidia": ("nvidia",), "amd": ("amd", "advanced micro"), "intel": ("intel",)}.items():
        if any(word in told for word in words):
            return vendor
    return told


def place_of(case: Case) -> tuple[str, str]:
    """Return what tells one live device from another: platform and make. Equal GPUs of several hosts are one."""
    return case.record.identity.devices[0].rpartition(":")[0], case.site.make


def usable(ceilings: Named) -> Named:
    """Return the ceilings that something can be divided by: a stored one may be anything that is finite."""
    return {name: ceiling for name, ceiling in ceilings.items() if ceiling.low > LEAST and ceiling.high < 1 / LEAST}


def of_cases(cases: list[Case]) -> Device:
    """Return a live device, from the cases that ran on it: of each ceiling the best that any of them used."""
    (runtime, make), chip = place_of(cases[0]), cases[0].site.chip
    ceilings: Named = {}
    for case in cases:
        for name, ceiling in usable(case.record.ceilings).items():
            known = ceilings.get(name)
            if known is None or (ceiling.value < known.value) == (name in TIMES):
                ceilings[name] = ceiling
    info: Mapping[str, Any] = (cases[-1].run.environment.get("devices") or {}).get(
        cases[-1].record.identity.devices[0]
    ) or {}
    kind = cases[0].site.kind or "gpu"
    profile = match_profile(str(info.get("name") or chip), kind)
    told = {
        "max_work_group": info.get("max_work_group"), "memory": info.get("memory_bytes"),
        "hardware_thread": info.get("hardware_thread"), "group_local_memory": info.get("local_memory_bytes"),
        "compute_units": info.get("compute_units"),
        "base_clock": (info.get("clock_mhz") or 0) * 1e6,
    }  # fmt: skip
    stated = {key: entry.value for key, entry in profile.hierarchy.items() if entry.value} if profile else {}
    return Device(
        f"{runtime} ({make})", make, kind, vendor_of(str(info.get("vendor") or ""), chip),
        chip if kind == "cpu" else str(info.get("compute_capability") or chip), runtime, ceilings,
        dict.fromkeys(ceilings, Origin.MEASURED), {**stated, **{k: float(v) for k, v in told.items() if v}},
        frozenset({*(info.get("capabilities") or ()), kind, *(("ptx",) if runtime.startswith("cuda") else ())}),
        dict(profile.nominal) if profile else {},
    )  # fmt: skip


@cache
def realised() -> dict[str, float]:
    """Return how much of each nominal ceiling was reached where both are known: the median over profiles.

    Only ceilings that others measured enter (`DeviceProfile.published`), no time and no figure of a publication.
    """
    shares: dict[str, list[float]] = {}
    for profile in all_profiles().values():
        for name, value in profile.published.items():
            if name in profile.nominal:
                shares.setdefault(name, []).append(value / profile.nominal[name])
    return {name: median(values) for name, values in shares.items()}


@cache
def as_seen_from(target: Device, source: Device) -> Device:
    """Return a device with a value for every ceiling that the source has: what is missing is assumed, and marked so.

    Ceilings of a datasheet are taken times the share that is reached of them where it is known (`realised`). A
    first-level cache goes as fast as local memory where nothing else is told (they are one memory on NVIDIA since
    Volta), a second-level cache as many times faster than DRAM as on the source, launches and empty executions take
    what they take on the source, and every other unit follows the arithmetic.
    """
    ceilings, origins = dict(target.ceilings), dict(target.origins)
    for name, share in realised().items():
        if origins.get(name) is Origin.DATASHEET:
            ceilings[name] = exact(ceilings[name].value * min(share, 1.0))

    def times(name: str, base: str) -> float | None:
        known = all(base in each for each in (ceilings, source.ceilings))
        return source.ceilings[name].value * ceilings[base].value / source.ceilings[base].value if known else None

    for name in sorted(source.ceilings.keys() - ceilings.keys(), key=lambda name: (name not in BASES, name)):
        if name in TIMES:
            value: float | None = source.ceilings[name].value
        elif name == "l1_read" and "local_read" in ceilings:
            value = ceilings["local_read"].value
        else:
            value = times(name, "dram_read" if name in ("l2_read", "dram_copy", "dram_triad") else CORE)
        if value:
            ceilings[name], origins[name] = exact(value), Origin.ASSUMED
    return replace(target, ceilings=ceilings, origins=origins)


#: Ceilings that others are derived from come first.
BASES = ("dram_read", CORE, "local_read")


def changed(device: Device, settings: Sequence[str]) -> Device:
    """Return a device that does not exist: this one with ceilings as they are set, ``NAME=VALUE`` with a unit.

    Copies and triads go with the reads, unless they are set themselves.

    Raises
    ------
    UsageError
        For a text of another form, an unknown ceiling, a wrong unit or a value that is not positive.
    """
    ceilings, origins = dict(device.ceilings), dict(device.origins)
    for setting in settings:
        name, _, told = setting.partition("=")
        name = name.strip()
        if name not in UNITS:
            raise UsageError(
                f"--set {setting}: unknown ceiling {name!r}{nearest(name, UNITS)}; there are: {', '.join(UNITS)}"
            )
        ceilings[name], origins[name] = exact(quantity(told, UNITS[name], setting)), Origin.SET
    if not settings:
        return device
    if "dram_read" in device.ceilings and origins["dram_read"] is Origin.SET:
        faster = ceilings["dram_read"].value / device.ceilings["dram_read"].value
        for name in {"dram_copy", "dram_triad"} & ceilings.keys():  # another memory is faster in both directions
            if origins[name] is not Origin.SET:
                ceilings[name], origins[name] = exact(ceilings[name].value * faster), Origin.SET
    title = f"{device.title} with {', '.join(settings)}"
    return replace(device, name=f"{device.name}*", title=title, ceilings=ceilings, origins=origins)


def quantity(text: str, unit: str, setting: str) -> float:
    """Return a quantity with a decimal prefix (``8TB/s``, ``2.5 us``) in its SI unit.

    Raises
    ------
    UsageError
        As of `changed`.
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Zµ]?)" + re.escape(unit) + r"\s*", text)
    prefix = found[2] if found else "?"
    try:
        value = float(found[1]) * _PREFIX[prefix] if found else 0.0
    except (ValueError, KeyError):
        value = 0.0
    if not LEAST < value < 1 / LEAST:
        expected = f"NAME=VALUE with a positive value ({LEAST:g} to {1 / LEAST:g}) in {unit}"
        raise UsageError(f"--set {setting}: expected {expected}, got {shown(text)}")
    return value
