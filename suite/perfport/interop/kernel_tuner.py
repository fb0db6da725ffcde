"""Kernel Tuner's files: its caches of measured configurations read, its output schema T4 written.

Kernel Tuner (B. van Werkhoven, "Kernel Tuner: A search-optimizing GPU code auto-tuner", Future Generation Computer
Systems 90, 2019) keeps each configuration that it has measured in a cache file, and exchanges results with other tuners
in the schemas of the autotuning community (https://github.com/odgaard/TuningSchema, T4: results).
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from ..model.errors import UsageError
from ..model.files import MOST_BYTES, parse_json, read, write
from ..model.record import Status
from ..model.schema import validate
from ..model.untrusted import inside, slug
from ..tune.log import LOG, Trial
from ..tune.log import read as read_log
from ..tune.space import Config, Space, name_of

#: Milliseconds; Kernel Tuner writes 1e20 where there is no time.
LONGEST = 1e12


class _Cache(BaseModel):
    """What is read of a cache file; everything else is left alone."""

    device_name: str
    kernel_name: str
    tune_params_keys: list[str] = Field(min_length=1)
    tune_params: dict[str, list[Any]]
    cache: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Measured:
    """A space that Kernel Tuner has measured, on one device: time by name of the configuration, ``None``: it failed."""

    device: str
    kernel: str
    space: Space
    times: dict[str, float | None]
    configs: dict[str, Config]

    @property
    def best(self) -> float:
        """The shortest time."""
        return min(time for time in self.times.values() if time is not None)


def read_cache(path: Path) -> Measured:
    """Read a cache file of Kernel Tuner, as JSON or compressed by gzip.

    Raises
    ------
    UsageError
        If it cannot be read, is none, or holds no configuration with a time.
    """
    content = read(path)
    if path.suffix == ".gz":
        content = _inflated(content, path)
    where = str(path)
    cache = validate(_Cache, parse_json(content, where), where)
    names = cache.tune_params_keys
    if missing := [name for name in names if name not in cache.tune_params]:
        raise UsageError(f"{path}: tune_params: expected values of {missing[0]!r}, got none")
    times, configs = {}, {}
    for key, entry in cache.cache.items():
        if missing := [name for name in names if name not in entry]:
            raise UsageError(f"{path}: cache.{key[:60]}: expected a value of {missing[0]!r}, got none")
        config = {name: entry[name] for name in names}
        time = entry.get("time")
        # What failed has the name of an error there.
        known = isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < LONGEST
        times[name_of(config)] = float(time) if known else None  # type: ignore[arg-type]
        configs[name_of(config)] = config
    if all(time is None for time in times.values()):
        raise UsageError(f"{path}: cache: expected at least one configuration with a time, got none")
    space = Space({name: cache.tune_params[name] for name in names}, lambda config: name_of(config) in times)
    return Measured(cache.device_name, cache.kernel_name, space, times, configs)


def _inflated(content: bytes, path: Path) -> bytes:
    try:
        with gzip.open(BytesIO(content)) as file:
            inflated = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read (expected a file compressed by gzip: {error})") from None
    if len(inflated) > MOST_BYTES:
        raise UsageError(f"{path}: expected at most {MOST_BYTES:,} bytes once inflated, got more")
    return inflated


#: How T4 calls what has no result.
INVALIDITY = {
    Status.OK: "correct", Status.WRONG: "correctness", Status.IMPOSSIBLE: "correctness", Status.TIMEOUT: "timeout",
    Status.COMPILE_ERROR: "compile", Status.UNSUPPORTED: "constraints",
}  # fmt: skip


def write_t4(search: Path, folder: Path) -> list[Path]:
    """Write what a search has measured as T4, a file for each device, variant and size; return the files.

    Configurations that were not timed, because of their own bound, are left out. Times are milliseconds.
    """
    spaces: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for entry in read_log(search / LOG):
        if isinstance(entry, Trial) and not entry.hopeless:
            spaces.setdefault((entry.device, entry.variant, entry.preset), []).append(_t4_result(entry))
    files = []
    for names, results in spaces.items():
        device, variant, preset = names
        content = {
            "schema_version": "1.0.0",
            "metadata": {"timeunit": "milliseconds", "device": device, "kernel": variant, "size": preset},
            "results": results,
        }  # fmt: skip
        files.append(inside(folder, f"{slug(device, *variant.split('/'), preset)}.json"))
        write(files[-1], json.dumps(content, indent=1))
    return files


def _t4_result(trial: Trial) -> dict[str, Any]:
    valid = trial.status is Status.OK
    measured = [{"name": "time", "value": 1e3 * trial.seconds, "unit": "ms"}] if trial.seconds else []
    return {
        "configuration": trial.config,
        "times": {"runtimes": [1e3 * seconds for seconds in trial.times], "framework": 1e3 * trial.took},
        "invalidity": INVALIDITY.get(trial.status, "runtime"), "correctness": int(valid), "measurements": measured,
        "objectives": ["time"],
    }  # fmt: skip
