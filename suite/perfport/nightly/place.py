"""What makes two measurements comparable at all: the key of a series, and what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model.record import Record
from ..store.case import site_of
from ..store.results import Run


@dataclass(frozen=True)
class Place:
    """What a series is of: everything that makes two measurements comparable at all."""

    experiment: str
    workload: str
    problem: str
    parameters: dict[str, Any]
    variant: str
    tunables: dict[str, Any]
    devices: list[str]
    chips: list[str]
    backend: str
    profile: str | None
    precision: str
    inputs: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, series: str) -> Place:
        """Return the place that a series' key stands for."""
        return cls(*json.loads(series))

    @property
    def drawn(self) -> str:
        """The key without the inputs: that of the same case on others."""
        return compact(list(replace(self, inputs={}).__dict__.values()))

    @property
    def loose(self) -> str:
        """The key without inputs, tunables and chip: the same across new defaults, and another device in its place."""
        kept = (self.experiment, self.workload, self.problem, self.parameters, self.variant, self.devices, self.profile)
        return compact(kept)

    @property
    def title(self) -> str:
        """Name for readers, without the device."""
        words = [f"{self.workload}/{self.problem}", self.variant, _flat(self.parameters)]
        words += [f"[{_flat(self.tunables)}]"] if self.tunables else []
        words += [f"profile {self.profile}"] if self.profile else []
        return " ".join(filter(None, [*words, self.precision if self.precision != "fp32" else ""]))

    @property
    def names(self) -> tuple[str, str, str, str, str]:
        """By what a `perfport.store.collection.Filter` chooses it."""
        return self.workload, self.problem, self.variant, self.site, self.precision

    @property
    def site(self) -> str:
        """Where it ran."""
        return f"{' + '.join(self.devices)} ({' + '.join(dict.fromkeys(self.chips))})"


def _flat(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in sorted(values.items()))


def compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def experiment_name(run: Run) -> str:
    """Return the name of the experiment that a run is of."""
    return str((run.environment.get("experiment") or {}).get("name") or "")


def series_key(run: Run, record: Record, experiment: str | None = None) -> str:
    """Return the key of the series that a record belongs to (the fields of `Place`, as JSON).

    ``experiment`` stands in for the name of the run's own, where runs of two experiments are compared.
    """
    i = record.identity
    chips = list(site_of(run, record).chips)
    where = experiment_name(run) if experiment is None else experiment
    what = [i.workload, i.problem, i.parameters, i.variant, i.tunables]
    return compact([where, *what, i.devices, chips, i.backend, i.profile, i.precision, record.inputs])
