"""The key of a case: a digest of all that can change its result. ``--resume`` and staleness of results rest on it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..model.device import DeviceInfo
from ..model.record import Identity

#: Packages whose code decides a result, whole, so that no new module is forgotten: what compiles and launches, what a
#: variant is built with and verified by, what samples and summarises (ceilings included: they bound a result, and
#: decide whether it is ``impossible``), and the worker, which does all of it in order. Not among them: `machine`, whose
#: answers (device, driver, profile's macros) are in the key as values, and all that judges or shows stored results.
FOLDERS = ("backend", "measure", "workload", "run/worker")
#: Modules of other packages: launch sizes, work that bounds are computed from, summaries that end the sampling, and
#: what carries records and ceilings to where they are stored.
MODULES = ("model/arithmetic.py", "model/record.py", "model/work.py", "run/messages.py")

PACKAGE = Path(str(files("perfport")))


def harness_files(root: Path = PACKAGE) -> list[Path]:
    """Return the files of the harness that decide a result; ``root`` is the folder of the package."""
    modules = [root / name for name in MODULES]
    held = [path for folder in FOLDERS for path in (root / folder).rglob("*") if "__pycache__" not in path.parts]
    return sorted(path for path in (*modules, *held) if path.is_file())


def digest_of(root: Path) -> str:
    """SHA-256 over the names and contents of `harness_files`."""
    sha = hashlib.sha256()
    for path in harness_files(root):
        sha.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return sha.hexdigest()


@cache
def harness_digest() -> str:
    """Return the digest of the harness that runs, read once."""
    return digest_of(PACKAGE)


def case_key(
    identity: Identity, macros: Mapping[str, Any], device: DeviceInfo, cache_state: str, workload_digest: str
) -> str:
    """Return the key of a case: 16 hexadecimal digits.

    How long a case is sampled and when it is given up (measurement targets but for the state of the cache, number of
    workers, time-out) is no part of it.

    Parameters
    ----------
    identity : Identity
        Variant, parameters, tunables, device, seeds of the timed inputs.
    macros : mapping
        The device profile's parameters by macro name.
    device : DeviceInfo
        Its driver and chip are part of the key.
    cache_state : str
        ``cold`` or ``warm``.
    workload_digest : str
        `perfport.workload.Workload.source_digest`.
    """
    parts = [
        identity.model_dump_json(), dict(macros), cache_state, workload_digest, harness_digest(), device.driver,
        device.chip,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
