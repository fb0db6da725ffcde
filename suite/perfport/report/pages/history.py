"""The views of `perfport history`: every case over the nights as a table, and as a page with a chart for each.

The page is one file: charts are SVG in the text, a few lines of script search them, nothing is fetched.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.names import natural
from ...model.record import Status
from ...nightly.history import Event, History, Series
from ...store.collection import Filter
from ..parts import web
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.quantities import seconds, significant, time_scale
from ..parts.view import View

#: Nights that a chart draws one by one; of more, as many together as it takes.
MOST_POINTS = 400
WIDTH, HEIGHT = 640, 190
LEFT, RIGHT, TOP, BOTTOM = 68, 8, 12, 24
#: A bound below so much of the least time is told in words: drawn, it would flatten the curve.
SHOWN_BOUND = 0.8
#: Events that are told below a chart; the others are drawn alone.
MOST_EVENTS = 4

_STYLE = """
.bar { position: sticky; top: 0; background: #fff; padding: .6rem 0; z-index: 1; border-bottom: 1px solid #ccc;
  display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; align-items: center; }
.bar input[type=search] { font: inherit; padding: .3rem .5rem; flex: 1 1 16rem; min-width: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 34rem), 1fr)); gap: 1rem 1.5rem;
  margin-top: 1rem; }
.card { content-visibility: auto; contain-intrinsic-size: auto 19rem; border-top: 1px solid #ddd; padding-top: .5rem;
  min-width: 0; }
.card[hidden] { display: none; }
.card h2 { font-size: .95rem; margin: 0; }
.card p { margin: .1rem 0; font-size: .82rem; color: #444; }
.card svg { width: 100%; height: auto; display: block; }
.card ul { margin: .1rem 0; padding-left: 1.1rem; font-size: .8rem; color: #7a3b00; }
.bad { color: #b04300; font-weight: 600; }
svg text { font: 11px system-ui, sans-serif; fill: #444; }
@media (max-width: 40rem) { svg text { font-size: 15px; } }
.band { fill: #0072b2; fill-opacity: .22; }
.line { fill: none; stroke: #0072b2; stroke-width: 1.6; }
.dot { fill: #0072b2; }
.bound { stroke: #009e73; stroke-dasharray: 5 3; stroke-width: 1.4; fill: none; }
.event { stroke: #d55e00; stroke-width: 1; fill: none; }
.fail { stroke: #b04300; stroke-width: 1.8; fill: none; }
.axis { stroke: #bbb; stroke-width: 1; fill: none; }
"""
_SCRIPT = """
<script>
const find = document.getElementById("find"), only = document.getElementById("only");
const cards = [...document.querySelectorAll(".card")], shown = document.getElementById("shown");
function update() {
  const words = find.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const card of cards) {
    const hit = words.every(word => card.dataset.name.includes(word)) && (!only.checked || card.dataset.news);
    card.hidden = !hit;
    count += hit;
  }
  shown.textContent = count + " of " + cards.length + " cases";
}
find.addEventListener("input", update);
only.addEventListener("change", update);
update();
</script>"""


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

    @property
    def failures(self) -> int:
        """Nights in which it ended badly."""
        return sum(Status(status).failed for status in self.status)


def select(history: History, chosen: Filter) -> list[Series]:
    """Return the series that are meant, by name."""
    found = []
    for series in history.series.values():
        place = series.place
        if chosen.names(*place.names):
            found.append((natural(place.title), place.site, place.experiment, series))
    return [series for *_, series in sorted(found, key=lambda named: named[:3])]


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


def view(history: History, chosen: Sequence[Series]) -> View:
    """Return the list of cases: nights, latest time, change against the nights before, events."""
    listed, rows = [], []
    for series in chosen:
        found, place = track(history, series), series.place
        latest = found.events[-1].what if found.events else ""
        listed.append([
            code(middle(place.title, 90)), code(place.site), str(len(series.nights)), _state(found),
            seconds(found.last), _percent(found.change), str(len(found.events)), text(latest, 100) or NONE,
        ])  # fmt: skip
        rows.append({
            "case": place.title, "device": place.site, "experiment": place.experiment, "nights": len(series.nights),
            "status": found.status[-1], "seconds": _plain(found.last), "ratio": _plain(1 / found.change),
            "bound": _plain(float(found.bound[-1])), "events": len(found.events), "latest event": latest,
        })  # fmt: skip
    headers = ["case", "device", "nights", "latest", "time", "change", "events", "latest event"]
    title = f"History of {len(chosen)} cases over {len(history.nights)} nights"
    note = "Change: the latest time against the median of up to 7 nights before it, since the last event (measured)."
    return View(title, join([f"# {title}", _span(history), table(headers, listed, "llrlrrrl"), note]), rows)


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _percent(change: float) -> str:
    return f"{100 * (change - 1):+.1f} %" if math.isfinite(change) else NONE


def _state(found: Track) -> str:
    return text(found.status[-1])


def _span(history: History) -> str:
    if not history.nights:
        return "No night yet."
    return f"From {text(history.nights[0].started[:10])} to {text(history.nights[-1].started[:10])}."


def page(history: History, chosen: Sequence[Series]) -> str:
    """Return the page: a chart for each case with its bound and events, searchable."""
    title = f"History: {len(chosen)} cases over {len(history.nights)} nights"
    left = "".join(f"<li>{html.escape(one)}</li>" for one in history.left_out)
    body = [
        f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(_span(history))} Line: time of one execution, band: 95 % "
        "interval; dashed: problem bound; vertical: event (a change of driver, source, settings or software begins a "
        "new series); cross: a night without a result. All times are measured.</p>",
        f'<p class="bad">Left out:</p><ul>{left}</ul>' if left else "",
        '<div class="bar"><input type="search" id="find" placeholder="Search: workload, variant, device ..." '
        'aria-label="Search"><label><input type="checkbox" id="only"> with events or failures</label>'
        '<span id="shown"></span></div>', '<div class="cards">',
        *(_card(history, track(history, series)) for series in chosen), "</div>", _SCRIPT,
    ]  # fmt: skip
    return web.frame(title, "\n".join(body), _STYLE)


def _card(history: History, found: Track) -> str:
    place = found.series.place
    name = html.escape(f"{place.title} {place.site} {place.experiment}".lower(), quote=True)
    news = ' data-news="1"' if found.events or found.failures else ""
    facts = [f"{seconds(found.last)}", f"{_percent(found.change)} against the nights before"]
    if math.isfinite(found.bound[-1]) and math.isfinite(found.time[-1]):
        facts.append(
            f"bound {seconds(float(found.bound[-1]))}, share {significant(100 * found.bound[-1] / found.time[-1])} %"
        )
    bad = Status(found.status[-1]).failed
    state = f' <span class="bad">{html.escape(found.status[-1])}</span>' if bad else ""
    told = found.events[: -MOST_EVENTS - 1 : -1]
    events = "".join(
        f"<li>{html.escape(history.nights[event.night].started[:10])}: {html.escape(event.what)}</li>" for event in told
    )
    more = len(found.events) - len(told)
    events += f"<li>and {more} earlier</li>" if more else ""
    return (
        f'<article class="card" data-name="{name}"{news}><h2>{html.escape(place.title)}{state}</h2>'
        f"<p>{html.escape(place.site)}, {html.escape(place.experiment)}</p><p>{html.escape('; '.join(facts))}</p>"
        f"{chart(history, found)}{f'<ul>{events}</ul>' if events else ''}</article>"
    )


def chart(history: History, found: Track) -> str:
    """Return the SVG of a series."""
    good = np.isfinite(found.time)
    parts: list[str] = []
    first, last = int(found.nights[0]), int(found.nights[-1])

    def across(night: np.ndarray | float) -> Any:
        return LEFT + (np.asarray(night) - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)

    if good.any():
        nights, time, low, high = _gathered(found.nights[good], found.time[good], found.low[good], found.high[good])
        bound = found.bound[good][np.isfinite(found.bound[good])]
        drawn = bound.size > 0 and float(np.median(bound)) >= SHOWN_BOUND * float(time.min())
        # An interval that is far wider than the curve's own course is cut: the course is what the chart is for.
        centre = float(np.median(time))
        least = max(float(low.min()), float(time.min()) - 0.5 * centre)
        most = min(float(high.max()), float(time.max()) + 0.5 * centre)
        if drawn:
            least, most = min(least, float(bound.min())), max(most, float(bound.max()))
        room = max(0.06 * (most - least), 0.01 * centre)
        least, most = max(least - room, 0.0), most + room

        def up(value: np.ndarray) -> Any:
            inside = np.clip(value, least, most)
            return HEIGHT - BOTTOM - (inside - least) / (most - least) * (HEIGHT - TOP - BOTTOM)

        parts += _axis(least, most, up)
        x = across(nights)
        edge = np.concatenate([x, x[::-1]]), np.concatenate([up(low), up(high)[::-1]])
        parts.append(f'<path class="band" d="M{_points(*edge)}Z"/>')
        for start, stop in _pieces(nights, found.events):
            parts.append(f'<path class="line" d="M{_points(x[start:stop], up(time[start:stop]))}"/>')
        if nights.size <= 60:
            parts += [
                f'<circle class="dot" cx="{cx:.0f}" cy="{cy:.0f}" r="2.4"/>' for cx, cy in zip(x, up(time), strict=True)
            ]
        if drawn:
            parts.append(f'<path class="bound" d="M{_points(across(found.nights[good]), up(found.bound[good]))}"/>')
        elif bound.size:
            said = f"bound {seconds(float(np.median(bound)))}, below"
            parts.append(
                f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - BOTTOM - 4}" text-anchor="end">{html.escape(said)}</text>'
            )
    for number in dict.fromkeys(event.night for event in found.events):
        said = "; ".join(event.what for event in found.events if event.night == number)
        at = f"{float(across(number)):.0f}"
        parts.append(f'<path class="event" d="M{at},{TOP}V{HEIGHT - BOTTOM}"><title>{html.escape(said)}</title></path>')
    for number, status in zip(
        found.nights[~good], (s for s, g in zip(found.status, good, strict=True) if not g), strict=True
    ):
        x0, y0 = float(across(float(number))), TOP + 6
        parts.append(
            f'<path class="fail" d="M{x0 - 4:.0f},{y0 - 4}l8,8m0,-8l-8,8"><title>{html.escape(status)}</title></path>'
        )
    for number, anchor in ((first, "start"), (last, "end")) if last > first else ((first, "start"),):
        day = html.escape(history.nights[number].started[:10])
        parts.append(f'<text x="{float(across(number)):.0f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{day}</text>')
    label = html.escape(f"Time of {found.series.place.title} by night", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _gathered(
    nights: np.ndarray, time: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Put so many nights together that a chart has room for all: mean of the times, extremes of the intervals."""
    size = -(-nights.size // MOST_POINTS)
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


def _axis(least: float, most: float, up: Any) -> list[str]:
    factor, unit = time_scale([most])
    parts = [f'<path class="axis" d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>']
    digits = max(3, 1 + math.ceil(math.log10(most / max(most - least, 1e-12 * most))) + 1)
    for value in (least + 0.04 * (most - least), (least + most) / 2, most - 0.04 * (most - least)):
        y = float(up(np.array(value)))
        shown = html.escape(f"{significant(value * factor, digits)} {unit}")
        parts.append(f'<text x="{LEFT - 4}" y="{y + 4:.0f}" text-anchor="end">{shown}</text>')
    return parts
