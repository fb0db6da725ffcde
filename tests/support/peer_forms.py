"""Forms of peers: what tests go through."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from perfport.workload import Variant


def forms(cls: type[Variant], kind: str = "cpu") -> list[dict[str, Any]]:
    """The defaults of all tunables, then each other value of each beside the defaults of the rest."""
    info: Any = SimpleNamespace(kind=kind)
    defaults = {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}
    others = [
        {**defaults, name: value}
        for name, tunable in cls.tunables.items()
        for value in tunable.values
        if value != defaults[name]
    ]
    return [defaults, *others]
