"""Ceilings kept in the user's cache, one file per device, driver, capabilities and version of the sweep."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime, timedelta
from pathlib import Path

import platformdirs

from ...model.device import DeviceInfo
from . import entry
from .entry import Ceilings

#: How long ceilings are trusted. Chip, driver and sweep are in the file's name, and probes beside each group see what
#: moves from one day to the next; what is left (firmware, power limits, cooling, a hypervisor) changes over months, and
#: a sweep takes minutes: who measures every night sweeps twice a month so.
AGE_LIMIT = timedelta(days=14)
CLOCK_ERROR = timedelta(days=1)  # a date further ahead than this was written by a clock that was wrong


def cache_file(info: DeviceInfo) -> Path:
    """Where a device's ceilings are kept: a change of chip, driver, sweep or capabilities gives another file."""
    parts = [info.id, info.chip, info.driver, info.uuid, str(info.compute_units), str(entry.SWEEP_VERSION)]
    identity = "|".join([*parts, *sorted(info.capabilities)])  # that of matrix units is of the best instruction
    name = f"{info.id.replace(':', '-')}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}.json"
    return Path(platformdirs.user_cache_dir("perfport")) / "ceilings" / name


def load_cached(info: DeviceInfo) -> Ceilings | None:
    """Return the cached ceilings of a device, or ``None`` where there are none that can be read."""
    try:
        return Ceilings.model_validate_json(cache_file(info).read_text())
    except (OSError, ValueError):
        return None


def outdated(known: Ceilings, now: datetime) -> tuple[str, list[str]]:
    """Return why stored ceilings are not to be trusted, and which; an empty text where they are.

    Parameters
    ----------
    known : Ceilings
    now : datetime
        Aware of its zone.
    """
    if not known.entries:  # nothing that could have changed
        return "", []
    every = sorted(known.entries.keys() | known.absent.keys())
    try:
        age = now - datetime.fromisoformat(known.date)
    except (TypeError, ValueError):  # of no zone, or no date
        return "nobody knows when they were swept", every
    if age > AGE_LIMIT:
        return f"they were swept {age.days} days ago", every
    if age < -CLOCK_ERROR:
        return "they were swept in the future", every
    if known.contended:
        return "others disturbed their sweep", sorted(known.contended)
    return "", []


def store(info: DeviceInfo, ceilings: Ceilings) -> None:
    """Keep ceilings for later runs; a cache that cannot be written is no error."""
    path = cache_file(info)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(ceilings.model_dump(), indent=1))
        partial.replace(path)
    except OSError:
        return
