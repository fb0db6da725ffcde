"""Device profiles: nominal and published ceilings, memory hierarchy and tuning parameters, each number with its source.

A profile describes a device that need not be present (``archival``) or one that the suite can measure (``live``).
The shipped ones are the YAML files of ``perfport.device_profiles``; docs/add-a-device.md says how to add one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import Field, field_validator, model_validator

from ..model import schema
from ..model.device import DeviceInfo
from ..model.errors import UsageError, leave_out, nearest
from .tuned import Entries, Frozen, Name, Size, Text, Tuned, Value, by_distance

#: Ceilings that every profile states (null where unknown), and all of them with their units.
REQUIRED_CEILINGS = ("dram_bandwidth", "fp32_base", "fp32_boost", "local_bandwidth", "l2_bandwidth")
CEILINGS = {
    **dict.fromkeys(("fp32_base", "fp32_boost"), "FLOP/s"),
    **dict.fromkeys(("dram_bandwidth", "local_bandwidth", "l2_bandwidth", "l1_bandwidth"), "B/s"),
    **dict.fromkeys(("constant_bandwidth", "register_bandwidth", "host_bandwidth"), "B/s"),
    **dict.fromkeys(("int32_mad", "int24_mad", "int16_mad", "int32_logic", "dp4a", "exp", "rsqrt"), "op/s"),
    **dict.fromkeys(("tf32_mma", "bf16_mma"), "FLOP/s"),
    "int8_mma": "op/s",
    "fetch": "op/s",
    "launch_latency": "s",
}
#: What the suite's ceilings call a key of ``ceilings``, where it is not the same; FP32: see `DeviceProfile.fp32`.
NAMES = {
    "dram_bandwidth": ("dram_read", "dram_copy", "dram_triad"),
    "local_bandwidth": ("local_read",),
    "l1_bandwidth": ("l1_read",),
    "l2_bandwidth": ("l2_read",),
    "constant_bandwidth": ("constant_read",),
    "host_bandwidth": ("h2d_pinned", "d2h_pinned"),
    **dict.fromkeys(("fp32_base", "fp32_boost", "register_bandwidth"), ()),
}
#: Keys of ``measured``: the names that the suite's own ceilings have, and ``enqueue_latency``, which is none of them.
MEASURED = {
    **dict.fromkeys(("dram_read", "dram_copy", "dram_triad"), "B/s"),
    **dict.fromkeys(("l2_read", "l1_read", "local_read", "constant_read"), "B/s"),
    **dict.fromkeys(("h2d_pageable", "h2d_pinned", "d2h_pageable", "d2h_pinned"), "B/s"),
    "fp32_fma": "FLOP/s",
    **dict.fromkeys(("int32_mad", "int32_logic", "dp4a", "exp", "rsqrt"), "op/s"),
    **dict.fromkeys(("launch_latency", "enqueue_latency"), "s"),
}
#: Keys of ``hierarchy`` with their units; docs/add-a-device.md says what each one means.
HIERARCHY = {
    **dict.fromkeys(("compute_units", "fp32_lanes", "hardware_thread", "max_work_group"), "count"),
    **dict.fromkeys(("resident_threads_per_cu", "resident_groups_per_cu", "pcie_lanes"), "count"),
    **dict.fromkeys(("registers", "max_registers_per_thread", "max_registers_per_work_group"), "count"),
    **dict.fromkeys(("memory", "memory_transaction", "l1", "l2", "local_memory", "constant_cache"), "B"),
    **dict.fromkeys(("base_clock", "boost_clock", "memory_clock"), "Hz"),
    **dict.fromkeys(("pcie_generation", "opencl_version"), "version"),
    "memory_bus_width": "bit",
}


class _Sourced(Frozen):
    unit: str
    source: str
    note: Text | None = None


class Quantity(_Sourced):
    """One number in SI base units with its source. ``value`` is ``None`` where unknown; then ``note`` says why."""

    value: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None

    @model_validator(mode="after")
    def _null_has_note(self) -> Quantity:
        if self.value is None and self.note is None:
            raise ValueError("a value of null needs a note that says why it is unknown")
        return self


class Measurement(_Sourced):
    """A ceiling that somebody else measured and published, in SI base units; what nobody published is left out.

    Attributes
    ----------
    board : str
        What it was measured on, as far as the source tells.
    differs : str, optional
        Where that board differs from the profile's in what this ceiling depends on (its clock). The value is kept as
        published, never scaled, and is no bound for the profile's device.
    """

    value: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
    board: Text
    differs: Text | None = None


class Tuning(Frozen):
    """One tuning parameter, passed to kernels as ``-D NAME=value``. A text value must be a C identifier."""

    value: int | float | str
    source: str
    note: Text | None = None

    @field_validator("value", mode="before")
    @classmethod
    def _fits_a_macro(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number and not (isinstance(value, str) and value.isidentifier() and value.isascii()):
            raise ValueError(f"expected a number or a C identifier, got {value!r}")
        return value


class DeviceProfile(Frozen):
    """What is known about one device from its documentation and the literature, and what was found by tuning.

    Attributes
    ----------
    sources : dict of str to str
        Key -> full citation; every ``source`` below is one of these keys.
    match : list of str
        Regular expressions, searched in a live device's name without regard to case.
    ceilings, hierarchy : dict of str to Quantity
        Keys and units are those of ``CEILINGS`` and ``HIERARCHY``.
    measured : dict of str to Measurement
        Ceilings that others measured and published; keys and units are those of ``MEASURED``.
    tuning : dict
        Workload -> parameter -> value that the literature gives for this device.
    tuned : dict
        Driver family (`family`) -> ``workload/problem/variant`` -> what ``perfport tune`` found, at one size or more.
    """

    name: Name
    title: Text
    kind: Literal["cpu", "gpu"]
    status: Literal["archival", "live"]
    vendor: Text
    architecture: Text
    compute_capability: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")] | None = None
    sources: dict[str, Text]
    match: list[str] = Field(default_factory=list)
    ceilings: dict[str, Quantity]
    hierarchy: dict[str, Quantity]
    measured: dict[str, Measurement] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    tuning: dict[str, dict[Name, Tuning]] = Field(default_factory=dict)
    tuned: dict[Text, dict[Text, Entries]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> DeviceProfile:
        for table, allowed in (("ceilings", CEILINGS), ("hierarchy", HIERARCHY), ("measured", MEASURED)):
            for key, quantity in getattr(self, table).items():
                if key not in allowed:
                    raise ValueError(
                        f"{table}.{key}: unknown key{nearest(key, allowed)}; allowed: {', '.join(allowed)}"
                    )
                if quantity.unit != allowed[key]:
                    raise ValueError(f"{table}.{key}.unit: expected {allowed[key]!r}, got {quantity.unit!r}")
                self._check_source(f"{table}.{key}", quantity.source)
        for key in REQUIRED_CEILINGS:
            if key not in self.ceilings:
                raise ValueError(f"ceilings.{key}: required key is missing (null with a note where unknown)")
        for workload, parameters in self.tuning.items():
            for key, tuning in parameters.items():
                self._check_source(f"tuning.{workload}.{key}", tuning.source)
        for index, pattern in enumerate(self.match):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"match.{index}: expected a regular expression, got {pattern!r}: {error}") from None
        return self

    def _check_source(self, path: str, source: str) -> None:
        if source not in self.sources:
            hint = f"{nearest(source, self.sources)}; known: {', '.join(self.sources)}"
            raise ValueError(f"{path}.source: {source!r} is not a key of sources{hint}")

    def names(self, device_name: str) -> bool:
        """Whether a pattern of ``match`` finds a device's name."""
        return any(re.search(pattern, device_name, re.IGNORECASE) for pattern in self.match)

    def found(self, variant: str, family: str) -> list[Tuned]:
        """Return what was found for a variant (``workload/problem/variant``) on a driver family.

        Else what was found by another driver of the same backend, or by any: what this device needs is best known so.
        """
        return next(iter(self.found_by(variant, family)), [])

    def found_by(self, variant: str, family: str) -> list[list[Tuned]]:
        """Return what was found for a variant on each driver family: the one asked for, then those of its backend."""
        backend = family.partition(":")[0]
        order = sorted(self.tuned, key=lambda name: (name != family, name.partition(":")[0] != backend))
        return [self.tuned[name][variant] for name in order if variant in self.tuned[name]]

    @property
    def bandwidth(self) -> float | None:
        """Peak DRAM bandwidth in B/s, ``None`` if unknown."""
        return self.ceilings["dram_bandwidth"].value

    @property
    def fp32(self) -> float | None:
        """Peak FP32 rate in FLOP/s (an FMA counts 2): at the boost clock if known, else base; ``None`` if neither."""
        boost = self.ceilings["fp32_boost"].value
        return boost if boost is not None else self.ceilings["fp32_base"].value

    @property
    def nominal(self) -> dict[str, float]:
        """The known nominal ceilings in SI units, under the names that measured ones have."""
        known = {"fp32_fma": self.fp32}
        for key, quantity in self.ceilings.items():
            known |= dict.fromkeys(NAMES.get(key, (key,)), quantity.value)
        return {name: value for name, value in known.items() if value}

    @property
    def published(self) -> dict[str, float]:
        """The ceilings in SI units that others measured on boards like this one; those that differ are left out."""
        return {name: entry.value for name, entry in self.measured.items() if entry.differs is None}


def _read(file: Path | Traversable, where: str) -> DeviceProfile:
    return schema.validate(DeviceProfile, schema.read(file, where), where)


@cache
def _shipped() -> dict[str, Traversable]:
    folder = files("perfport.device_profiles")
    shipped = sorted((f for f in folder.iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)
    return {f.name.removesuffix(".yaml"): f for f in shipped}


def user_folder() -> Path:
    """Return the folder of the user's own profiles, where ``perfport tune`` writes unless it is told otherwise."""
    return Path(platformdirs.user_config_dir("perfport")) / "profiles"


def family(info: DeviceInfo) -> str:
    """Return the driver family of a device: backend and platform, ``opencl:pocl``."""
    return info.id.rpartition(":")[0]


def load_profile(name_or_path: str | Path, at: str = "") -> DeviceProfile:
    """Load a profile by name, a shipped one (``hd7970``) or the user's own, or any by the path of its YAML file.

    Parameters
    ----------
    at : str
        Which key or argument named it: stands in front of messages.

    Raises
    ------
    UsageError
        Unknown name, unreadable file or bad content; the text names the file, the key and what was expected.
    """
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or name.endswith((".yaml", ".yml")) or "/" in name:
        return _read(Path(name_or_path), f"{at}{name}")
    if name in _shipped():
        return _load_shipped(name)
    own = {file.stem: file for file in _own_files()}
    if name in own:
        return _read(own[name], f"{at}{own[name]}")
    known = profile_names()
    raise UsageError(f"{at}unknown device profile {name!r}{nearest(name, known)}; known: {', '.join(known)}")


def is_profile(path: Path) -> bool:
    """Whether a YAML file has keys that profiles alone have. Raises `UsageError` if it cannot be read."""
    content = schema.read(path)
    return isinstance(content, dict) and bool(content.keys() & {"ceilings", "hierarchy", "tuned"})


def _own_files() -> list[Path]:
    return sorted(user_folder().glob("*.yaml"))


def profile_names() -> list[str]:
    """Return the names that `load_profile` takes: the shipped profiles, then the user's own."""
    return list(dict.fromkeys([*_shipped(), *(file.stem for file in _own_files())]))


def own_profiles() -> Iterator[DeviceProfile]:
    """Yield the user's own profiles; one that cannot be read is named and left out."""
    for file in _own_files():
        try:
            yield _read(file, str(file))
        except UsageError as error:
            leave_out(error)


def tuned(info: DeviceInfo) -> dict[str, list[tuple[str, Tuned]]]:
    """Return what was tuned on a device, and by the driver family that it is used through.

    Returns
    -------
    dict
        Profile's name and what was found at one choice of sizes, by ``workload/problem/variant``. The user's own
        profiles come before those that ship; of several entries for the same sizes the first counts.
    """
    found: dict[str, list[tuple[str, Tuned]]] = {}
    for profile in (*own_profiles(), *all_profiles().values()):
        if profile.names(info.name):
            for name, entries in profile.tuned.get(family(info), {}).items():
                held = found.setdefault(name, [])
                known = [each.presets for _, each in held]
                held += [(profile.name, each) for each in entries if each.presets not in known]
    return found


@cache
def _load_shipped(name: str) -> DeviceProfile:
    return _read(_shipped()[name], f"{name}.yaml")


def all_profiles() -> dict[str, DeviceProfile]:
    """Return the shipped profiles by name, sorted."""
    return {name: _load_shipped(name) for name in _shipped()}


def match_profile(device_name: str, kind: str) -> DeviceProfile | None:
    """Return the first profile whose ``match`` finds the name; any other CPU gets ``generic_cpu``, the rest nothing."""
    for profile in all_profiles().values():
        if profile.names(device_name):
            return profile
    return _load_shipped("generic_cpu") if kind == "cpu" else None


def parameters_for(profile: DeviceProfile, workload: str) -> dict[str, Value]:
    """Return the parameters that a profile has for a workload from the literature, empty where it has none."""
    return {name: tuning.value for name, tuning in profile.tuning.get(workload, {}).items()}


def parameters_at(profile: DeviceProfile, variant: str, family: str, size: Size | None) -> list[dict[str, Value]]:
    """Return a profile's parameters for a variant: those of its workload, then what was found by tuning the variant.

    Parameters
    ----------
    variant : str
        ``workload/problem/variant``.
    family : str
        Driver family of the device that they are for (`DeviceProfile.found`).
    size : Size, optional
        Of what was found at several sizes, that at the nearest (`nearest_size`); without it each of them.
    """
    entries = profile.found(variant, family)
    if size is not None:
        entries = by_distance(entries, size)[:1]
    own = parameters_for(profile, variant.partition("/")[0])
    return [own | each.parameters for each in entries] or [own]
