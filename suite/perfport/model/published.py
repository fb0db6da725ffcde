"""Figures that others published, and where the sources contradict themselves: data beside the measured results.

They are results, not code: they lie in ``results/published``, one file per workload, and correcting one changes no
case's key. A workload from elsewhere keeps its own in ``published.yaml``, in the same form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import Field

from . import schema
from .errors import UsageError, nearest
from .schema import Finite, Model

FILE = "published.yaml"
_FOLDER = "perfport.published_results"


class Figure(Finite):
    """One figure of a publication.

    Attributes
    ----------
    problem, variant : str
        Names within the workload; a variant that the suite does not have names what was measured.
    device : str
        A device profile, or what the publication calls the device.
    value, high : float
        The figure; of a range, its two ends.
    unit : str
    share : float, optional
        Share of the publication's own bound, where it states one.
    source : str
        Publication and section.
    parameters : dict, optional
        The setting, of a figure that says nothing of another size (frames per second): it is compared at that alone.
    """

    problem: str
    variant: str
    device: str
    value: float
    high: float | None = None
    unit: str
    share: float | None = Field(None, ge=0)
    source: str
    note: str | None = None
    parameters: dict[str, Any] | None = None


class Inconsistency(Model):
    """Where a source contradicts itself or is incomplete: what it states, and what the suite uses."""

    workload: str
    source: str
    stated: str
    used: str


def read(file: Path | Traversable) -> list[Figure]:
    """Read a file of figures.

    Raises
    ------
    UsageError
        If it is no list of figures; the text names file, entry and key.
    """
    return schema.validate(list[Figure], schema.read(file) or [], str(file))


@cache
def _shipped() -> dict[str, Traversable]:
    return {f.name.removesuffix(".yaml"): f for f in files(_FOLDER).iterdir() if f.name.endswith(".yaml")}


@cache
def figures(workload: str) -> tuple[Figure, ...]:
    """Return the figures that ship for a workload, empty where there are none."""
    file = _shipped().get(workload)
    return tuple(read(file)) if file else ()


def stated(workload: str, problem: str, environment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the figures of a problem, each once: as they are now, else as the environment of a run holds them."""
    about = (environment.get("workloads") or {}).get(workload) or {}
    # A figure that was corrected since the run is shown as it is now.
    now = [figure.model_dump(exclude_none=True) for figure in figures(workload)]
    entries: dict[str, dict[str, Any]] = {}
    for entry in now or about.get("published") or []:
        if entry.get("problem") == problem and isinstance(entry.get("value"), int | float):
            key = json.dumps([entry.get(name) for name in ("variant", "device", "value", "high", "unit", "source")])
            entries.setdefault(key, entry)
    return list(entries.values())


def of_workload(name: str, folder: Path) -> list[Figure]:
    """Return a workload's figures: those that ship, else those of its folder."""
    own = folder / FILE
    return list(figures(name)) or (read(own) if own.exists() else [])


def exhibits_file(name: str) -> Traversable:
    """Return the file that says which figures and tables a publication has (`perfport.judge.exhibits`), by workload.

    Raises
    ------
    UsageError
        If there is none.
    """
    there = {file.name.removesuffix(".yaml"): file for file in files(_FOLDER).joinpath("exhibits").iterdir()}
    if name not in there:
        listed = ", ".join(sorted(there))
        raise UsageError(f"{name!r} is no publication with exhibits{nearest(name, there)}; there are: {listed}")
    return there[name]


@cache
def inconsistencies() -> tuple[Inconsistency, ...]:
    """Return what is known to be inconsistent in the sources, by workload."""
    file = _shipped()["inconsistencies"]
    return tuple(schema.validate(list[Inconsistency], schema.read(file), str(file)))
