"""One run as a history holds it: what trends need, as columns with one entry per case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..backend import COMPILERS
from ..measure.repeats import worker_medians, workers_of
from ..measure.sampling import Targets
from ..model.record import Record
from ..run.experiment import Experiment, load
from ..store.ratios import is_measured
from ..store.results import EXPERIMENT, Run
from .place import experiment_name, series_key

HEAD = ("name", "started", "experiment", "commit")
NUMBERS = ("time", "low", "high", "bound")
#: Columns whose entries repeat.
TEXTS = ("preset", "status", "driver", "source", "settings", "software", "reason")
COLUMNS = ("series", *TEXTS, *NUMBERS, "workers")
#: What starts a new segment of a series when it changes, and how an event calls it.
CONDITIONS = {"driver": "driver", "source": "source", "settings": "measurement settings", "software": "software"}


@dataclass
class Night:
    """One run as the history holds it: columns with one entry per case.

    Attributes
    ----------
    name, started, experiment, commit : str
        ``started`` is UTC, in ISO 8601; ``commit`` ends in ``-dirty`` where the tree had changes.
    series, preset, status, driver, source, settings, software : list of str
        Key of the series; the preset's name; how the case ended; what else its time depends on (see `CONDITIONS`).
    time, low, high, bound : array
        Seconds: geometric mean of the workers' medians, ends of the 95 % interval of the median, problem bound. NaN
        where the case has none.
    workers : list of int
        Fresh workers that measured it.
    reason : list of str
        First line of why a case has no result.
    """

    name: str
    started: str
    experiment: str
    commit: str
    series: list[str]
    preset: list[str]
    status: list[str]
    driver: list[str]
    source: list[str]
    settings: list[str]
    software: list[str]
    time: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray
    workers: list[int]
    reason: list[str]

    @classmethod
    def of(cls, head: Mapping[str, str], columns: Mapping[str, list[Any]]) -> Night:
        """Return the night of these columns; a number that is ``None`` becomes NaN."""
        content: dict[str, Any] = {name: str(head[name]) for name in HEAD}
        content |= {name: _numbers(columns[name]) if name in NUMBERS else columns[name] for name in COLUMNS}
        return cls(**content)

    @cached_property
    def conditions(self) -> list[tuple[str, ...]]:
        """By case, all that a comparison of two nights depends on."""
        return list(zip(*(getattr(self, name) for name in CONDITIONS), strict=True))

    def changed(self, at: int, other: Night, there: int) -> list[str]:
        """Return what differs between a case here and in another night, in words; empty if both may be compared."""
        changes = []
        for name, title in CONDITIONS.items():
            new, old = getattr(self, name)[at], getattr(other, name)[there]
            if new != old and new and old:
                changes.append(f"{title} changed{'' if name == 'source' else _difference(old, new)}")
        return changes


def _difference(old: str, new: str) -> str:
    """Return what changed from one text of conditions to another: of several parts those that differ."""
    before, after = old.split("; "), new.split("; ")
    if len(before) > 1 or len(after) > 1:
        lost = [part for part in before if part not in after]
        gained = [part for part in after if part not in before]
        old, new = ", ".join(lost) or "nothing", ", ".join(gained) or "nothing"
    return f" from {old} to {new}"


def night(run: Run, name: str | None = None) -> Night:
    """Return what the history keeps of a run; ``name`` stands in for that of its experiment."""
    environment = run.environment
    experiment = load(run.folder / EXPERIMENT) if (run.folder / EXPERIMENT).exists() else None
    commit = environment.get("commit") or {}
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for record in sorted(run.records, key=lambda record: series_key(run, record)):
        if record.provenance != "measured":
            continue
        row = {"series": series_key(run, record, name), **_row(run, record, experiment)}
        for column, value in row.items():
            columns[column].append(value)
    head = {
        "name": run.name,
        "started": str(environment.get("started") or ""),
        "experiment": experiment_name(run) if name is None else name,
        "commit": str(commit.get("hash") or "") + ("-dirty" if commit.get("dirty") else ""),
    }
    return Night.of(head, columns)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _row(run: Run, record: Record, experiment: Experiment | None) -> dict[str, Any]:
    medians = worker_medians(record) if is_measured(record) else []
    summary = record.timing.summary[record.timing.rank] if medians and record.timing else None
    return {
        "preset": record.identity.preset or "",
        "status": record.status.value,
        "driver": _driver(run, record),
        "source": record.source_hash,
        "settings": _settings(record, experiment),
        "software": _software(run, record),
        "time": _short(math.exp(float(np.log(medians).mean()))) if medians else None,
        "low": _short(summary.ci_low) if summary else None,
        "high": _short(summary.ci_high) if summary else None,
        "bound": _short(record.problem_bound.seconds) if summary and record.problem_bound else None,
        "workers": workers_of(record) if medians else 0,
        "reason": record.failure.reason.splitlines()[0][:200] if record.failure and record.failure.reason else "",
    }


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _driver(run: Run, record: Record) -> str:
    known = run.environment.get("devices") or {}
    devices = [known.get(id_) or {} for id_ in record.identity.devices]
    return "; ".join(f"{device.get('driver')} ({device.get('platform_version') or 'no version'})" for device in devices)


def _software(run: Run, record: Record) -> str:
    """What else a case's time depends on: its compiler, all packages for a peer, the host where its clock ranks."""
    versions = run.environment.get("versions") or {}
    of_backend = COMPILERS.get(record.identity.backend, ())
    parts = [
        f"{name} {version}"
        for name, version in sorted(versions.items())
        if name != "perfport" and (record.identity.role == "peer" or name in of_backend)
    ]
    if record.timing and record.timing.rank == "wall":  # the host takes part
        host = run.environment.get("host") or {}
        parts.append(f"{host.get('cores')} x {host.get('cpu')}")
    return "; ".join(parts)


def _settings(record: Record, experiment: Experiment | None) -> str:
    study = experiment.study(record.identity) if experiment else None
    if experiment is None or study is None:
        return ""
    targets = Targets.model_validate({**experiment.measurement.model_dump(), **study.measurement})
    told = targets.model_dump(exclude={"energy"})  # measured after all times, which it leaves as they are
    return "; ".join(f"{name}: {value}" for name, value in {**told, "workers": experiment.workers}.items())
