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
from dataclasses import dataclass, field
from pathlib import Path

from ..model.errors import InfrastructureError, UsageError
from ..model.record import Status
from ..model.untrusted import inside, slug
from ..store.results import Run
from .night import COLUMNS, HEAD, NUMBERS, TEXTS, Night, night
from .place import Place, compact

VERSION = 1  # of the files; in one, entries of `TEXTS` are numbers of entries of its list of texts


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
        if len({len(columns[name]) for name in COLUMNS}) > 1:
            raise ValueError("columns differ in length")
        texts = [sys.intern(value) for value in content["texts"]]
        columns |= {name: [texts[number] for number in columns[name]] for name in TEXTS}
        return Night.of(content["run"], columns)
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
                events += [Event(number, what) for what in held.changed(row, *last)]
            last = held, row
        return events

    def segment(self, series: Series, now: Night, row: int) -> list[tuple[int, float]]:
        """Return nights and times, oldest first, that may be compared with a case now: back to the last event."""
        times: list[tuple[int, float]] = []
        for number, there in zip(reversed(series.nights), reversed(series.rows), strict=True):
            held = self.nights[number]
            if held.name == now.name or held.started > now.started:
                continue
            if held.status[there] != Status.OK.value:
                continue
            if now.changed(row, held, there):
                break
            times.append((number, float(held.time[there])))
        return times[::-1]
