"""The results store: one folder per run, append-only records beside an environment file.

    RUN/environment.json   host, versions, commit, devices, seed; written when a run begins
    RUN/ceilings.jsonl     ceilings in use and probes of them, one per line
    RUN/experiment.yaml    copy of the experiment file
    RUN/records.jsonl      one record per line
    RUN/lock               held while a run writes

Every line is flushed to disk. One torn by a kill is ignored when reading and cut off when a run resumes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ..machine.paths import shorten, shortened
from ..model.errors import InfrastructureError, UsageError, from_system, leave_out
from ..model.record import Failure, Record, Status
from ..model.untrusted import inside
from .environment import CEILINGS, ENVIRONMENT, read_environment
from .reading import NotJsonError, lines, parse, read_records
from .writing import LineFile, replace

RECORDS = "records.jsonl"
EXPERIMENT = "experiment.yaml"


class Run:
    """A stored run, read-only: ``environment`` (dict) and ``records`` (the last one of each key, in file order).

    Lines that are no record are named and left out (`perfport.store.reading`).

    Raises
    ------
    UsageError
        If the folder holds no run, or a file is not what this version of the suite reads.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.environment, left_out = read_environment(self.folder)
        for error in left_out:
            leave_out(error)
        latest: dict[str, Record] = {}
        for record in read_records(self.folder / RECORDS):
            latest.pop(record.key, None)
            latest[record.key] = record
        self.records = list(latest.values())

    @property
    def name(self) -> str:
        """The run's name: its folder's."""
        return str(self.environment.get("run", self.folder.name))

    @property
    def beside(self) -> str:
        """Name of the run beside which this one was imported; empty where it was measured here."""
        return str((self.environment.get("imported") or {}).get("beside") or "")

    @property
    def planned(self) -> int | None:
        """How many cases the run was to have; ``None`` where it does not say."""
        said = self.environment.get("planned")
        return said if isinstance(said, int) else None

    @property
    def incomplete(self) -> bool:
        """Whether it is known that cases of the run's plan have no record."""
        return self.planned is not None and len(self.records) < self.planned


def find_runs(path: Path | str, without_records: bool = False) -> list[Path]:
    """Return the run folders at or directly below ``path``, by name.

    Parameters
    ----------
    without_records : bool
        Also those whose file of records is missing.

    Raises
    ------
    UsageError
        If there is none.
    """

    def holds(folder: Path) -> bool:
        begun = without_records and (folder / ENVIRONMENT).exists() and (folder / EXPERIMENT).exists()
        return begun or os.path.lexists(folder / RECORDS)  # a link to nowhere is named when it is read

    path = Path(path)
    if holds(path):
        return [path]
    try:
        folders = sorted(filter(holds, path.iterdir())) if path.is_dir() else []
    except OSError as error:
        raise from_system(error, f"{path}: cannot be read") from None
    if not folders:
        raise UsageError(f"{path}: no results here (expected a folder with {RECORDS}, or a folder of such folders)")
    return folders


def each_run(path: Path | str) -> Iterator[Run]:
    """Yield the runs at or directly below ``path``. One of several that cannot be read is named and left out.

    Raises
    ------
    UsageError
        If there is none that can be read.
    """
    folders = find_runs(path)
    if folders == [Path(path)]:  # it is the one that is meant
        yield Run(path)
        return
    left_out = 0
    for folder in folders:
        try:
            run = Run(folder)
        except UsageError as error:
            leave_out(error)
            left_out += 1
            continue
        yield run
    if left_out == len(folders):
        raise UsageError(f"{path}: none of the {len(folders)} runs here can be read")


def load_runs(paths: Iterable[Path | str]) -> list[Run]:
    """Return the runs at or directly below some paths. Raises as `each_run` does."""
    return [run for path in paths for run in each_run(path)]


def faults(folder: Path) -> list[str]:
    """Return everything that is wrong with a run folder, each with its file and, where it has one, its line."""
    path, keys, bad = folder / RECORDS, set(), 0
    complaints: list[str] = []
    environment: dict[str, Any] = {}
    try:
        environment, left_out = read_environment(folder)
        complaints += map(str, left_out)
    except UsageError as error:
        complaints.append(str(error))
    try:
        for number, line, last in lines(path):
            try:
                record = parse(line, f"{path}:{number}")
                keys.add(record.key)
                complaints += [f"{path}:{number}: {doubt}" for doubt in _doubts(record)]
            except UsageError as error:
                torn = last and isinstance(error, NotJsonError)
                bad += not torn
                complaints.append(f"{path}:{number}: torn, the run was stopped while it wrote" if torn else str(error))
    except UsageError as error:
        complaints.append(str(error))
    planned = environment.get("planned")
    if isinstance(planned, int) and len(keys) + bad < planned:
        complaints.append(
            f"{path}: expected records of the {planned} planned cases, got {len(keys) + bad}: cut off or not finished"
        )
    return complaints


def _doubts(record: Record) -> Iterator[str]:
    """What in a record contradicts its status."""
    if record.status.measured and record.timing is None:
        yield f"timing: expected samples with status {record.status.value!r}, got none"
    if record.status.measured and record.verification and not record.verification.passed:
        yield f"verification.passed: expected true with status {record.status.value!r}, got false"
    if record.status not in (Status.OK, Status.CONTENDED, Status.IMPOSSIBLE) and record.failure is None:
        yield f"failure: expected a reason with status {record.status.value!r}, got none"


def _as_kept(record: Record) -> Record:
    """Return a record with the paths in its texts shortened; what was run stays, or it could not be run again."""
    failure = record.failure and Failure(reason=shortened(record.failure.reason), log=shortened(record.failure.log))
    return record.model_copy(update={"failure": failure, "options": shorten(record.options)})


class Writer:
    """Appends to a run's folder; holds its lock, so that a second run into the same folder is refused.

    Raises
    ------
    InfrastructureError
        If the folder cannot be written, a link in it leads elsewhere, or another run holds it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: LineFile | None = None
        self._ceilings: LineFile | None = None
        self._in_use: dict[str, Any] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = inside(folder, "lock").open("w")
        except OSError as error:
            raise InfrastructureError(f"{folder}: cannot write results here ({error.strerror})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InfrastructureError(f"{folder}: another run is writing here; use --out with another folder") from None

    def __enter__(self) -> Writer:
        try:
            self._records = LineFile(inside(self.folder, RECORDS))
            self._ceilings = LineFile(inside(self.folder, CEILINGS))
        except OSError as error:
            self.close()
            raise InfrastructureError(
                f"{self.folder / RECORDS}: cannot write results here ({error.strerror})"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and give the lock back."""
        for file in (self._records, self._ceilings):
            if file:
                file.close()
        self._lock.close()

    def append(self, record: Record) -> None:
        """Write one record and flush it to disk, with paths in its texts shortened."""
        assert self._records
        line = _as_kept(record).model_dump_json(exclude_none=True, exclude_defaults=False).encode() + b"\n"
        self._records.append(line, "a record")

    def ceilings(self, device: str, values: dict[str, Any]) -> None:
        """Write the ceilings that bound the cases of a device from here on, unless those in use are the same."""
        assert self._ceilings
        if self._in_use.get(device) != values:
            self._ceilings.append(_line({"ceilings": {**values, "device": device}}), "ceilings")
            self._in_use[device] = values

    def probe(self, probe: dict[str, Any]) -> None:
        """Write a probe of ceilings."""
        assert self._ceilings
        self._ceilings.append(_line({"probe": probe}), "a probe of ceilings")

    def environment(self, content: dict[str, Any]) -> None:
        """Replace the environment file, whole."""
        self.text(ENVIRONMENT, json.dumps(content, indent=1, sort_keys=True) + "\n")

    def text(self, name: str, content: str) -> None:
        """Write a small file, whole or not at all."""
        replace(inside(self.folder, name), content)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
