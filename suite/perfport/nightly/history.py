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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, Field, TypeAdapter, model_validator
from pydantic_core import ArgsKwargs, from_json

from ..model import schema
from ..model.errors import InfrastructureError, UsageError, leave_out, shown
from ..model.files import read_json
from ..model.record import Status
from ..model.untrusted import inside, slug
from ..store.reading import LONGEST, MOST_NUMBER, SHORTEST
from ..store.results import Run, each_run
from .levels import Stretch
from .night import COLUMNS, HEAD, NUMBERS, TEXTS, Change, Night, night
from .place import Place, compact

VERSION = 1  # of the files; in one, entries of `TEXTS` are numbers of entries of its list of texts


_PLACE = TypeAdapter(Place)
Numbers = list[Annotated[int, Field(ge=0, lt=1 << 31)]]
Limits = list[Annotated[float, Field(ge=0, le=MOST_NUMBER)] | None]


class _Head(BaseModel):
    name: str
    started: str
    experiment: str
    commit: str


class _Columns(BaseModel):
    """Columns with one entry per case; those of `TEXTS` hold numbers of entries in the file's list of texts."""

    series: list[str]
    preset: Numbers
    status: Numbers
    driver: Numbers
    source: Numbers
    code: Numbers | None = None  # files of earlier versions lack it
    settings: Numbers
    software: Numbers
    reason: Numbers
    time: list[Annotated[float, Field(ge=SHORTEST, le=LONGEST)] | None]
    low: Limits
    high: Limits
    bound: Limits
    workers: Numbers

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len({len(column) for column in self.__dict__.values() if column is not None}) > 1:
            raise ValueError("expected columns of one length")
        return self


class _File(BaseModel):
    """A file of a history, as JSON has it."""

    run: _Head
    texts: list[str]
    cases: _Columns


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


def add_runs(path: Path, folder: Path) -> Iterator[Path]:
    """Add the runs at or directly below ``path``; yields the files. Of several, one that cannot be added is named and
    left out. Raises as `add` does, and as `each_run`.
    """
    for run in each_run(path):
        try:
            yield add(run, folder)
        except UsageError as error:
            if run.folder == path:
                raise
            leave_out(error)


def store(held: Night, folder: Path) -> Path:
    """Write a night as a file of its own, whole or not at all. Raises `InfrastructureError`."""
    content = _as_json(held).encode()
    name = "-".join([
        re.sub(r"[^0-9T]", "", held.started[:19]).replace("T", "-") or "undated",
        slug(held.name),
        hashlib.sha256(content).hexdigest()[:12],
    ])  # fmt: skip
    path = inside(folder, f"{name}.json")
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
    columns = {name: getattr(held, name) for name in COLUMNS}
    for name in NUMBERS:
        columns[name] = [None if math.isnan(value) else value for value in columns[name].tolist()]
    texts = list(dict.fromkeys(value for name in TEXTS for value in columns[name]))
    numbers = {value: number for number, value in enumerate(texts)}
    for name in TEXTS:
        columns[name] = [numbers[value] for value in columns[name]]
    head = {name: getattr(held, name) for name in HEAD}
    lines = [f"  {json.dumps(name)}: {compact(values)}" for name, values in columns.items()]
    return "".join([
        f'{{"perfport_history": {VERSION}, "run": {compact(head)},\n "texts": {compact(texts)},\n "cases": {{\n',
        ",\n".join(lines), "\n}}\n"
    ])  # fmt: skip


def read_night(path: Path) -> Night:
    """Read one file of a history.

    Raises
    ------
    UsageError
        Naming the file, if it is torn, or no file of a history that this version reads.
    """
    content = read_json(path)
    version = content.get("perfport_history") if isinstance(content, dict) else None
    if version != VERSION:
        version = f"perfport_history is {shown(version)}"
        raise UsageError(f"{path}: no file of a history that this version reads ({version})")
    damaged = f"{path}: a file of a history, but damaged"
    held = schema.validate(_File, content, damaged)
    texts = [sys.intern(text) for text in held.texts]
    columns = vars(held.cases)
    try:
        columns |= {
            name: [""] * len(held.cases.series) if columns[name] is None else [texts[n] for n in columns[name]]
            for name in TEXTS
        }
    except IndexError:
        raise UsageError(f"{damaged}: cases: a number of a text that is not among the texts") from None
    for key in columns["series"]:
        if not _is_place(key):
            raise UsageError(f"{damaged}: cases.series: expected the key of a series, got {shown(key)}")
    if other := set(columns["status"]) - set(Status):
        raise UsageError(f"{damaged}: cases.status: expected one of {', '.join(Status)}, got {shown(min(other))}")
    return Night.of(vars(held.run), columns)


@cache
def _is_place(key: str) -> bool:
    """Whether a series' key stands for a place; most nights have the same ones."""
    try:
        _PLACE.validate_python(ArgsKwargs(tuple(from_json(key))))
    except (ValueError, TypeError):  # TypeError: no list
        return False
    return True


@dataclass
class Event:
    """A change of what a series was measured with, first seen in this night."""

    night: int
    change: Change

    @property
    def what(self) -> str:
        """The change in words."""
        return str(self.change)


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


def _latest_states(nights: Sequence[Night]) -> list[Night]:
    """Return nights without those that another file holds in a later state: a run is added, goes on, is added again."""
    fullest = sorted(nights, key=lambda held: (len(held.series), held.status.count(Status.OK.value), sum(held.workers)))
    kept: dict[tuple[str, str, str], list[Night]] = {}
    for held in reversed(fullest):
        of_run = kept.setdefault((held.name, held.started, held.experiment), [])
        if not any(_goes_on(held, other) for other in of_run):
            of_run.append(held)
    return [held for of_run in kept.values() for held in of_run]


def _goes_on(held: Night, later: Night) -> bool:
    """Whether a night of the same name and time is a later state: it has most times of the other; not so a machine's
    that calls its run alike.
    """
    times = dict(zip(later.series, later.time.tolist(), strict=True))
    if not {*held.series} <= times.keys():
        return False
    same = [times[key] == each for key, each in zip(held.series, held.time.tolist(), strict=True) if each == each]
    return 2 * sum(same) >= len(same)


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
        self.nights = _latest_states(self.nights)
        self.nights.sort(key=lambda held: (held.started, held.name))
        self.series: dict[str, Series] = {}
        for number, held in enumerate(self.nights):
            for row, key in enumerate(held.series):
                series = self.series.setdefault(key, Series(key))
                series.nights.append(number)
                series.rows.append(row)

    def events(self, series: Series) -> list[Event]:
        """Return what changed along a series. A night without a result says nothing of its conditions."""
        events: list[Event] = []
        last: tuple[Night, int] | None = None
        for number, row in zip(series.nights, series.rows, strict=True):
            held = self.nights[number]
            if held.workers[row] == 0:
                continue
            now = held.conditions[row]
            if last and now != last[0].conditions[last[1]]:
                events += [Event(number, change) for change in held.changed(row, *last)]
            last = held, row
        return events

    def times(self, series: Series) -> dict[int, float]:
        """Return the seconds of a series by number of the night, where it has a result that nothing disturbed."""
        held = ((number, self.nights[number], row) for number, row in zip(series.nights, series.rows, strict=True))
        return {number: float(night.time[row]) for number, night, row in held if night.status[row] == Status.OK.value}

    def stretches(self, series: Series, now: Night, row: int) -> tuple[list[Stretch], list[Change]]:
        """Return the nights with a result before a case now, parted by events, and what has changed since the last."""
        parted: list[tuple[dict[int, float], list[Change]]] = []
        last: tuple[Night, int] | None = None
        for number, there in zip(series.nights, series.rows, strict=True):
            held = self.nights[number]
            if not held.precedes(now.name, now.started) or held.status[there] != Status.OK.value:
                continue
            same = last is not None and held.conditions[there] == last[0].conditions[last[1]]
            changes = held.changed(there, *last) if last and not same else []
            if changes or not parted:
                parted.append(({}, changes))
            parted[-1][0][number] = math.log(held.time[there])
            last = held, there
        return [Stretch(logs, changes) for logs, changes in parted], now.changed(row, *last) if last else []
