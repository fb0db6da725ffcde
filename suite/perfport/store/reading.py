"""Records as they are read: line by line, each held to what a time, a number, a name or a device can be.

What the schema allows is not all sane: a median of 0 s divides by zero, one of 1e308 s overflows, a device that is no
device has no place. Such a record is refused by name, here, where it enters; nobody after this looks again. The checks
cost a small part of what parsing costs.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from ..model.errors import UsageError, cut, leave_out, shown
from ..model.files import MIB, opened
from ..model.record import SCHEMA_VERSION, Interval, Record, Timing

Entry = TypeVar("Entry")
Form = TypeVar("Form", bound=BaseModel)
#: Bytes of a record. One of ten thousand samples of three instances on three clocks has a few MiB.
MOST_LINE = 32 * MIB
#: Seconds: a tenth of the period of the fastest clocks, and thirty years.
SHORTEST, LONGEST = 1e-12, 1e9
#: What any number of a record, and any product of two of them, is far below.
MOST_NUMBER = 1e30
MOST_NAME, MOST_LEVELS = 500, 20
#: Told from models at a tenth of the cost of `isinstance`.
_PLAIN = frozenset({float, int, str, bool, list, type(None)})
#: The schema version of records that `perfport.untimed.rebound` reads.
REBOUND = 2
DEVICE = re.compile(r"\w{1,50}:[\w.+-]{1,100}:\d{1,6}", re.ASCII)


class NotJsonError(UsageError):
    """A line that is not JSON; the last one of a file may be torn."""


def lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the lines of a file that are not blank: number, content, and whether it is an unfinished last one.

    Of a line that is longer than `MOST_LINE` its begin, which is one byte longer. Raises as `opened` does.
    """
    with opened(path) as file:
        number = 0
        while line := file.readline(MOST_LINE + 1):
            number += 1
            end = line
            while not end.endswith(b"\n") and (more := file.readline(MIB)):
                end = more
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                yield number, line.rstrip(), not end.endswith(b"\n")


def parse_line(form: type[Form], line: bytes, where: str, version: int) -> Form:
    """Return what a line of JSON holds, a model that has a ``schema_version``.

    Raises
    ------
    UsageError
        If it is none of this version; the text has ``where``, the key, what is expected and what is given.
        `NotJsonError` if it is no JSON.
    """
    if len(line) > MOST_LINE:
        raise UsageError(f"{where}: expected at most {MOST_LINE:,} bytes in a line, got more")
    try:
        held = form.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            raise NotJsonError(f"{where}: not JSON ({cut(first['ctx']['error'])})") from None
        _check_version(line, where, version)
        message = cut(first["msg"].removeprefix("Value error, "))
        given = "" if isinstance(first["input"], dict | list) else f", got {shown(first['input'])}"
        key = ".".join(cut(part) for part in first["loc"])
        raise UsageError(f"{where}: {key}: {message[0].lower()}{message[1:]}{given}") from None
    if "schema_version" not in held.model_fields_set or vars(held)["schema_version"] != version:
        _check_version(line, where, version)
    return held


def _check_version(line: bytes, where: str, expected: int) -> None:
    content = from_json(line)
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != expected:
        hint = " (perfport rebound makes the one of the other)" if version == expected - 1 == REBOUND else ""
        raise UsageError(f"{where}: schema version {shown(version)}; this version of perfport reads {expected}{hint}")


def parse(line: bytes, where: str) -> Record:
    """Return the record of a line. Raises as `parse_line` does, also for a value that cannot be."""
    record = parse_line(Record, line, where, SCHEMA_VERSION)
    if fault := next(_faults(record), None):
        raise UsageError(f"{where}: {fault}")
    return record


def _faults(record: Record) -> Iterator[str]:
    """What cannot be in a record that has the schema's form: key, what is expected, what is given."""
    identity = record.identity
    for key in ("workload", "problem", "variant", "backend", "precision", "preset", "profile"):
        name = getattr(identity, key)
        if name is not None and not (0 < len(name) <= MOST_NAME and name.isprintable()):
            yield f"identity.{key}: expected 1 to {MOST_NAME} printable characters, got {shown(name)}"
    if not 0 < len(record.key) <= MOST_NAME:
        yield f"key: expected 1 to {MOST_NAME} characters, got {shown(record.key)}"
    if not identity.devices:
        yield "identity.devices: expected at least one device, got none"
    for device in identity.devices:
        if not DEVICE.fullmatch(device):
            yield f"identity.devices: expected the form backend:platform:number, got {shown(device)}"
    try:
        datetime.fromisoformat(record.time)
    except ValueError:
        yield f"time: expected a date and time in ISO 8601, got {shown(record.time)}"
    if record.timing:
        yield from _time_faults(record.timing)
    held = {name: value for name, value in record.__dict__.items() if name not in ("timing", "verification")}
    if fault := _beyond(held):
        yield f"{'.'.join(map(cut, reversed(fault[0])))}: {fault[1]}"


def _time_faults(timing: Timing) -> Iterator[str]:
    for clock in ("span", "wall"):
        samples = getattr(timing, clock)
        if samples and not SHORTEST <= min(samples) <= max(samples) <= LONGEST:
            worst = min(samples) if min(samples) < SHORTEST else max(samples)
            yield f"timing.{clock}: expected seconds from {SHORTEST:g} to {LONGEST:g}, got {worst!r}"
    for clock, summary in timing.summary.items():
        low = 0.0 if clock == "busy" else SHORTEST
        for name in ("minimum", "median", "maximum"):
            if not low <= (value := getattr(summary, name)) <= LONGEST:
                yield f"timing.summary.{clock}.{name}: expected seconds from {low:g} to {LONGEST:g}, got {value!r}"
        if summary.ci_low <= 0 < low:
            yield f"timing.summary.{clock}.ci_low: expected more than 0, got {summary.ci_low!r}"
    if timing.launches > MOST_NUMBER:
        yield f"timing.launches: expected at most {MOST_NUMBER:g}, got {shown(timing.launches)}"


def _beyond(value: Any, level: int = 0) -> tuple[list[object], str] | None:
    """Return where the first number is that is too large or not finite, or what is nested too deeply, and what is wrong
    with it: the keys on the way there, innermost first.
    """
    kind = type(value)
    if kind is float or kind is int:
        if not -MOST_NUMBER <= value <= MOST_NUMBER:
            return [], f"expected a number of at most {MOST_NUMBER:g}, got {shown(value)}"
    elif kind is dict or kind is list or isinstance(value, BaseModel):
        if level > MOST_LEVELS:
            return [], f"expected at most {MOST_LEVELS} levels, got more"
        parts = enumerate(value) if kind is list else (value if kind is dict else value.__dict__).items()
        for key, part in parts:
            if part.__class__ is not str and part is not None and (fault := _beyond(part, level + 1)):
                return [*fault[0], key], fault[1]
    return None


class _Common:
    """What records of a file have in common, held once: of many records of one device that is most of their memory.

    That is their ceilings, and the notes that pydantic takes of every object: which fields it was given.
    """

    def __init__(self) -> None:
        self._ceilings: dict[tuple[object, ...], dict[str, Interval]] = {}
        self._given: dict[frozenset[str], set[str]] = {}

    def share(self, record: Record) -> None:
        """Put what is held already in place of what a record holds that equals it."""
        if record.ceilings:
            key = tuple((name, each.value, each.low, each.high) for name, each in record.ceilings.items())
            record.ceilings = self._ceilings.setdefault(key, record.ceilings)
        self._share_given(record)

    def _share_given(self, part: BaseModel) -> None:
        given = part.model_fields_set
        object.__setattr__(part, "__pydantic_fields_set__", self._given.setdefault(frozenset(given), given))
        for value in part.__dict__.values():
            for each in value.values() if type(value) is dict else (value,):
                if type(each) not in _PLAIN and isinstance(each, BaseModel):
                    self._share_given(each)


def entries(path: Path, read: Callable[[bytes, str], Entry]) -> Iterator[Entry]:
    """Yield what ``read`` makes of the lines of a file. A torn last line is skipped; any other bad one is named
    (`perfport.model.errors.leave_out`) and left out.

    Raises
    ------
    UsageError
        If the file cannot be read, or has lines and none of them is good.
    """
    first: UsageError | None = None
    bad = good = 0
    for number, line, last in lines(path):
        try:
            entry = read(line, f"{path}:{number}")
        except UsageError as error:
            if last and isinstance(error, NotJsonError):
                continue
            bad += 1
            if good:
                leave_out(error)
            else:
                first = first or error
            continue
        if first and not good:
            leave_out(first if bad == 1 else UsageError(f"{first}; and {bad - 1} lines after it"))
        good += 1
        yield entry
    if first and not good:
        raise UsageError(f"{path}: none of {bad} lines can be read; the first: {first}")


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, as `entries` does. Equal parts of them may be one object: none is to be changed."""
    common = _Common()
    for record in entries(path, parse):
        common.share(record)
        yield record
