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
from ..run.sources import MEASURING
from ..store.ratios import is_measured
from ..store.results import EXPERIMENT, Run
from .place import experiment_name, series_key

HEAD = ("name", "started", "experiment", "commit")
NUMBERS = ("time", "low", "high", "bound")
#: Columns whose entries repeat.
TEXTS = ("preset", "status", "driver", "source", "code", "settings", "software", "reason")
COLUMNS = ("series", *TEXTS, *NUMBERS, "workers")
#: What is an event of a series when it changes, and how an event calls it: kinds of `Change`.
CONDITIONS = {"source": "source", "driver": "driver", "software": "software", "settings": "measurement settings"}


@dataclass(frozen=True)
class Change:
    """What differs between a case in one night and in a later one.

    Attributes
    ----------
    kind : str
        One of `CONDITIONS`.
    old, new : str
        Of the source the commits, abbreviated, as far as they are known.
    files : tuple of str
        Of the source those that differ, as far as they are known.
    """

    kind: str
    old: str
    new: str
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind != "source":
            return f"{CONDITIONS[self.kind]} {self.old} -> {self.new}"
        span = f"{self.old}..{self.new}" if self.old and self.new and self.old != self.new else ""
        inside = ": ".join(filter(None, [span, _some(self.files)]))
        return "source changed" + (f" ({inside})" if inside else "")


#: Files that an event names; of more, their number.
MOST_FILES = 3


def _some(files: Sequence[str]) -> str:
    more = len(files) - MOST_FILES
    return ", ".join(files[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")


@dataclass
class Night:
    """One run as the history holds it: columns with one entry per case.

    Attributes
    ----------
    name, started, experiment, commit : str
        ``started`` is UTC, in ISO 8601; ``commit`` ends in ``-dirty`` where the tree had changes.
    series, preset, status, driver, source, code, settings, software : list of str
        Key of the series; the preset's name; how the case ended; what else its time depends on (see `CONDITIONS`):
        ``source`` is the hash of what was compiled, ``code`` names all files with their digests.
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
    code: list[str]
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
        return list(zip(self.driver, self.source, self.code, self.settings, self.software, strict=True))

    def precedes(self, name: str, started: str) -> bool:
        """Whether it began before a run, or with it, and is not that run: jobs give each night's folder one name."""
        return self.started <= started and (self.name, self.started) != (name, started)

    def changed(self, at: int, other: Night, there: int) -> list[Change]:
        """Return what differs between a case here and in an earlier night; empty if both may be compared.

        What is not known on both sides has not changed.
        """
        changes = []
        code, old_code = self.code[at], other.code[there]
        known = bool(code and old_code)
        if (known and code != old_code) or _differ(self.source[at], other.source[there]):
            files = _changed_parts(old_code, code) if known else ()
            changes.append(Change("source", _short_commit(other.commit), _short_commit(self.commit), files))
        for kind in ("driver", "software", "settings"):
            new, old = getattr(self, kind)[at], getattr(other, kind)[there]
            if _differ(new, old):
                words = _drivers if kind == "driver" else _parts_that_differ
                changes.append(Change(kind, *words(old, new)))
        return changes


def _differ(new: str, old: str) -> bool:
    return bool(new and old and new != old)


def _short_commit(commit: str) -> str:
    """Return seven digits of a commit, and a mark where the tree had changes that were not committed."""
    return commit[:7] + ("+" if commit.endswith("-dirty") else "")


def _changed_parts(old: str, new: str) -> tuple[str, ...]:
    """Return the names of the files that differ between two texts of code."""
    before, after = set(old.split("; ")), set(new.split("; "))
    names = {part.rpartition(" ")[0] for part in before ^ after}
    return tuple(sorted(names, key=lambda name: (name == MEASURING, name)))


def _drivers(old: str, new: str) -> tuple[str, str]:
    """Return two drivers, without the versions of their platforms where they differ themselves."""
    short = old.partition(" (")[0], new.partition(" (")[0]
    return short if short[0] != short[1] else (old, new)


def _parts_that_differ(old: str, new: str) -> tuple[str, str]:
    """Return what two texts of conditions hold that the other does not."""
    before, after = old.split("; "), new.split("; ")
    if len(before) > 1 or len(after) > 1:
        lost = [part for part in before if part not in after]
        gained = [part for part in after if part not in before]
        old, new = ", ".join(lost) or "none", ", ".join(gained) or "none"
    return old, new


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
        "code": _code(run, record),
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


def _code(run: Run, record: Record) -> str:
    """Return the files that a case was made of and measured by, each with its digest; empty in runs without them."""
    known = run.environment.get("code") or {}
    i = record.identity
    own = (known.get("made_of") or {}).get(f"{i.workload}/{i.problem}/{i.variant}")
    if not own:
        return ""
    parts = [f"{name} {known['files'].get(name, '')}" for name in own]
    return "; ".join([*parts, f"{MEASURING} {known['measuring'][:12]}"])


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
