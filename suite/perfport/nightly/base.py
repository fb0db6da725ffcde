"""What a run is held to: another run, or the last nights of a history."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..measure.repeats import worker_medians
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError
from ..model.record import Record, Status
from ..store.ratios import is_measured
from ..store.results import Run
from .accepted import FILE, Accepted, Entry
from .changepoints import change_points as find_change_points
from .checkout import HASH, commit_of
from .finding import Finding
from .history import History
from .levels import Level, Stretch, held_to
from .night import Change, Night, night
from .place import Place, experiment_name, series_key
from .shift import without_shifts

#: Stands for the commit where the source is the same.
SAME = "same"
#: So many nights tell which of them is out of line.
ENOUGH_NIGHTS = 5


@dataclass(frozen=True)
class Before:
    """What a case is compared with: logarithms of seconds, one per worker, or one per night.

    Attributes
    ----------
    what : str
        Its name for readers.
    logs : sequence of float
    nights : bool
        Whether the times are those of nights.
    apart : sequence of sequence of float
        Nights at other levels, those of each level together: they tell how nights scatter.
    events : sequence of Change
        What changed since.
    measured : bool
        Whether there is any result.
    doubt : str
        Why it is no base.
    commit : str
        Whose code was measured, as the history has it.
    accepted : bool
        Whether somebody accepted the level, and what was before is no base any more.
    """

    what: str
    logs: Sequence[float] = ()
    nights: bool = False
    apart: Sequence[Sequence[float]] = ()
    events: Sequence[Change] = ()
    measured: bool = True
    doubt: str = ""
    commit: str = ""
    accepted: bool = False


@dataclass(frozen=True)
class Code:
    """Cases that are measured in turn with the code of a commit; without one they are not, and ``why`` says why."""

    commit: str
    records: Sequence[Record]
    why: str = ""


class AgainstRun:
    """Another run as the base: the same cases, whatever changed since (changes are named)."""

    def __init__(self, base: Run, run: Run) -> None:
        self.run, self.what = base, f"run {base.name}"
        self.left_out: Sequence[str] = ()
        name = experiment_name(run)
        self._records = {series_key(base, record, name): record for record in base.records}
        self._night = night(base, name)
        self._rows = {key: row for row, key in enumerate(self._night.series)}

    def expected(self) -> dict[str, str]:
        """Preset of every case that the run should have, by series."""
        held = {key: record for key, record in self._records.items() if is_measured(record)}
        return {key: record.identity.preset or "" for key, record in held.items()}

    def together(self, series: str, other: str) -> bool:
        """Whether the base holds both series beside each other."""
        return series in self._records and other in self._records

    def before(self, now: Night, row: int, threshold: float) -> Before | None:
        """What a case of the run is compared with; ``None`` where the base does not have it."""
        record = self._records.get(now.series[row])
        if record is None or now.series[row] not in self._rows:
            return None
        if not is_measured(record):
            return Before(self.what, measured=False)
        events = now.changed(row, self._night, self._rows[now.series[row]])
        doubt = f"contended in {self.what}" if record.status is Status.CONTENDED else ""
        logs, commit = [math.log(t) for t in worker_medians(record)], self._night.commit
        return Before(self.what, logs, events=events, doubt=doubt, commit=commit)

    def steps(self, now: Night, row: int, value: float, threshold: float) -> Before | None:
        """One run has no change points."""
        return None

    def codes(self, findings: Sequence[Finding], wanted: Sequence[Record], here: Sequence[DeviceInfo]) -> list[Code]:
        """Return with the code of which commit cases can be measured in turn: of all of them it is the base's."""
        try:
            commit = commit_of(self.run)
            self._check_devices(wanted, here)
        except InfrastructureError as error:
            return [Code("", wanted, str(error))]
        return [Code(commit, wanted)]

    def _check_devices(self, wanted: Sequence[Record], here: Sequence[DeviceInfo]) -> None:
        """Refuse another driver than the base's: what differs would not be the code alone."""
        present = {device.id: device.driver for device in here if device.healthy}
        known = self.run.environment.get("devices") or {}
        for id_ in sorted({id_ for record in wanted for id_ in record.identity.devices}):
            before, now = (known.get(id_) or {}).get("driver"), present.get(id_)
            if now is None or before != now:
                name = self.run.name
                raise InfrastructureError(f"{id_} had driver {before} in run {name} and has {now or 'none'} here")


#: Finds change points: indices at which a series of logarithms of times begins a new level.
Detector = Callable[[Sequence[float], float], Sequence[int]]


class AgainstNights:
    """The last nights of a history as the base: those at the level that each case is held to.

    Parameters
    ----------
    history : History
    run : Run
        Nights later than it, and itself, are left out.
    last : int
        How many nights.
    detector : callable, optional
        Looks for change points in the series (`perfport.nightly.changepoints`).
    accepted : Accepted, optional
        Levels that somebody has accepted.
    """

    def __init__(
        self,
        history: History,
        run: Run,
        last: int,
        detector: Detector | None = None,
        accepted: Accepted | None = None,
    ) -> None:
        self.history, self.last, self.detector, self.accepted = history, last, detector, accepted
        self.left_out = history.left_out
        name, started = experiment_name(run), str(run.environment.get("started") or "")
        earlier = [
            number
            for number, held in enumerate(history.nights)
            if held.experiment == name and held.precedes(run.name, started)
        ]
        self._recent = earlier[-last:]
        self._parted: tuple[Night, list[_Parted]] | None = None
        self.what = f"the last {_nights(len(self._recent))}" if self._recent else "an empty history"

    def expected(self) -> dict[str, str]:
        """Preset of every case that one of the nights measured, by series."""
        presets: dict[str, str] = {}
        for number in self._recent:
            held = self.history.nights[number]
            presets |= {
                key: held.preset[row]
                for row, key in enumerate(held.series)
                if held.status[row] in (Status.OK.value, Status.CONTENDED.value)
            }
        return presets

    def together(self, series: str, other: str) -> bool:
        """Whether one of the nights holds both series: neither has taken the place of the other."""
        first, second = (self.history.series.get(key) for key in (series, other))
        return bool(first and second and {*first.nights} & {*second.nights} & {*self._recent})

    def before(self, now: Night, row: int, threshold: float) -> Before | None:
        """What a case of the run is compared with; ``None`` where the history does not have it."""
        series = self.history.series.get(now.series[row])
        numbers = [n for n in series.nights if n in self._recent] if series else []
        if series is None or not numbers:
            return None
        if all(self.history.nights[n].workers[series.rows[series.nights.index(n)]] == 0 for n in numbers):
            return Before(self.what, measured=False)
        level = self._level(now, row, threshold)
        logs = level.logs[-self.last :]
        kept = in_line(logs, threshold)
        what = _nights(len(kept)) + (f" ({len(logs) - len(kept)} out of line)" if len(kept) < len(logs) else "")
        entry = self._accepted(now.series[row])
        return Before(
            f"{what} of the level accepted since {entry.since[:10]}" if entry else what,
            kept, nights=True, apart=[in_line(each, threshold) for each in level.apart], events=level.events,
            commit=self.history.nights[level.nights[-1]].commit if level.nights else "", accepted=entry is not None,
        )  # fmt: skip

    def steps(self, now: Night, row: int, value: float, threshold: float) -> Before | None:
        """The level before the latest change point, if that is recent; ``None`` without one."""
        if self.detector is None:
            return None
        logs = self._level(now, row, threshold).logs
        begins = [0, *self.detector([*logs, value], threshold)]
        if len(begins) < 2 or begins[-1] < len(logs) + 1 - self.last:
            return None
        level = logs[begins[-2] : begins[-1]]
        return Before(
            f"{_nights(len(level))} before a change point, {_nights(len(logs) - begins[-1])} ago", level, nights=True
        )

    def codes(self, findings: Sequence[Finding], wanted: Sequence[Record], here: Sequence[DeviceInfo]) -> list[Code]:
        """Return with the code of which commits cases can be measured in turn: where the source is what changed."""
        of_record = {found.record.key: found for found in findings if found.record}
        by_commit: dict[str, list[Record]] = defaultdict(list)
        for record in wanted:
            found = of_record[record.key]
            changed = any(change.kind == "source" for change in found.events)
            by_commit[found.commit if changed else SAME].append(record)
        return [_code(commit, records) for commit, records in by_commit.items()]

    def _level(self, now: Night, row: int, threshold: float) -> Level:
        """Return the nights that a case is held to, without what all cases of its device had in common."""
        if self._parted is None or self._parted[0] is not now:
            self._parted = now, self._part(now)
        parted = self._parted[1][row]
        tonight = math.log(now.time[row]) if now.workers[row] else math.nan
        level = held_to(parted.stretches, tonight, parted.changes, threshold, self.last)
        return replace(level, apart=[*parted.before, *level.apart])

    def _part(self, now: Night) -> list[_Parted]:
        """Return each case's nights before, parted by events, each level without the shifts of its device's nights."""
        sites: dict[str, list[int]] = defaultdict(list)
        for row, key in enumerate(now.series):
            sites[Place.of(key).site].append(row)
        parted = [_Parted()] * len(now.series)
        for rows in sites.values():
            raw = {row: self._stretches(now, row) for row in rows}
            levelled = iter(without_shifts([stretch.logs for stretches, _ in raw.values() for stretch in stretches]))
            for row, (stretches, changes) in raw.items():
                stretches = [replace(stretch, logs=next(levelled)) for stretch in stretches]
                parted[row] = self._since_accepted(now.series[row], stretches, changes)
        return parted

    def _stretches(self, now: Night, row: int) -> tuple[list[Stretch], list[Change]]:
        series = self.history.series.get(now.series[row])
        return self.history.stretches(series, now, row) if series else ([], [])

    def _accepted(self, series: str) -> Entry | None:
        return self.accepted.of(Place.of(series)) if self.accepted else None

    def _since_accepted(self, series: str, stretches: Sequence[Stretch], changes: Sequence[Change]) -> _Parted:
        """Take the nights out that an accepted level has replaced."""
        entry = self._accepted(series)
        if entry is None:
            return _Parted(stretches, changes)
        before, since = [], []
        for stretch in stretches:
            old = {n: value for n, value in stretch.logs.items() if self.history.nights[n].started < entry.since}
            if old:
                before.append(list(old.values())[-self.last :])
            if len(old) < len(stretch.logs):
                since.append(Stretch({n: v for n, v in stretch.logs.items() if n not in old}, stretch.events))
        return _Parted(since, changes if since else [], before)


@dataclass(frozen=True)
class _Parted:
    """Nights of a case, what has changed since the last, and those before an accepted level."""

    stretches: Sequence[Stretch] = ()
    changes: Sequence[Change] = ()
    before: Sequence[Sequence[float]] = ()


def _code(commit: str, records: Sequence[Record]) -> Code:
    if commit == SAME or HASH.fullmatch(commit):
        return Code("" if commit == SAME else commit, records)
    dirty = commit.endswith("-dirty")
    said = "was measured with uncommitted changes" if dirty else "names no commit of its code"
    return Code("", records, f"the night before the source changed {said}")


Base = AgainstRun | AgainstNights


def base_of(
    run: Run, *, baseline: Path | None, history: Path | None, last: int, change_points: bool, accepted: Path | None
) -> Base:
    """Return what a run is held to: the run folder ``baseline``, or else the ``last`` nights of a history.

    ``accepted`` is the file of accepted levels, by default the one in the history.

    Raises
    ------
    UsageError
        If the folder is none.
    """
    if baseline:
        return AgainstRun(Run(baseline), run)
    assert history, "either of the two"
    detector = find_change_points if change_points else None
    return AgainstNights(History(history), run, last, detector, Accepted(accepted or history / FILE))


def _nights(number: int) -> str:
    return f"{number} night{'' if number == 1 else 's'}"


def in_line(logs: Sequence[float], threshold: float) -> list[float]:
    """Return the nights that agree with each other: one bad night must neither move the base nor widen its spread.

    A night is out of line if its distance to the median is above the threshold and above four times the scaled median
    absolute deviation. Of fewer than `ENOUGH_NIGHTS` all are kept.
    """
    if len(logs) < ENOUGH_NIGHTS:
        return list(logs)
    values = np.asarray(logs)
    distance = np.abs(values - np.median(values))
    reach = max(4 * 1.4826 * float(np.median(distance)), math.log1p(threshold))
    return [float(value) for value in values[distance <= reach]]
