"""Names of cases for tools that know a benchmark by its name alone; settings as text; the order of tables."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .record import Identity, Record

ROLES = ("rung", "control", "beyond", "peer")
#: Stands for no profile: the variant's own parameters.
NATIVE = "native"
PRESETS = ("tiny", "quick", "full", "large", "paper")


def natural(value: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts ``n10`` after ``n9``."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", value) if part]


def settings(values: dict[str, Any]) -> str:
    """Return parameters or tunables as ``a=1, b=2``, sorted by name."""
    return ", ".join(f"{name}={plain(values[name])}" for name in sorted(values))


def plain(value: Any) -> str:
    """Return a value of a record as short text: floats with 4 digits, containers as JSON."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def setting(preset: str | None, parameters: dict[str, Any]) -> str:
    """Return preset and parameters as text."""
    return f"{preset or 'no preset'}: {settings(parameters) or 'no parameters'}"


def place(identity: Identity) -> tuple[Any, ...]:
    """Return what orders ladders: problem, setting, precision class; presets from small to large, fp32 first."""
    preset = identity.preset or ""
    rank = PRESETS.index(preset) if preset in PRESETS else len(PRESETS)
    size = (rank, natural(setting(preset, identity.parameters)), json.dumps(identity.parameters, sort_keys=True))
    return (identity.workload, identity.problem, *size, identity.precision != "fp32", identity.precision)


def order(record: Record) -> tuple[Any, ...]:
    """Return what orders the records of one ladder: role, rung, name."""
    identity = record.identity
    tunables = natural(settings(identity.tunables))
    return (ROLES.index(identity.role), identity.rung, identity.variant, identity.profile or "", tunables, record.key)


def names(identities: Sequence[Identity]) -> list[str]:
    """Return a distinct name for each of a run's cases, in order.

    ``workload/problem/preset/variant@device``, with the parameters in place of the preset where none was named. Cases
    that share such a name get the settings in which they differ: ``...variant[group=64]@device``. So a name stays the
    same from run to run of an experiment, and when the default of a tunable changes.
    """
    return [
        _name(identity, f"[{settings}]" if settings else "")
        for identity, settings in zip(identities, telling(identities), strict=True)
    ]


def telling(identities: Sequence[Identity]) -> list[str]:
    """Return, for each of a run's cases, the settings in which it differs from those that share its name otherwise."""
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for identity in identities:
        alike[_name(identity)].append(_settings(identity))
    differences = []
    for identity in identities:
        rivals, own = alike[_name(identity)], _settings(identity)
        differences.append(_listed({k: v for k, v in own.items() if any(other.get(k) != v for other in rivals)}))
    return differences


def _name(identity: Identity, settings: str = "") -> str:
    size = identity.preset or _listed(identity.parameters)
    variant = f"{identity.workload}/{identity.problem}/{size}/{identity.variant}"
    return f"{variant}{settings}@{'+'.join(identity.devices)}"


def seeds(inputs: Mapping[str, int]) -> str:
    """Return what tells timed inputs from others, in words: ``seed 1``, ``seeds 1, 1001, 2001``."""
    return f"seed{'s' * (len(inputs) > 1)} {', '.join(map(str, inputs.values()))}"


def _settings(identity: Identity) -> dict[str, Any]:
    own = {"profile": identity.profile or NATIVE, "inputs": seeds(identity.inputs)}
    return {**identity.parameters, **identity.tunables, **own}


def _listed(values: dict[str, Any]) -> str:
    return ",".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for key, value in sorted(values.items())
    )
