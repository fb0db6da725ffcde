"""What a search found, written into the device's profile: the block ``tuned``, at its end.

Everything before that block stays byte for byte as it is, and so do the entries of other variants and drivers. Of one
variant there is an entry for each choice of sizes that was searched: a mapping where there is one, else a list.
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
from ..machine.device_profile import REQUIRED_CEILINGS, DeviceProfile, family, tuned, user_folder
from ..machine.tuned import Tuned
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
    """Write what was found into a profile; a new one is made where there is none.

    That the code's defaults stand is written, too, or what is found at another size would be taken at this one; but not
    in place of parameters for the same sizes, in this profile or another of the device.

    Parameters
    ----------
    results : mapping
        By ``workload/problem/variant``; those without an answer leave what stands there.

    Returns
    -------
    list of str
        The variants that were written.
    """
    won = tuned(info)
    answers = {
        name: each for name, each in results.items()
        if each.answer or (each.answer is not None and not _has_parameters(won.get(name, []), each))
    }  # fmt: skip
    if not answers:
        return []
    text = read_text(path) if path.exists() else _new(path, info)
    head, held = split(text, path)
    commit = environment.commit_name()
    date = datetime.now(UTC).date().isoformat()
    own = dict(held.get(family(info)) or {})
    for name, each in answers.items():
        own[name] = combined(own.get(name), entry(each, date, info.driver, commit, seed))
    held = {**held, family(info): dict(sorted(own.items()))}
    content = joined(head, held)
    _profile(content, path)  # what is written can be read
    write(path, content)
    return sorted(answers)


def _has_parameters(known: Iterable[tuple[str, Tuned]], result: Result) -> bool:
    """Whether what the device's profiles have of a variant has parameters for the same sizes."""
    return any(each.parameters and each.presets.keys() == result.presets.keys() for _, each in known)


def combined(held: Any, new: Mapping[str, Any]) -> Any:
    """Return what a profile holds of a variant, an entry or a list of them, with a new one.

    It takes the place of that for the same presets, unless it has no parameters. One for a single preset comes before
    one for several, which has a compromise for it.
    """
    entries = held if isinstance(held, list) else [held] if held else []
    same = next((each for each in entries if each["presets"] == new["presets"]), None)
    if same is not None and not new["parameters"]:
        return held
    kept = [each for each in entries if each is not same]
    entries = sorted([*kept, new], key=lambda each: (len(each["presets"]), sorted(each["presets"].items())))
    return entries if len(entries) > 1 else entries[0]


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


def entry(result: Result, date: str, driver: str, commit: str, seed: int) -> dict[str, Any]:
    """Return the answer of a search as an entry of a profile (`Tuned`)."""
    presets = result.presets if len(result.presets) > 1 else dict.fromkeys(result.presets, 1.0)
    made: dict[str, Any] = {
        "parameters": result.answer, "next": result.next, "date": date, "driver": driver, "commit": commit,
        "presets": presets, "tried": max(result.tried, 1), "of": result.of, "seed": seed,
    }  # fmt: skip
    if not result.answer:
        return {**made, "gain": dict.fromkeys(("value", "low", "high"), 1.0)}
    if result.share is not None:
        made["share"] = _rounded(result.share)
    assert result.gain
    return {**made, "gain": {end: _rounded(getattr(result.gain, end)) for end in ("value", "low", "high")}}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _new(path: Path, info: DeviceInfo) -> str:
    """The text of a profile that says of its device what the driver says, and nothing of what it does not know."""
    unknown = "unknown: written by perfport tune, which asks no data sheet"
    ceilings = {
        name: {"value": None, "unit": UNITS[name], "source": "r", "note": unknown} for name in REQUIRED_CEILINGS
    }
    content = {
        "name": _name(path.stem), "title": info.name, "kind": "cpu" if info.kind == "cpu" else "gpu", "status": "live",
        "vendor": info.vendor or "unknown", "architecture": "unknown",
        "sources": {"r": "reported by the driver"}, "match": [f"^{re.escape(info.name)}$"], "ceilings": ceilings,
        "hierarchy": {"compute_units": {"value": float(info.compute_units), "unit": "count", "source": "r"}},
    }  # fmt: skip
    return (
        "# Made by perfport tune. Ceilings may be added, each with its source (docs/add-a-device.md).\n"
        + yaml.safe_dump(content, sort_keys=False, width=120, allow_unicode=True, default_flow_style=None)
    )
