"""The views of `perfport history`: every case over the nights as a table, and as a page with a chart for each.

The page is one file: charts are SVG in the text, a few lines of script search them, nothing is fetched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ...model.errors import UsageError
from ...model.names import natural
from ...model.record import Status
from ...nightly.history import Event, History, Series
from ...store.collection import Filter
from ..parts import web
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.quantities import seconds, significant
from ..parts.tracks import Track, chart, track
from ..parts.view import View

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
.level { fill: none; stroke: #d55e00; stroke-width: 1.2; stroke-dasharray: 2 2; }
.event { stroke: #d55e00; stroke-width: 1; fill: none; }
.fail { stroke: #b04300; stroke-width: 1.8; fill: none; }
.hit { fill: transparent; } .hit:hover { fill: #0072b2; fill-opacity: .12; }
.axis { stroke: #bbb; stroke-width: 1; fill: none; }
"""
_SCRIPT = """
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
"""


_PAGE = web.template("""<h1>{{ title }}</h1>
<p>{{ span }} Line: time of one execution, band: 95 % interval; dashed: problem bound; vertical: event (a change of \
source, driver, software or settings); dotted: level between events; cross: a night without a result. \
Hover a night for its date, commit and time. All times are measured.</p>
{% if left_out %}<p class="bad">Left out:</p><ul>\
{% for file in left_out %}<li>{{ file }}</li>{% endfor %}</ul>{% endif %}

<div class="bar"><input type="search" id="find" placeholder="Search: workload, variant, device ..." \
aria-label="Search"><label><input type="checkbox" id="only"> with events or failures</label>\
<span id="shown"></span></div>
<div class="cards">
{{ cards }}
</div>""")
_CARD = web.template("""<article class="card" data-name="{{ name }}"{% if news %} data-news="1"{% endif %}>\
<h2>{{ title }}{% if bad %} <span class="bad">{{ bad }}</span>{% endif %}</h2><p>{{ where }}</p><p>{{ facts }}</p>\
{{ chart }}{% if events %}<ul>{% for event in events %}<li>{{ event.day }}: \
{% if event.link %}<a href="{{ event.link }}">{{ event.what }}</a>{% else %}{{ event.what }}{% endif %}\
{% if event.step %}: {{ event.step }}{% endif %}</li>{% endfor %}\
{% if earlier %}<li>and {{ earlier }} earlier</li>{% endif %}</ul>{% endif %}</article>""")


def select(history: History, chosen: Filter) -> list[Series]:
    """Return the series that are meant, by name."""
    listed = []
    for series in history.series.values():
        place = series.place
        if chosen.names(*place.names):
            listed.append((natural(place.title), place.site, place.experiment, series))
    return [series for *_, series in sorted(listed, key=lambda named: named[:3])]


def view(history: History, chosen: Sequence[Series]) -> View:
    """Return the list of cases: nights, latest time, change against the nights before, events."""
    listed, rows = [], []
    for series in chosen:
        tracked, place = track(history, series), series.place
        latest = tracked.events[-1].what if tracked.events else ""
        listed.append([
            code(middle(place.title, 90)), code(place.site), str(len(series.nights)), _state(tracked),
            seconds(tracked.last), _percent(tracked.change), str(len(tracked.events)), text(latest, 100) or NONE,
        ])  # fmt: skip
        rows.append({
            "case": place.title, "device": place.site, "experiment": place.experiment, "nights": len(series.nights),
            "status": tracked.status[-1], "seconds": _plain(tracked.last), "ratio": _plain(1 / tracked.change),
            "bound": _plain(float(tracked.bound[-1])), "events": len(tracked.events), "latest event": latest,
        })  # fmt: skip
    headers = ["case", "device", "nights", "latest", "time", "change", "events", "latest event"]
    title = f"History of {len(chosen)} cases over {len(history.nights)} nights"
    note = "Change: the latest time against the median of up to 7 nights before it, since the last event (measured)."
    return View(title, join([f"# {title}", _span(history), table(headers, listed, "llrlrrrl"), note]), rows)


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _percent(change: float) -> str:
    return f"{100 * (change - 1):+.1f} %" if math.isfinite(change) else NONE


def _state(tracked: Track) -> str:
    return text(tracked.status[-1])


def _span(history: History) -> str:
    if not history.nights:
        return "No night yet."
    return f"From {text(history.nights[0].started[:10])} to {text(history.nights[-1].started[:10])}."


def page(history: History, chosen: Sequence[Series], compare: str = "") -> str:
    """Return the page: a chart for each case with its bound, its events and their steps, searchable.

    ``compare`` is the address that shows what changed between two commits, with ``{old}`` and ``{new}`` for them.
    """
    title = f"History: {len(chosen)} cases over {len(history.nights)} nights"
    cards = Markup("\n").join(_card(history, track(history, series), compare) for series in chosen)
    body = _PAGE(title=title, span=_span(history), left_out=history.left_out, cards=cards)
    return web.frame(title, body, _STYLE, (_SCRIPT,))


def check_compare(address: str) -> None:
    """Refuse an address of changes that is none of the web, or has no place for the commits. Raises `UsageError`."""
    named = set(re.findall(r"\{\w*\}", address))
    if not re.fullmatch(r"https?://[!-~]+", address) or not {"{old}", "{new}"} <= named:
        expected = "an address as in 'https://HOST/compare/{old}...{new}'"
        raise UsageError(f"--compare: expected {expected}, got {address!r}")


@dataclass(frozen=True)
class _Told:
    """An event as the list below a chart has it."""

    day: str
    what: str
    link: str
    step: str


def _told(history: History, event: Event, steps: Mapping[int, float], compare: str) -> _Told:
    old, new = event.change.old.removesuffix("+"), event.change.new.removesuffix("+")
    commits = event.change.kind == "source" and all(re.fullmatch("[0-9a-f]{7}", commit) for commit in (old, new))
    link = compare.replace("{old}", old).replace("{new}", new) if commits else ""
    step = steps.get(event.night, math.nan)
    time = f"{_percent(step)} time" if math.isfinite(step) else ""
    return _Told(history.nights[event.night].started[:10], event.what, link, time)


def _card(history: History, tracked: Track, compare: str) -> Markup:
    place = tracked.series.place
    facts = [seconds(tracked.last), f"{_percent(tracked.change)} against the nights before"]
    if math.isfinite(tracked.bound[-1]) and math.isfinite(tracked.time[-1]):
        share = significant(100 * tracked.bound[-1] / tracked.time[-1])
        facts.append(f"bound {seconds(float(tracked.bound[-1]))}, share {share} %")
    shown = tracked.events[: -MOST_EVENTS - 1 : -1]
    steps = tracked.steps()
    events = [_told(history, event, steps, compare) for event in shown]
    return _CARD(
        name=f"{place.title} {place.site} {place.experiment}".lower(), news=bool(tracked.events or tracked.failures),
        title=place.title, bad=tracked.status[-1] if Status(tracked.status[-1]).failed else "",
        where=f"{place.site}, {place.experiment}", facts="; ".join(facts), chart=chart(history, tracked), events=events,
        earlier=len(tracked.events) - len(shown),
    )  # fmt: skip
