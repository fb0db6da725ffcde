"""The history: one immutable file per run, and the series of every case over them.

    HISTORY/20261121-021500-nightly-20261121-021500-1f0c9a3e5b7d.json

A file holds what trends need of a run, as columns, and nothing points from one file to another: adding a run never
touches an older file, and two machines that add at once write two files (the name holds a hash of the content).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..backend import COMPILERS
from ..measure.repeats import worker_medians, workers_of
from ..measure.sampling import Targets
from ..model.errors import InfrastructureError, UsageError
from ..model.record import Record, Status
from ..run.experiment import Experiment, load
from ..store.collection import site_of
from ..store.ratios import is_measured
from ..store.results import EXPERIMENT, Run

VERSION = 1
_HEAD = ("name", "started", "experiment", "commit")
_NUMBERS = ("time", "low", "high", "bound")
#: Columns whose entries repeat: stored as numbers of entries of the file's ``texts``.
_TEXTS = ("preset", "status", "driver", "source", "settings", "software", "reason")
_COLUMNS = ("series", *_TEXTS, *_NUMBERS, "workers")
#: What starts a new segment of a series when it changes, and how an event calls it.
CONDITIONS = {"driver": "driver", "source": "source", "settings": "measurement settings", "software": "software"}


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
        return _compact(list(replace(self, inputs={}).__dict__.values()))

    @property
    def loose(self) -> str:
        """The key without inputs, tunables and chip: the same across new defaults, and another device in its place."""
        kept = (self.experiment, self.workload, self.problem, self.parameters, self.variant, self.devices, self.profile)
        return _compact(kept)

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


def _compact(value: Any) -> str:
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
    return _compact([where, *what, i.devices, chips, i.backend, i.profile, i.precision, record.inputs])


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

    @cached_property
    def conditions(self) -> list[tuple[str, ...]]:
        """By case, all that a comparison of two nights depends on."""
        return list(zip(*(getattr(self, name) for name in CONDITIONS), strict=True))

    def changed(self, at: int, other: Night, there: int) -> list[str]:
        """Return what differs between a case here and in another night, in words; empty if both may be compared."""
        found = []
        for name, title in CONDITIONS.items():
            new, old = getattr(self, name)[at], getattr(other, name)[there]
            if new != old and new and old:
                found.append(f"{title} changed{'' if name == 'source' else _difference(old, new)}")
        return found


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
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
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
    return _night(head, columns)


def _night(head: dict[str, str], columns: dict[str, list[Any]]) -> Night:
    content: dict[str, Any] = {
        name: _numbers(columns[name]) if name in _NUMBERS else columns[name] for name in _COLUMNS
    }
    content |= {name: str(head[name]) for name in _HEAD}
    return Night(**content)


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
    found = [
        f"{name} {version}"
        for name, version in sorted(versions.items())
        if name != "perfport" and (record.identity.role == "peer" or name in of_backend)
    ]
    if record.timing and record.timing.rank == "wall":  # the host takes part
        host = run.environment.get("host") or {}
        found.append(f"{host.get('cores')} x {host.get('cpu')}")
    return "; ".join(found)


def _settings(record: Record, experiment: Experiment | None) -> str:
    study = experiment.study(record.identity) if experiment else None
    if experiment is None or study is None:
        return ""
    targets = Targets.model_validate({**experiment.measurement.model_dump(), **study.measurement}).model_dump()
    return "; ".join(f"{name}: {value}" for name, value in {**targets, "workers": experiment.workers}.items())


def add(run: Run, folder: Path) -> Path:
    """Add a run to a history; returns the file. Adding the same run again changes nothing.

    Raises
    ------
    UsageError
        If the run holds no measured case.
    InfrastructureError
        If the file cannot be written.
    """
    held = night(run)
    if not held.series:
        raise UsageError(f"{run.folder}: no case to add to a history")
    return store(held, folder)


def store(held: Night, folder: Path) -> Path:
    """Write a night as a file of its own, whole or not at all. Raises `InfrastructureError`."""
    content = _as_json(held).encode()
    name = "-".join([
        re.sub(r"[^0-9T]", "", held.started[:19]).replace("T", "-") or "undated",
        re.sub(r"[^A-Za-z0-9_.-]+", "_", held.name)[:80],
        hashlib.sha256(content).hexdigest()[:12],
    ])  # fmt: skip
    path = folder / f"{name}.json"
    if path.exists():
        return path
    partial = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Readers take files that end in .json: one that is torn by a kill never has that name.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f"{name}.", suffix=".part", delete=False) as file:
            partial = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o644)
        partial.replace(path)
    except OSError as error:
        if partial:
            partial.unlink(missing_ok=True)
        raise InfrastructureError(f"{folder}: cannot write the history ({error.strerror})") from None
    return path


def _as_json(held: Night) -> str:
    columns = {name: getattr(held, name) for name in _COLUMNS}
    for name in _NUMBERS:
        columns[name] = [None if math.isnan(value) else value for value in columns[name].tolist()]
    texts = list(dict.fromkeys(value for name in _TEXTS for value in columns[name]))
    numbers = {value: number for number, value in enumerate(texts)}
    for name in _TEXTS:
        columns[name] = [numbers[value] for value in columns[name]]
    head = {name: getattr(held, name) for name in _HEAD}
    lines = [f"  {json.dumps(name)}: {_compact(values)}" for name, values in columns.items()]
    return "".join([
        f'{{"perfport_history": {VERSION}, "run": {_compact(head)},\n "texts": {_compact(texts)},\n "cases": {{\n',
        ",\n".join(lines), "\n}}\n"
    ])  # fmt: skip


def read_night(path: Path) -> Night:
    """Read one file of a history.

    Raises
    ------
    UsageError
        Naming the file, if it is torn, or no file of a history that this version reads.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"{path}: not JSON, torn or no file of a history ({error})") from None
    version = content.get("perfport_history") if isinstance(content, dict) else None
    if version != VERSION:
        raise UsageError(f"{path}: no file of a history that this version reads (perfport_history is {version!r})")
    try:
        columns = content["cases"]
        if len({len(columns[name]) for name in _COLUMNS}) > 1:
            raise ValueError("columns differ in length")
        texts = [sys.intern(value) for value in content["texts"]]
        columns |= {name: [texts[number] for number in columns[name]] for name in _TEXTS}
        return _night(content["run"], columns)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: a file of a history, but damaged ({error})") from None


@dataclass
class Event:
    """A change of what a series was measured with: ``what`` in words, first seen in this night."""

    night: int
    what: str


@dataclass
class Series:
    """One case over the nights of a history.

    Attributes
    ----------
    key : str
        See `Place`.
    nights : list of int
        Numbers of the nights that hold it, oldest first; ``rows[i]`` is its row in night ``nights[i]``.
    """

    key: str
    nights: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def place(self) -> Place:
        """What it is of."""
        return Place.of(self.key)


class History:
    """A history, read whole: ``nights`` by time, ``series`` by key, and ``left_out``, files that could not be read.

    Raises
    ------
    UsageError
        If the folder does not exist; an empty one is a history without nights.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            begins = f"a history begins as an empty one, or by 'perfport history add RUN --into {folder}'"
            raise UsageError(f"{folder}: no such folder; {begins}")
        self.folder = folder
        self.left_out: list[str] = []
        self.nights: list[Night] = []
        for path in sorted(folder.glob("*.json")):
            try:
                self.nights.append(read_night(path))
            except UsageError as error:
                self.left_out.append(str(error))
        self.nights.sort(key=lambda held: (held.started, held.name))
        self.series: dict[str, Series] = {}
        for number, held in enumerate(self.nights):
            for row, key in enumerate(held.series):
                found = self.series.get(key)
                if found is None:
                    found = self.series[key] = Series(key)
                found.nights.append(number)
                found.rows.append(row)

    def events(self, series: Series) -> list[Event]:
        """Return what changed along a series. A night without a result says nothing of its conditions."""
        found: list[Event] = []
        last: tuple[Night, int] | None = None
        for number, row in zip(series.nights, series.rows, strict=True):
            held = self.nights[number]
            if held.workers[row] == 0:
                continue
            now = held.conditions[row]
            if last and now != last[0].conditions[last[1]]:
                found += [Event(number, what) for what in held.changed(row, *last)]
            last = held, row
        return found

    def segment(self, series: Series, now: Night, row: int) -> list[tuple[int, float]]:
        """Return nights and times, oldest first, that may be compared with a case now: back to the last event."""
        found: list[tuple[int, float]] = []
        for number, there in zip(reversed(series.nights), reversed(series.rows), strict=True):
            held = self.nights[number]
            if held.name == now.name or held.started > now.started:
                continue
            if held.status[there] != Status.OK.value:
                continue
            if now.changed(row, held, there):
                break
            found.append((number, float(held.time[there])))
        return found[::-1]
