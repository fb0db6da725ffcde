"""Ceilings kept in the user's cache, one file per device, driver and version of the sweep."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import platformdirs

from ...model.device import DeviceInfo
from . import entry
from .entry import Ceilings


def cache_file(info: DeviceInfo) -> Path:
    """Where a device's ceilings are kept: a change of chip, driver or sweep gives another file."""
    identity = "|".join([info.id, info.chip, info.driver, info.uuid, str(info.compute_units), str(entry.SWEEP_VERSION)])
    name = f"{info.id.replace(':', '-')}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}.json"
    return Path(platformdirs.user_cache_dir("perfport")) / "ceilings" / name


def load_cached(info: DeviceInfo) -> Ceilings | None:
    """Return the cached ceilings of a device, or ``None`` where there are none that can be read."""
    try:
        return Ceilings.model_validate_json(cache_file(info).read_text())
    except (OSError, ValueError):
        return None


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
