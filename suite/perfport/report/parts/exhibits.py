"""A page that follows a source: each of its figures and tables with the published values, the live ones, the claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import geometric_mean
from typing import Any

from ...judge.claims import Evidence, Judgement, Verdict, evaluate, ledger
from ...judge.exhibits import SPEEDUP, Exhibit, Source
from ...machine.device_profile import all_profiles
from ...model import published
from ...model.published import Figure
from ...model.record import Interval
from ...model.untrusted import readable
from ...store.case import Site
from ...store.collection import Collection
from .crossovers import Crossover, crossovers, order
from .exhibit_plots import Drawing, Level, bars, curves, logarithmic
from .exhibit_points import Counter, Missing, Panel, Points, points
from .exhibit_roofline import roofline
from .markdown import NONE, code, details, join, table, text
from .marks import marks, noted
from .plots import Plot, image
from .quantities import interval, percent, seconds, significant, time_interval

#: Rows of a table beside a plot above which it is folded; crossovers that are told of one exhibit and device.
MOST_OPEN, MOST_CROSSOVERS = 14, 24
_READING = (
    "The sections are those of the source, in its order. Numbers are *measured* here, with 95 % intervals, or "
    "*published*. A crossover lies between two places at which the intervals are apart; what is interpolated between "
    "them follows the logarithm of the ratio."
)
_EVEN = Interval(value=1, low=1, high=1)


@dataclass
class Followed:
    """The sections of a source: blocks of markdown, and the plots that they show."""

    source: Source
    collection: Collection
    counted: Counter
    folder: str

    def __post_init__(self) -> None:
        claims = {self.source.workload: ledger().get(self.source.workload, [])}
        self._judged = evaluate(claims, self.collection)
        self.plots: list[Plot] = []

    def blocks(self) -> Iterator[str]:
        """Yield the markdown, section by section; the plots are added to ``plots``."""
        yield join([f"The source: {text(self.source.citation, 600)}", _READING, text(self.source.note, 900)])
        for number, exhibit in enumerate(self.source.exhibits):
            yield f"## {text(exhibit.number)}: {text(exhibit.title)}"
            yield text(exhibit.note, 900)
            yield from self._exhibit(exhibit, number)
            yield claims_table([j for j in self._judged if j.claim.id in exhibit.claims], self.collection)
        shown = {claim for exhibit in self.source.exhibits for claim in exhibit.claims}
        if rest := [judgement for judgement in self._judged if judgement.claim.id not in shown]:
            yield "## Claims of the text"
            yield claims_table(rest, self.collection)

    def _exhibit(self, exhibit: Exhibit, number: int) -> Iterator[str]:
        if exhibit.kind == "ratios":
            return
        workload = self.source.workload
        ran = {c.site.alone for c in self.collection.cases
               if (c.subject.workload, c.subject.problem) == (workload, exhibit.problem)}  # fmt: skip
        found = [
            (site, points(exhibit, workload, self.collection, site, self.counted))
            for site in self.collection.places
            if site in ran
        ]
        yield published_table(exhibit, cited(exhibit, workload), [(self.collection.label(s), p) for s, p in found])
        if not found:
            yield f"*Not in this run:* {code(f'{workload}/{exhibit.problem}')}, on any device."
        for site, held in found:
            yield from self._at(exhibit, number, site, held)

    def _at(self, exhibit: Exhibit, number: int, site: Site, held: Points) -> Iterator[str]:
        label = self.collection.label(site)
        yield f"### {code(label)}, {text(site.chip)}"
        if held.panels and (plot := self._plot(exhibit, number, label, held)):
            self.plots.append(plot)
            yield from image(plot, self.folder)
        if held.panels:
            rows = points_table(exhibit, held)
            folded = exhibit.kind != "table" and rows.count("\n") > MOST_OPEN
            yield details("The numbers (measured)", rows) if folded else rows
        if exhibit.kind == "curves" and len(held.xs) > 1:
            yield crossed(exhibit, held)
        yield missing(exhibit, held)

    def _plot(self, exhibit: Exhibit, number: int, label: str, held: Points) -> Plot | None:
        name = readable(f"{number + 1:02d}", exhibit.number, label)
        title = f"{exhibit.number}, {exhibit.title}: {self.source.workload}/{exhibit.problem} on {label}"
        unit = ", ".join(dict.fromkeys(held.units.values()))
        levels = list(_levels(exhibit, cited(exhibit, self.source.workload), held))
        drawing = Drawing(name, title, exhibit.axis, unit, levels, exhibit.quantity(exhibit.series[0]) == SPEEDUP)
        if exhibit.kind == "roofline":
            return roofline(held, drawing, exhibit.devices)
        return {"curves": curves, "bars": bars}[exhibit.kind](held, drawing) if exhibit.kind != "table" else None


def cited(exhibit: Exhibit, workload: str) -> list[tuple[Figure, str | None]]:
    """Return the published figures of an exhibit, each with the title of the series that it is the value of."""
    return [
        (figure, each.series)
        for each in exhibit.published
        for figure in published.figures(workload)
        if each.takes(figure)
    ]  # fmt: skip


def _series_of(exhibit: Exhibit, figure: Figure, series: str | None, held: Points) -> str | None:
    """Return which series a published figure stands beside: the one that is named, else its variant's, in its unit."""
    own = (s.title for s in exhibit.series if figure.variant in s.variant and held.units.get(s.title) == figure.unit)
    return series if series in held.units else next(own, None)


def _levels(exhibit: Exhibit, figures: Sequence[tuple[Figure, str | None]], held: Points) -> Iterator[Level]:
    for figure, series in figures:
        beside = _series_of(exhibit, figure, series, held)
        if beside:
            yield Level(beside, _device(figure), figure.value, figure.high or figure.value)


def _device(figure: Figure) -> str:
    profile = all_profiles().get(figure.device)
    return profile.title if profile else figure.device


def published_table(
    exhibit: Exhibit, figures: Sequence[tuple[Figure, str | None]], found: Sequence[tuple[str, Points]]
) -> str:
    """Return the published values of an exhibit, beside each what was measured on every device."""
    rows = []
    for figure, series in figures:
        value = significant(figure.value) + (f" to {significant(figure.high)}" if figure.high else "")
        here = [_here(exhibit, _series_of(exhibit, figure, series, held), held) for _, held in found]
        rows.append([
            code(series or figure.variant), text(_device(figure)), value, text(figure.unit),
            percent(figure.share) if figure.share is not None else "", *here, text(figure.note or ""),
        ])  # fmt: skip
    headers = ["published", "device", "value", "unit", "share of its bound", *(f"here, {code(n)}" for n, _ in found)]
    align = "llrlr" + "r" * len(found) + "l"
    return join(["**Published**, beside what was measured", table([*headers, "note"], rows, align)]) if rows else ""


def _here(exhibit: Exhibit, series: str | None, held: Points) -> str:
    """Return what a series reaches here: at the end of an axis of curves, else from the least to the most."""
    of = [panel.curves[series] for panel in held.panels if series in panel.curves] if series else []
    if not of:
        return NONE
    if exhibit.kind == "curves":
        last = max(x for points_of in of for x in points_of)
        values = [points_of[last].value.value for points_of in of if last in points_of]
        at = f" at {last:,}" if isinstance(last, int | float) else ""
    else:
        values, at = [p.value.value for points_of in of for p in points_of.values()], ""
    ends = dict.fromkeys([significant(min(values)), significant(max(values))])
    return " to ".join(ends) + at


def points_table(exhibit: Exhibit, held: Points) -> str:
    """Return every point of an exhibit on one device, a row for each setting and value of the axis."""
    bounds = any(panel.bound(x) is not None for panel in held.panels for x in held.xs)
    unit = next(iter(held.units.values()))
    rows = []
    for panel in held.panels:
        for x in held.xs:
            cells = [_cell(panel, title, x, held.units[title]) for title in held.units]
            if any(cell != NONE for cell in cells):
                limit = _limit(panel.bound(x), unit)
                place = f"{x:,}" if isinstance(x, int | float) else text(x)
                rows.append([text(panel.name), place, *cells, limit if bounds else ""])
    headers = ["setting", text(exhibit.axis), *(_headed(title, unit) for title, unit in held.units.items())]
    headers.append("problem bound" + (f", {text(unit)}" if unit != "s" else ""))
    return noted([table(headers, rows, "ll" + "r" * (len(held.units) + 1))])


def _headed(title: str, unit: str) -> str:
    return code(title) + (f", {text(unit)}" if unit and unit != "s" else "")


def _limit(value: float | None, unit: str) -> str:
    return seconds(value) if unit == "s" else significant(value)


def _cell(panel: Panel, title: str, x: Any, unit: str) -> str:
    point = panel.curves.get(title, {}).get(x)
    if point is None:
        return NONE
    value = point.value
    marked = "".join(dict.fromkeys(re.findall(" .", "".join(map(marks, point.rows)))))
    if value.low == value.high:
        whole = value.value == int(value.value)
        return (f"{int(value.value):,}" if whole else significant(value.value, 4)) + marked
    return (time_interval(value) if unit == "s" else interval(value)) + marked


def crossed(exhibit: Exhibit, held: Points) -> str:
    """Return where curves overtake each other, and where a speed-up passes 1."""
    over = [series.title for series in exhibit.series if series.over and series.title in held.units]
    log = logarithmic(held.xs)
    blocks = []
    if over:
        rows = [
            [text(panel.name), *(_break_even(_values(panel, title), log) for title in over)] for panel in held.panels
        ]
        head = f"**Break-even** along {text(exhibit.axis)} (measured; in brackets: between which of its values)"
        blocks += [head, table(["setting", *map(code, over)], rows, "l" * (1 + len(over)))]
    said = list(_crossings([title for title in held.units if title not in over], exhibit.axis, held, log))
    more = [f"and {len(said) - MOST_CROSSOVERS} more"] if len(said) > MOST_CROSSOVERS else []
    if said:
        blocks += ["**Crossovers** (measured)", "\n".join(f"- {line}" for line in [*said[:MOST_CROSSOVERS], *more])]
    return join(blocks) or "**Crossovers**: the intervals decide none."


def _values(panel: Panel, title: str) -> dict[Any, Interval]:
    """Return the values of a curve that have a logarithm."""
    return {x: point.value for x, point in panel.curves.get(title, {}).items() if point.value.value > 0}


def _crossings(titles: Sequence[str], x: str, held: Points, log: bool) -> Iterator[str]:
    for panel in held.panels:
        where = f"{text(panel.name)}: " if panel.name else ""
        for one, other in combinations(titles, 2):
            for found in crossovers(_values(panel, one), _values(panel, other), held.higher, log):
                ahead, behind = (one, other) if found.first else (other, one)
                place = f"between {text(x)} = {found.low:,} and {found.high:,} ({_inside(found)})"
                yield f"{where}{code(ahead)} overtakes {code(behind)} {place}"


def _inside(found: Crossover) -> str:
    return f"interpolated: {significant(found.at)}" if found.at is not None else "they pass each other several times"


def _break_even(values: dict[Any, Interval], log: bool) -> str:
    """Say from where on a speed-up is above 1, and from where on it is below."""
    if not values:
        return ""
    even = dict.fromkeys(values, _EVEN)
    if found := crossovers(values, even, True, log):
        return ", ".join(
            f"{'faster' if each.first else 'slower'} from {significant(each.at)} on ({each.low:,} to {each.high:,})"
            for each in found
        )
    ways = {order(value, _EVEN, True) for value in values.values()}
    way = "faster" if 1 in ways else "slower" if -1 in ways else "the intervals decide nothing"
    return way if ways == {0} else f"{way} throughout" if 0 not in ways else f"{way} where decided"


def missing(exhibit: Exhibit, held: Points) -> str:
    """Return what of an exhibit is not in the run, and what stands for something else."""
    blocks = [f"*In place of {code(title)}:* {code(name)}." for title, name in held.stand_ins.items()]
    if held.missing:
        alike: dict[str, list[str]] = {}
        for each in held.missing:
            alike.setdefault(_lack(each, exhibit.axis), []).append(each.series)
        items = [f"{', '.join(map(code, names))}: {why}" for why, names in alike.items()]
        blocks.append("*Not in this run:*" + (f" {items[0]}" if len(items) == 1 else "\n\n- " + "\n- ".join(items)))
    return join(blocks)


def _lack(each: Missing, x: str) -> str:
    listed = ", ".join(f"{v:,}" if isinstance(v, int | float) else text(v, 40) for v in each.xs[:10] if v != "")
    more = f" and {len(each.xs) - 10} more" if len(each.xs) > 10 else ""
    return text(each.why, 160) + (f" at {text(x)} = {listed}{more}" if listed else "")


def claims_table(judgements: Sequence[Judgement], collection: Collection) -> str:
    """Return claims with the published number, what was measured on each device, and the verdict."""
    rows = [
        [
            f"{code(judgement.claim.id)}: {text(judgement.claim.statement)}", text(judgement.claim.published or ""),
            code(collection.label(judgement.site)), *_measured(judgement.evidence),
            f"**{judgement.verdict.value}**" if judgement.evidence else judgement.verdict.value,
            text(judgement.judged_on if judgement.evidence else _because(judgement)),
        ]
        for judgement in judgements
    ]  # fmt: skip
    headers = ["claim", "published", "device", "measured", "settings", "verdict", "judged on, or why not"]
    return join(["**Claims**", table(headers, rows, "lllrrll")]) if rows else ""


def _measured(evidence: Sequence[Evidence]) -> list[str]:
    """Return the numbers of the settings of a claim: the one with its interval, or the ends and the mean."""
    values = [each.interval.value for each in evidence]
    if len(evidence) < 2:
        return [interval(evidence[0].interval) if evidence else NONE, "1" if evidence else NONE]
    mean = f", geometric mean {significant(geometric_mean(values))}" if min(values) > 0 else ""
    return [f"{significant(min(values))} to {significant(max(values))}{mean}", str(len(values))]


def _because(judgement: Judgement) -> str:
    return judgement.reason if judgement.verdict in (Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE) else ""
