"""What a search found, written into the device's profile: the block ``tuned``, at its end.

Everything before that block stays byte for byte as it is, and so do the entries of other variants and drivers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ..machine import environment
from ..machine.device_profile import CEILINGS as UNITS
from ..machine.device_profile import REQUIRED_CEILINGS, DeviceProfile, family, user_folder
from ..model import schema
from ..model.device import DeviceInfo
from ..model.errors import UsageError
from ..model.files import read_text, write
from .log import Result

BLOCK = "tuned:"


def own_file(info: DeviceInfo) -> Path:
    """Return the user's own profile of a device."""
    return user_folder() / f"{_name(info.name)}.yaml"


def _name(text: str) -> str:
    """A text as the name of a profile."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"device_{name}"


def check(path: Path, info: DeviceInfo) -> None:
    """Refuse a file that is no profile of a device, or whose ``tuned`` is not at its end, before anything is measured.

    Raises
    ------
    UsageError
    """
    if path.exists():
        profile = _profile(read_text(path), path)
        if not profile.names(info.name):
            patterns = ", ".join(profile.match) or "none"
            raise UsageError(f"{path}: match: expected a pattern that finds {info.name!r}, got {patterns}")
        head, held = split(read_text(path), path)
        if _profile(joined(head, held), path) != profile:
            raise UsageError(f"{path}: tuned: expected a line that begins with {BLOCK!r}, as perfport tune writes it")


def check_shared(files: Mapping[str, Path], devices: Iterable[DeviceInfo]) -> None:
    """Refuse a new profile for devices of several names: it would be of the first alone.

    Raises
    ------
    UsageError
    """
    names: dict[Path, set[str]] = {}
    for device in devices:
        names.setdefault(files[device.id], set()).add(device.name)
    for path, own in names.items():
        if len(own) > 1 and not path.exists():
            told = ", ".join(sorted(own))
            raise UsageError(f"-o {path}: expected one device for a new profile, got {told}; choose with --device")


def update(path: Path, info: DeviceInfo, results: Mapping[str, Result], seed: int) -> list[str]:
    """Write the winners among results into a profile; a new one is made where there is none.

    Parameters
    ----------
    results : mapping
        By ``workload/problem/variant``; those without parameters leave what stands there.

    Returns
    -------
    list of str
        The variants that were written.
    """
    winners = {name: each for name, each in results.items() if each.parameters}
    if not winners:
        return []
    text = read_text(path) if path.exists() else _new(path, info)
    head, held = split(text, path)
    own = dict(held.get(family(info)) or {})
    own |= {name: _entry(each, info, seed) for name, each in winners.items()}
    held = {**held, family(info): dict(sorted(own.items()))}
    content = joined(head, held)
    _profile(content, path)  # what is written can be read
    write(path, content)
    return sorted(winners)


def _profile(text: str, path: Path) -> DeviceProfile:
    return schema.validate(DeviceProfile, schema.parse(text, str(path)), str(path))


def joined(head: str, held: Mapping[str, Any]) -> str:
    """The text of a profile: what stands before the block ``tuned``, and that."""
    block = yaml.safe_dump({"tuned": held}, sort_keys=False, width=120, allow_unicode=True, default_flow_style=None)
    return f"{head.rstrip()}\n{block}"


def split(text: str, path: Path) -> tuple[str, dict[str, Any]]:
    """Return what stands before the block ``tuned``, and what that holds."""
    lines = text.splitlines(keepends=True)
    begin = next((number for number, line in enumerate(lines) if line.startswith(BLOCK)), len(lines))
    after = [line.strip() for line in lines[begin + 1 :] if line[:1] not in (" ", "\n", "#", "-", "")]
    if after:
        raise UsageError(f"{path}: {BLOCK} expected as the last key of the file, got {after[0]!r} after it")
    held = schema.parse("".join(lines[begin:]), str(path)) or {}
    return "".join(lines[:begin]), dict(held.get("tuned") or {})


def _entry(result: Result, info: DeviceInfo, seed: int) -> dict[str, Any]:
    commit = environment.commit() or {}
    entry: dict[str, Any] = {
        "parameters": result.parameters, "next": result.next, "date": datetime.now(UTC).date().isoformat(),
        "driver": info.driver, "commit": f"{commit.get('hash', 'unknown')}{'-dirty' if commit.get('dirty') else ''}",
        "presets": result.presets, "tried": result.tried, "of": result.of, "seed": seed,
    }  # fmt: skip
    if result.share is not None:
        entry["share"] = _rounded(result.share)
    assert result.gain
    entry["gain"] = {end: _rounded(getattr(result.gain, end)) for end in ("value", "low", "high")}
    return entry


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _new(path: Path, info: DeviceInfo) -> str:
    """The text of a profile that says of its device what the driver says, and nothing of what it does not know."""
    unknown = "unknown: written by perfport tune, which asks no data sheet"
    ceilings = {
        name: {"value": None, "unit": UNITS[name], "source": "r", "note": unknown} for name in REQUIRED_CEILINGS
    }
    content = {
        "name": _name(path.stem), "title": info.name, "status": "live",
        "vendor": info.vendor or "unknown", "architecture": "unknown",
        "sources": {"r": "reported by the driver"}, "match": [f"^{re.escape(info.name)}$"], "ceilings": ceilings,
        "hierarchy": {"compute_units": {"value": float(info.compute_units), "unit": "count", "source": "r"}},
    }  # fmt: skip
    return (
        "# Made by perfport tune. Ceilings may be added, each with its source (docs/add-a-device.md).\n"
        + yaml.safe_dump(content, sort_keys=False, width=120, allow_unicode=True, default_flow_style=None)
    )
