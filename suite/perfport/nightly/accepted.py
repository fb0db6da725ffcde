"""New levels that somebody has accepted: a file that is read, reviewed and kept like code.

An entry names a case by its words, not by a hash, with the first night of the new level, the event that it began with
and by how much the time changed. The nights before are then no base of the case any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import yaml
from pydantic import Field

from ..model import schema
from ..model.errors import InfrastructureError, UsageError
from ..model.untrusted import line
from ..store.writing import replace
from .history import History, Series
from .place import Place

#: The file, where a history's folder keeps its own.
FILE = "accepted.yaml"
HEAD = "# Levels that are accepted, by `perfport history accept`: earlier nights are no base of these cases any more.\n"
DATE = r"\d{4}-\d\d-\d\d(T\d\d(:\d\d(:\d\d)?)?)?"
Words = Annotated[str, Field(max_length=4000)]


class Entry(schema.Model):
    """One accepted level.

    Attributes
    ----------
    case, device, experiment : str
        The words of `Place`.
    since : str
        When the first night of the new level began, as the history has it.
    event : str
        What changed then, as far as it is known.
    change : str
        Of the time, for readers.
    reason : str
        Why it is accepted.
    """

    case: Words
    device: Words
    experiment: Words
    since: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT[0-9:.+Z-]+$", max_length=40)]
    event: Words = ""
    change: Words = ""
    reason: Words = ""

    @property
    def of(self) -> tuple[str, str, str]:
        """Which case it is of."""
        return self.case, self.device, self.experiment


class _File(schema.Model):
    perfport_accepted: Literal[1]
    levels: list[Entry] = Field(default_factory=list)


class Accepted:
    """The accepted levels of a file; none where there is no file.

    Raises
    ------
    UsageError
        Naming file, key and what is expected, if it is none of these files.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        held = schema.validate(_File, schema.read(file), str(file)) if file.exists() else _File(perfport_accepted=1)
        self.entries = held.levels
        self._since: dict[tuple[str, str, str], Entry] = {}
        for entry in sorted(held.levels, key=lambda each: each.since):
            self._since[entry.of] = entry

    def of(self, place: Place) -> Entry | None:
        """Return the latest accepted level of a case."""
        return self._since.get(_words(place))

    def add(self, entries: Iterable[Entry]) -> list[Entry]:
        """Write the file with further entries; returns those that it did not hold yet.

        Raises
        ------
        InfrastructureError
            If it cannot be written.
        """
        held = {(*entry.of, entry.since) for entry in self.entries}
        new = [entry for entry in entries if (*entry.of, entry.since) not in held]
        if new:
            levels = [entry.model_dump(exclude_defaults=True) for entry in [*self.entries, *new]]
            content = {"perfport_accepted": 1, "levels": levels}
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                replace(self.file, HEAD + text)
            except OSError as error:
                raise InfrastructureError(f"{self.file}: cannot be written ({error.strerror})") from None
        return new


def _words(place: Place) -> tuple[str, str, str]:
    return line(place.title), line(place.site), line(place.experiment)


def accept(
    history: History,
    chosen: Sequence[Series],
    accepted: Accepted,
    *,
    event: str = "",
    since: str = "",
    reason: str = "",
) -> list[Entry]:
    """Accept the level of some cases since their latest event or a night; returns what was added to the file.

    Parameters
    ----------
    history : History
    chosen : sequence of Series
    accepted : Accepted
    event : str
        Only events whose words or commits contain this. Without it, a case that had none is accepted as it was in its
        latest night.
    since : str
        Date, or date and time (UTC), from which on a case's first night begins the level, whatever its events.
    reason : str

    Raises
    ------
    UsageError
        If there is nothing to accept.
    """
    if since and not re.fullmatch(DATE, since):
        raise UsageError(f"--since: expected a date, or date and time (2026-11-09, 2026-11-09T02:30), got {since!r}")
    entries = [entry for series in chosen if (entry := _entry(history, series, event, since, line(reason)))]
    if not entries and since:
        raise UsageError(f"{history.folder}: no night of these cases began on {since} or later")
    if not entries:
        told = dict.fromkeys(str(each.change) for series in chosen for each in history.events(series))
        listed = "; ".join(list(told)[-5:]) or "none"
        raise UsageError(f"{history.folder}: no event of these cases contains {event!r}; their latest are: {listed}")
    return accepted.add(entries)


def _entry(history: History, series: Series, event: str, since: str, reason: str) -> Entry | None:
    """Return the entry for the latest event of a case that is meant, for its first night since, or for its latest."""
    numbers = [n for n, row in zip(series.nights, series.rows, strict=True) if history.nights[n].workers[row]]
    meant = [each for each in history.events(series) if event in each.what]
    if since:
        numbers = [n for n in numbers if history.nights[n].started >= since]
    if not numbers or (event and not meant):
        return None
    first = numbers[0] if since else meant[-1].night if meant else numbers[-1]
    changes = [each.what for each in meant if each.night == first]
    words = dict(zip(("case", "device", "experiment"), _words(series.place), strict=True))
    entry = {
        **words, "since": history.nights[first].started, "event": line("; ".join(changes)),
        "change": _change(history.times(series), first), "reason": reason,
    }  # fmt: skip
    return schema.validate(Entry, entry, f"{history.folder}: night {line(history.nights[first].name)}")


def _change(times: Mapping[int, float], first: int) -> str:
    """Return by how much the median of the time changed with a night, as a percentage."""
    before = [seconds for number, seconds in times.items() if number < first][-7:]
    since = [seconds for number, seconds in times.items() if number >= first][:7]
    return f"{100 * (np.median(since) / np.median(before) - 1):+.1f} %" if before and since else ""
