"""What a run is held to: another run, or the last nights of a history."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..measure.repeats import worker_medians
from ..model.record import Status
from ..store.ratios import is_measured
from ..store.results import Run
from .changepoints import change_points as find_change_points
from .history import History
from .night import Night, night
from .place import Place, experiment_name, series_key
from .shift import without_shifts

#: So many nights tell which of them is out of line.
ENOUGH_NIGHTS = 5


@dataclass(frozen=True)
class Before:
    """What a case is compared with: logarithms of seconds, one per worker, or one per night.

    ``what`` names it for readers; ``events`` tells what changed since; ``doubt`` why it is no base.
    """

    what: str
    logs: Sequence[float] = ()
    nights: bool = False
    events: Sequence[str] = ()
    measured: bool = True
    doubt: str = ""


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

    def before(self, now: Night, row: int, threshold: float) -> Before | None:
        """What a case of the run is compared with; ``None`` where the base does not have it."""
        record = self._records.get(now.series[row])
        if record is None or now.series[row] not in self._rows:
            return None
        if not is_measured(record):
            return Before(self.what, measured=False)
        events = now.changed(row, self._night, self._rows[now.series[row]])
        doubt = f"contended in {self.what}" if record.status is Status.CONTENDED else ""
        return Before(self.what, [math.log(t) for t in worker_medians(record)], events=events, doubt=doubt)

    def steps(self, now: Night, row: int, value: float, threshold: float) -> Before | None:
        """One run has no change points."""
        return None


#: Finds change points: indices at which a series of logarithms of times begins a new level.
Detector = Callable[[Sequence[float], float], Sequence[int]]


class AgainstNights:
    """The last nights of a history as the base, as far back as driver, source and settings are those of the run.

    Parameters
    ----------
    history : History
    run : Run
        Nights later than it, and itself, are left out.
    last : int
        How many nights.
    detector : callable, optional
        Looks for change points in the series (`perfport.nightly.changepoints`).
    """

    def __init__(self, history: History, run: Run, last: int, detector: Detector | None = None) -> None:
        self.history, self.last, self.detector = history, last, detector
        self.left_out = history.left_out
        name, started = experiment_name(run), str(run.environment.get("started") or "")
        earlier = [
            number
            for number, held in enumerate(history.nights)
            if held.experiment == name and held.name != run.name and held.started <= started
        ]
        self._recent = earlier[-last:]
        self._levels: tuple[Night, list[list[float]]] | None = None
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

    def _segment(self, now: Night, row: int) -> list[float]:
        """Return the logarithms of a case's earlier times, without what all cases of its device had in common."""
        if self._levels is None or self._levels[0] is not now:
            self._levels = now, self._segments(now)
        return self._levels[1][row]

    def _segments(self, now: Night) -> list[list[float]]:
        sites: dict[str, list[int]] = defaultdict(list)
        for row, key in enumerate(now.series):
            sites[Place.of(key).site].append(row)
        segments: list[list[float]] = [[]] * len(now.series)
        for rows in sites.values():
            held = [self.history.series.get(now.series[row]) for row in rows]
            times = [
                {night: math.log(time) for night, time in self.history.segment(series, now, row)} if series else {}
                for series, row in zip(held, rows, strict=True)
            ]
            for row, logs in zip(rows, without_shifts(times), strict=True):
                segments[row] = logs
        return segments

    def before(self, now: Night, row: int, threshold: float) -> Before | None:
        """What a case of the run is compared with; ``None`` where the history does not have it."""
        series = self.history.series.get(now.series[row])
        numbers = [n for n in series.nights if n in self._recent] if series else []
        if series is None or not numbers:
            return None
        there = series.rows[series.nights.index(numbers[-1])]
        if all(self.history.nights[n].workers[series.rows[series.nights.index(n)]] == 0 for n in numbers):
            return Before(self.what, measured=False)
        logs = self._segment(now, row)[-self.last :]
        kept = in_line(logs, threshold)
        what = _nights(len(kept)) + (f" ({len(logs) - len(kept)} out of line)" if len(kept) < len(logs) else "")
        events = [] if logs else now.changed(row, self.history.nights[numbers[-1]], there)
        return Before(what, kept, nights=True, events=events)

    def steps(self, now: Night, row: int, value: float, threshold: float) -> Before | None:
        """The level before the latest change point, if that is recent; ``None`` without one."""
        if self.detector is None:
            return None
        logs = self._segment(now, row)
        begins = [0, *self.detector([*logs, value], threshold)]
        if len(begins) < 2 or begins[-1] < len(logs) + 1 - self.last:
            return None
        level = logs[begins[-2] : begins[-1]]
        return Before(
            f"{_nights(len(level))} before a change point, {_nights(len(logs) - begins[-1])} ago", level, nights=True
        )


Base = AgainstRun | AgainstNights


def base_of(run: Run, *, baseline: Path | None, history: Path | None, last: int, change_points: bool) -> Base:
    """Return what a run is held to: the run folder ``baseline``, or else the ``last`` nights of a history.

    Raises
    ------
    UsageError
        If the folder is none.
    """
    if baseline:
        return AgainstRun(Run(baseline), run)
    assert history, "either of the two"
    return AgainstNights(History(history), run, last, find_change_points if change_points else None)


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
