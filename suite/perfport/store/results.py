"""The results store: one folder per run, append-only records beside an environment file.

    RUN/environment.json   host, versions, commit, devices, ceilings, seed; written once, probes appended
    RUN/experiment.yaml    copy of the experiment file
    RUN/records.jsonl      one record per line, flushed to disk per case
    RUN/lock               held while a run writes

A line torn by a kill is ignored when reading and cut off when a run resumes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pydantic import ValidationError

from ..machine.paths import shorten, shortened
from ..model.errors import InfrastructureError, UsageError
from ..model.record import SCHEMA_VERSION, Failure, Record, Status
from ..model.untrusted import inside

ENVIRONMENT = "environment.json"
RECORDS = "records.jsonl"
EXPERIMENT = "experiment.yaml"


class Run:
    """A stored run, read-only: ``environment`` (dict) and ``records`` (the last one of each key, in file order).

    Raises
    ------
    UsageError
        If the folder holds no run, or a file is not what this version of the suite reads.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.environment = read_environment(self.folder)
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
        return begun or (folder / RECORDS).exists()

    path = Path(path)
    if holds(path):
        return [path]
    folders = sorted(filter(holds, path.iterdir())) if path.is_dir() else []
    if not folders:
        raise UsageError(f"{path}: no results here (expected a folder with {RECORDS}, or a folder of such folders)")
    return folders


def load_runs(paths: Iterable[Path]) -> list[Run]:
    """Return the runs at or directly below some paths. Raises `UsageError` for a path without one."""
    return [Run(folder) for path in paths for folder in find_runs(path)]


def read_environment(folder: Path) -> dict[str, Any]:
    """Read a run's environment file."""
    path = folder / ENVIRONMENT
    try:
        environment = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"{path}: not JSON ({error})") from None
    _check_version(path, environment)
    return dict(environment)


def _check_version(where: Path | str, content: Any) -> None:
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise UsageError(f"{where}: schema version {version!r}; this version of perfport reads {SCHEMA_VERSION}")


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file. A torn last line is skipped; any other bad line is an error that names it.

    Raises
    ------
    UsageError
        For a line that is not a record of this schema version.
    """
    for number, line, last in _lines(path):
        try:
            yield _record(f"{path}:{number}", line)
        except _NoJson:
            if not last:
                raise


class _NoJson(UsageError):
    """A line that is not JSON; the last one of a file may be torn."""


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the lines of a file that are not blank: number, content, and whether it is an unfinished last one."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line, number == len(lines)


def _record(where: str, line: bytes) -> Record:
    try:
        content = json.loads(line)
    except ValueError:
        raise _NoJson(f"{where}: not JSON") from None
    _check_version(where, content)
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key, message, given = (
            ".".join(map(str, first["loc"])),
            first["msg"].removeprefix("Value error, "),
            first["input"],
        )
        shown = "" if isinstance(given, dict | list) else f", got {given!r}"
        raise UsageError(f"{where}: {key}: {message[0].lower()}{message[1:]}{shown}") from None


def faults(folder: Path) -> list[str]:
    """Return everything that is wrong with a run folder, each with its file and, where it has one, its line."""
    path, complaints, keys, bad = folder / RECORDS, [], set(), 0
    environment: dict[str, Any] = {}
    try:
        environment = read_environment(folder)
    except UsageError as error:
        complaints.append(str(error))
    try:
        for number, line, last in _lines(path):
            try:
                record = _record(f"{path}:{number}", line)
                keys.add(record.key)
                complaints += [f"{path}:{number}: {doubt}" for doubt in _doubts(record)]
            except UsageError as error:
                torn = last and isinstance(error, _NoJson)
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
        self._file: IO[bytes] | None = None
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
            self._file = inside(self.folder, RECORDS).open("a+b", buffering=0)  # nothing is left over after an error
            self._cut_torn_line()
        except OSError as error:
            self.close()
            raise InfrastructureError(f"{self.folder}: cannot write results here ({error.strerror})") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and give the lock back."""
        if self._file:
            self._file.close()
        self._lock.close()

    def _cut_torn_line(self) -> None:
        assert self._file
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole != len(content):
            self._file.truncate(whole)

    def append(self, record: Record) -> None:
        """Write one record and flush it to disk, with paths in its texts shortened."""
        assert self._file
        line = _as_kept(record).model_dump_json(exclude_none=True, exclude_defaults=False).encode() + b"\n"
        before = self._file.seek(0, os.SEEK_END)
        try:
            left = memoryview(line)
            while left:  # unbuffered: a disk that fills up takes a part first
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with_torn = f"{self.folder / RECORDS}: cannot write a record ({error.strerror})"
            os.truncate(self.folder / RECORDS, before)
            raise InfrastructureError(with_torn) from None

    def environment(self, content: dict[str, Any]) -> None:
        """Replace the environment file atomically."""
        self.text(ENVIRONMENT, json.dumps(content, indent=1, sort_keys=True) + "\n")

    def text(self, name: str, content: str) -> None:
        """Write a small file atomically."""
        partial = inside(self.folder, f"{name}.part")
        try:
            partial.write_text(content)
            partial.replace(self.folder / name)
        except OSError as error:
            raise InfrastructureError(f"{self.folder / name}: cannot be written ({error.strerror})") from None
