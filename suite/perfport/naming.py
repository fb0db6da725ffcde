"""Names of cases for tools that know a benchmark by its name alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .record import Identity


def names(identities: Sequence[Identity]) -> list[str]:
    """Return a distinct name for each of a run's cases, in order.

    ``workload/problem/preset/variant@device``, with the parameters in place of the preset where none was named. Cases
    that share such a name get the settings in which they differ: ``...variant[group=64]@device``. So a name stays the
    same from run to run of an experiment, and when the default of a tunable changes.
    """
    return [
        _name(one, f"[{settings}]" if settings else "")
        for one, settings in zip(identities, telling(identities), strict=True)
    ]


def telling(identities: Sequence[Identity]) -> list[str]:
    """Return, for each of a run's cases, the settings in which it differs from those that share its name otherwise."""
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for identity in identities:
        alike[_name(identity)].append(_settings(identity))
    found = []
    for identity in identities:
        rivals, own = alike[_name(identity)], _settings(identity)
        found.append(_listed({k: v for k, v in own.items() if any(other.get(k) != v for other in rivals)}))
    return found


def _name(identity: Identity, settings: str = "") -> str:
    size = identity.preset or _listed(identity.parameters)
    variant = f"{identity.workload}/{identity.problem}/{size}/{identity.variant}"
    return f"{variant}{settings}@{'+'.join(identity.devices)}"


def seeds(inputs: Mapping[str, int]) -> str:
    """Return what tells timed inputs from others, in words: ``seed 1``, ``seeds 1, 1001, 2001``."""
    return f"seed{'s' * (len(inputs) > 1)} {', '.join(map(str, inputs.values()))}"


def _settings(identity: Identity) -> dict[str, Any]:
    own = {"profile": identity.profile or "native", "inputs": seeds(identity.inputs)}
    return {**identity.parameters, **identity.tunables, **own}


def _listed(values: dict[str, Any]) -> str:
    return ",".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for key, value in sorted(values.items())
    )
