"""One case over the nights: its columns gathered, and its chart as SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from ...model.record import Status
from ...model.untrusted import line
from ...nightly.history import Event, History, Series
from ...workload import ceil_div
from .quantities import seconds, significant, time_scale

#: Nights that a chart draws one by one; of more, as many together as it takes.
MOST_POINTS = 400
#: Of fewer nights, each has a dot.
MOST_DOTS = 60
#: The latest nights tell their values below the pointer: each takes some hundred bytes of the page.
MOST_TOLD = 60
#: Dates along the axis, and the room that each takes.
MOST_DAYS, DAY_WIDTH = 7, 78
WIDTH, HEIGHT = 640, 190
LEFT, RIGHT, TOP, BOTTOM = 68, 8, 12, 24
#: A bound below so much of the least time is told in words: drawn, it would flatten the curve.
SHOWN_BOUND = 0.8


@dataclass
class Track:
    """A series with its columns gathered: one entry per night that holds it; NaN where there is no result."""

    series: Series
    nights: np.ndarray
    time: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray
    status: list[str]
    events: list[Event]

    @property
    def last(self) -> float:
        """The latest time, in seconds; NaN without any."""
        known = self.time[np.isfinite(self.time)]
        return float(known[-1]) if known.size else math.nan

    @property
    def change(self) -> float:
        """The latest time over the median of up to 7 before it, since the last event; NaN without any."""
        start = self.events[-1].night if self.events else -1
        known = self.time[np.isfinite(self.time) & (self.nights >= start)]
        return float(known[-1] / np.median(known[-8:-1])) if known.size > 1 else math.nan

    def steps(self) -> dict[int, float]:
        """By night of an event, how many times as long the case takes from it on: the ratio of the levels around it.

        A level is the median of the nights between two events; NaN where a side has none.
        """
        nights = sorted({event.night for event in self.events})
        levels = [level for _, _, level in self.levels()]
        return {night: after / before for night, before, after in zip(nights, levels, levels[1:], strict=False)}

    def levels(self) -> list[tuple[int, int, float]]:
        """Return first and last night between events, and the median time there in seconds; NaN without a result."""
        starts = [int(self.nights[0]), *sorted({event.night for event in self.events})]
        ends = [*(start - 1 for start in starts[1:]), int(self.nights[-1])]
        found = []
        for start, end in zip(starts, ends, strict=True):
            inside = self.time[(self.nights >= start) & (self.nights <= end) & np.isfinite(self.time)]
            found.append((start, end, float(np.median(inside)) if inside.size else math.nan))
        return found

    @property
    def failures(self) -> int:
        """Nights in which it ended badly."""
        return sum(Status(status).failed for status in self.status)


def track(history: History, series: Series) -> Track:
    """Gather the columns of a series."""
    where = list(zip(series.nights, series.rows, strict=True))
    held = [history.nights[number] for number, _ in where]
    numbers = {
        name: np.array([getattr(night, name)[row] for night, (_, row) in zip(held, where, strict=True)])
        for name in ("time", "low", "high", "bound")
    }
    status = [night.status[row] for night, (_, row) in zip(held, where, strict=True)]
    return Track(series, np.array(series.nights), status=status, events=history.events(series), **numbers)


def chart(history: History, track: Track) -> Markup:
    """Return the SVG of a series: its band and line, its bound, its events, and nights without a result."""
    label = line(f"Time of {track.series.place.title} by night")
    shapes = [*_curve(track), *_values(history, track), *_events(track), *_failures(track), *_days(history, track)]
    frame = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return frame.format(WIDTH, HEIGHT, label, Markup("").join(shapes))


def _across(track: Track, night: np.ndarray) -> np.ndarray:
    """Return where nights lie along the axis, in units of the chart."""
    first, last = int(track.nights[0]), int(track.nights[-1])
    return LEFT + (night - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)


@dataclass(frozen=True)
class _Scale:
    """The axis of times: what it spans, in seconds."""

    least: float
    most: float

    @classmethod
    def of(cls, time: np.ndarray, low: np.ndarray, high: np.ndarray, bound: np.ndarray) -> _Scale:
        """Return the scale that holds a curve and, where it is to be drawn, its bound.

        An interval that is far wider than the curve's own course is cut: the course is what the chart is for.
        """
        centre = float(np.median(time))
        least = max(float(low.min()), float(time.min()) - 0.5 * centre)
        most = min(float(high.max()), float(time.max()) + 0.5 * centre)
        if bound.size:
            least, most = min(least, float(bound.min())), max(most, float(bound.max()))
        room = max(0.06 * (most - least), 0.01 * centre)
        return cls(max(least - room, 0.0), most + room)

    def up(self, value: np.ndarray) -> np.ndarray:
        """Return where values lie, in units of the chart."""
        inside = np.clip(value, self.least, self.most)
        return HEIGHT - BOTTOM - (inside - self.least) / (self.most - self.least) * (HEIGHT - TOP - BOTTOM)


def _curve(track: Track) -> Iterator[Markup]:
    good = np.isfinite(track.time)
    if not good.any():
        return
    nights, time, low, high = _gathered(track.nights[good], track.time[good], track.low[good], track.high[good])
    bound = track.bound[good][np.isfinite(track.bound[good])]
    drawn = bound.size > 0 and float(np.median(bound)) >= SHOWN_BOUND * float(time.min())
    scale = _Scale.of(time, low, high, bound if drawn else bound[:0])
    yield from _axis(scale)
    x = _across(track, nights)
    edge = np.concatenate([x, x[::-1]]), np.concatenate([scale.up(low), scale.up(high)[::-1]])
    yield Markup('<path class="band" d="M{}Z"/>').format(_points(*edge))
    yield from _levels(track, scale)
    for start, stop in _pieces(nights, track.events):
        yield Markup('<path class="line" d="M{}"/>').format(_points(x[start:stop], scale.up(time[start:stop])))
    if nights.size <= MOST_DOTS:
        dot = Markup('<circle class="dot" cx="{:.0f}" cy="{:.0f}" r="2.4"/>')
        yield from (dot.format(float(cx), float(cy)) for cx, cy in zip(x, scale.up(time), strict=True))
    if drawn:
        course = _points(_across(track, track.nights[good]), scale.up(track.bound[good]))
        yield Markup('<path class="bound" d="M{}"/>').format(course)
    elif bound.size:
        text = Markup('<text x="{}" y="{}" text-anchor="end">bound {}, below</text>')
        yield text.format(WIDTH - RIGHT, HEIGHT - BOTTOM - 4, seconds(float(np.median(bound))))


def _levels(track: Track, scale: _Scale) -> Iterator[Markup]:
    """Draw the step at each event: the level before it and the level after, joined."""
    known = [(start, end, level) for start, end, level in track.levels() if math.isfinite(level)]
    if not track.events or len(known) < 2:
        return
    ends = [start for start, *_ in known[1:]] + [known[-1][1]]
    corners = [(night, level) for (start, _, level), end in zip(known, ends, strict=True) for night in (start, end)]
    x, y = (np.array(values, dtype=float) for values in zip(*corners, strict=True))
    yield Markup('<path class="level" d="M{}"/>').format(_points(_across(track, x), scale.up(y)))


def _events(track: Track) -> Iterator[Markup]:
    for night in dict.fromkeys(event.night for event in track.events):
        what = "; ".join(event.what for event in track.events if event.night == night)
        x = float(_across(track, np.array(night)))
        event = Markup('<path class="event" d="M{:.0f},{}V{}"><title>{}</title></path>')
        yield event.format(x, TOP, HEIGHT - BOTTOM, line(what))


def _failures(track: Track) -> Iterator[Markup]:
    for night, time, status in zip(track.nights, track.time, track.status, strict=True):
        if not np.isfinite(time):
            x, y = float(_across(track, np.array(night))), TOP + 6
            cross = Markup('<path class="fail" d="M{:.0f},{}l8,8m0,-8l-8,8"><title>{}</title></path>')
            yield cross.format(x - 4, y - 4, line(status))


def _days(history: History, track: Track) -> Iterator[Markup]:
    """Yield the dates of some nights along the axis, the first and the last among them."""
    shown = np.unique(np.linspace(0, track.nights.size - 1, MOST_DAYS).round().astype(int))
    last = 0.0
    for at in (0, *shown[1:-1].tolist(), track.nights.size - 1) if track.nights.size > 1 else (0,):
        x = float(_across(track, track.nights[at]))
        ends = at in (0, track.nights.size - 1)
        if not ends and (x - last < DAY_WIDTH or WIDTH - RIGHT - x < 1.5 * DAY_WIDTH):
            continue
        last = x + (DAY_WIDTH / 2 if at == 0 else 0)
        anchor = "start" if at == 0 else "end" if ends else "middle"
        text = Markup('<text x="{:.0f}" y="{}" text-anchor="{}">{}</text>')
        yield text.format(x, HEIGHT - 6, anchor, line(history.nights[int(track.nights[at])].started[:10]))


def _values(history: History, track: Track) -> Iterator[Markup]:
    """Yield an area for each of the latest nights that tells, below the pointer, its date, commit and time."""
    good = np.flatnonzero(np.isfinite(track.time))[-MOST_TOLD:]
    if not good.size:
        return
    x = _across(track, track.nights[good])
    edges = [LEFT if good.size < MOST_TOLD else float(x[0]), *((x[1:] + x[:-1]) / 2).tolist(), WIDTH - RIGHT]
    for at, left, right in zip(good.tolist(), edges, edges[1:], strict=False):
        night = history.nights[int(track.nights[at])]
        said = f"{night.started[:10]}, commit {night.commit[:12] or 'unknown'}: {seconds(float(track.time[at]))}"
        spread = f" ({seconds(float(track.low[at]))}–{seconds(float(track.high[at]))})" if track.low[at] > 0 else ""
        area = Markup('<path class="hit" d="M{:.1f},{}H{:.1f}V{}H{:.1f}Z"><title>{}</title></path>')
        yield area.format(left, TOP, right, HEIGHT - BOTTOM, left, line(said + spread))


def _gathered(
    nights: np.ndarray, time: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Put so many nights together that a chart has room for all: mean of the times, extremes of the intervals."""
    size = ceil_div(nights.size, MOST_POINTS)
    if size == 1:
        return nights, time, low, high
    starts = np.arange(0, nights.size, size)
    times = np.add.reduceat(time, starts) / np.diff(np.append(starts, nights.size))
    return nights[starts], times, np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)


def _pieces(nights: np.ndarray, events: Sequence[Event]) -> list[tuple[int, int]]:
    """Return the stretches of points between events: the line is broken where a new series begins."""
    cuts = sorted({int(np.searchsorted(nights, event.night)) for event in events})
    ends = [0, *cuts, nights.size]
    return [(start, stop) for start, stop in itertools.pairwise(ends) if stop > start]


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.0f},{b:.0f}" for a, b in zip(x.tolist(), y.tolist(), strict=True) if b == b)


def _axis(scale: _Scale) -> Iterator[Markup]:
    least, most = scale.least, scale.most
    factor, unit = time_scale([most])
    yield Markup('<path class="axis" d="M{},{}V{}H{}"/>').format(LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT)
    digits = max(3, 1 + math.ceil(math.log10(most / max(most - least, 1e-12 * most))) + 1)
    for value in (least + 0.04 * (most - least), (least + most) / 2, most - 0.04 * (most - least)):
        y = float(scale.up(np.array(value)))
        text = Markup('<text x="{}" y="{:.0f}" text-anchor="end">{} {}</text>')
        yield text.format(LEFT - 4, y + 4, significant(value * factor, digits), unit)
