"""What a run has for an exhibit: the points of every series at a place, and what is missing, which is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...judge.exhibits import METRIC, SPEEDUP, TIME, TOGETHER, Exhibit, Series
from ...model.names import plain, settings
from ...model.record import Interval, Record
from ...store.case import Case, Site
from ...store.collection import Collection
from ...store.comparable import fastest, fastest_first
from ...store.crossfit import compare_best
from ...store.ratios import time_of
from ...untimed.count import Count
from .ladder import Row

#: What was counted of a case, or nothing.
Counter = Callable[[Case], Count | None]
#: A setting as text, and the values of an axis there.
_Place = tuple[str, Any]


@dataclass(frozen=True)
class Point:
    """The value of a series somewhere on the axis, the cases that it is of, its own first, and the bound's value."""

    value: Interval
    rows: tuple[Row, ...]
    bound: float | None

    @property
    def record(self) -> Record:
        """The record of the series."""
        return self.rows[0].record


@dataclass
class Panel:
    """One setting: by the titles of series, their points along the axis."""

    name: str
    curves: dict[str, dict[Any, Point]] = field(default_factory=dict)

    def bound(self, x: Any) -> float | None:
        """The value at the problem bound, the same for all variants but for ceilings that moved."""
        return max((p.bound for of in self.curves.values() if (p := of.get(x)) and p.bound is not None), default=None)


@dataclass
class Missing:
    """What a series lacks and why; ``xs`` where it is not the whole axis."""

    series: str
    why: str
    xs: list[Any]


@dataclass
class Points:
    """An exhibit at one place.

    Attributes
    ----------
    panels : list of Panel
    xs : list
        The values of the axis in its order; of an exhibit without axis one, which is empty.
    units : dict of str to str
        By the titles of series.
    higher : bool
        Whether more is better.
    missing : list of Missing
    stand_ins : dict of str to str
        By the titles of series, of what one is over with ``, over`` behind it: the variants that stand for those named.
    """

    panels: list[Panel]
    xs: list[Any]
    units: dict[str, str]
    higher: bool
    missing: list[Missing]
    stand_ins: dict[str, str]


class _Group:
    """How the cases of an exhibit fall into panels and places on the axis."""

    def __init__(self, exhibit: Exhibit, cases: Sequence[Case]) -> None:
        self.x = exhibit.x
        keys = [json.loads(self.key(case.record)) for case in cases]
        names = {name for key in keys for name in key}
        self._varying = {name for name in names if len({plain(key.get(name)) for key in keys}) > 1}

    def key(self, record: Record) -> str:
        """What the records of one panel have in common."""
        identity = record.identity
        rest = {name: value for name, value in identity.parameters.items() if name not in self.x}
        own = {"profile": identity.profile or "", "precision": identity.precision}
        return json.dumps({**rest, **own}, sort_keys=True)

    def at(self, record: Record) -> Any:
        """The value of the axis; ``""`` where there is no axis, None where the record has no such value."""
        known = {**record.identity.tunables, **record.identity.parameters}
        values = [known.get(name) for name in self.x]
        if len(values) == 1 and not isinstance(values[0], list | dict):
            return values[0]
        return None if None in values else TOGETHER.join(map(plain, values))

    def name(self, key: str) -> str:
        """A panel by what tells it from the others."""
        held = {name: value for name, value in json.loads(key).items() if name in self._varying}
        if "profile" in held:
            held["profile"] = held["profile"] or "the device's defaults"
        return settings(held)

    def split(self, cases: Sequence[Case]) -> dict[tuple[str, Any], list[Case]]:
        """Return cases by panel and value of the axis."""
        groups: dict[tuple[str, Any], list[Case]] = {}
        for case in cases:
            x = self.at(case.record)
            if x is not None:
                groups.setdefault((self.key(case.record), x), []).append(case)
        return groups


def points(exhibit: Exhibit, workload: str, collection: Collection, site: Site, counted: Counter) -> Points:
    """Return what the cases of a collection at one place, with however many devices, have for an exhibit."""
    own = [
        case
        for case in collection.current
        if case.site.alone == site
        and (case.subject.workload, case.subject.problem) == (workload, exhibit.problem)
        and exhibit.precision in (None, case.subject.precision)
    ]
    taken = {series.title: _taken(exhibit, series, own) for series in exhibit.series}
    over = {series.title: _over(exhibit, series, own) for series in exhibit.series}
    grouping = _Group(exhibit, [case for cases, _ in taken.values() for case in cases])
    panels: dict[str, Panel] = {}
    lacks: list[Missing] = []
    units: dict[str, str] = {}
    alike = len({series.over.name if series.over else "" for series in exhibit.series}) == 1
    for series in exhibit.series:
        cases = taken[series.title][0]
        groups = grouping.split(cases)
        why: dict[str, list[Any]] = {}
        against = grouping.split(over[series.title][0])
        for (key, x), same in groups.items():
            panel = panels.setdefault(key, Panel(grouping.name(key)))
            reference = _reference(series, against, key, x, exhibit.x)
            found = _point(exhibit.quantity(series), same, reference, counted)
            if isinstance(found, Point):  # over several references a speed-up has as many bounds
                panel.curves.setdefault(series.title, {})[x] = found if alike else replace(found, bound=None)
                units.setdefault(series.title, _unit(exhibit, series, found.record))
            else:
                why.setdefault(found, []).append(x)
        whole = sum(map(len, why.values())) == len(groups)
        if not groups:
            lacks.append(Missing(series.title, "no such case in this run", []))
        lacks += [Missing(series.title, told, [] if whole and len(why) == 1 else xs) for told, xs in why.items()]
    listed = [panels[key] for key in sorted(panels, key=_order) if panels[key].curves]
    xs = _axis(exhibit, listed)
    lacks += list(_gaps(exhibit, listed, xs, lacks))
    stand_ins = {
        f"{title}, over" if side is over else title: name
        for side in (taken, over)
        for title, (_, name) in side.items()
        if name
    }
    return Points(listed, xs, units, _higher(exhibit, listed), lacks, stand_ins)


def _order(key: str) -> tuple[Any, ...]:
    """Panels by their numbers, which 64 and 1 are before 16 and 128 as text."""
    return tuple((str(n), isinstance(v, str), v if isinstance(v, int | float) else 0, plain(v))
                 for n, v in sorted(json.loads(key).items()))  # fmt: skip


def _taken(exhibit: Exhibit, series: Series, cases: Sequence[Case]) -> tuple[list[Case], str]:
    """Return the cases of a series, and what they are where others stand for the variants that it names."""
    meant = [case for case in cases if _takes(exhibit, series, case)]
    own = [case for case in meant if series.best or case.record.identity.variant in series.variant]
    instead = [case for case in meant if not series.best and case.record.identity.variant in series.instead]
    if fastest(own) or not fastest(instead):
        return own, ""
    return instead, " or ".join(series.instead)


def _takes(exhibit: Exhibit, series: Series, case: Case) -> bool:
    profiles = [series.profile] if series.profile else exhibit.profiles
    of_profile = (series.model_copy(update={"profile": profile}) for profile in profiles)
    return any(each.takes(case.record, exhibit.parameters) for each in of_profile)


def _over(exhibit: Exhibit, series: Series, cases: Sequence[Case]) -> tuple[list[Case], str]:
    if series.over is None:
        return [], ""
    return _taken(exhibit, Series.model_validate(series.over.model_dump()), cases)


def _reference(
    series: Series, against: Mapping[tuple[str, Any], list[Case]], key: str, x: Any, axis: Sequence[str]
) -> list[Case]:
    """Return the cases that a speed-up is over: at the same place, unless the reference has its own on the axis."""
    if series.over and not {*series.over.parameters, *series.over.tunables}.isdisjoint(axis):
        return [case for (panel, _), cases in against.items() if panel == key for case in cases]
    return against.get((key, x), [])


def _point(quantity: str, cases: Sequence[Case], reference: Sequence[Case], counted: Counter) -> Point | str:
    """Return the point that cases of one setting give, or why they give none."""
    ranked = fastest_first(cases)
    if not ranked:
        return _why(cases[0])
    case, row = ranked[0], _row(ranked[0])
    record = case.record
    bound = None if case.site.several else record.problem_bound
    if quantity == SPEEDUP:
        bases = fastest_first(reference)
        compared = compare_best([b.record for b in bases], [r.record for r in ranked]) if bases else None
        if compared is None:
            return f"{_why(reference[0])}, of what it is over" if reference else "nothing to be over"
        ratio = compared.ratio
        at = time_of(bases[0].record) / bound.seconds if bound and bound.seconds else None
        return Point(Interval(value=ratio.value, low=ratio.low, high=ratio.high), (row, _row(bases[0])), at)
    if quantity == TIME and record.timing:
        return Point(record.timing.ranked, (row,), bound.seconds if bound else None)
    if quantity == METRIC and record.metric:
        metric, share = record.metric, bound.share.value if bound else 0.0
        at = (metric.value / share if metric.direction == "higher" else metric.value * share) if share else None
        return Point(Interval(value=metric.value, low=metric.low, high=metric.high), (row,), at)
    value = _figure(quantity, case, counted)
    if value is None:
        return "not counted" if quantity.startswith("count.") else f"no number {quantity!r}"
    return Point(value, (row,), None)


def _row(case: Case) -> Row:
    return Row(case.run, case.record, case.site, case.subject, case.later)


def _why(case: Case) -> str:
    status, failure = case.record.status, case.record.failure
    return f"{status.value}: {failure.reason}" if failure and not status.measured else status.value


def _figure(quantity: str, case: Case, counted: Counter) -> Interval | None:
    """Return a figure of a record, or of its count, by its path."""
    path, _, per_second = quantity.partition("/")
    root, _, rest = path.partition(".")
    value: Any = counted(case) if root == "count" else case.record
    for part in (rest if root == "count" else path).split("."):
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not per_second:
        return Interval(value=value, low=value, high=value)
    assert case.record.timing  # it is ranked
    time = case.record.timing.ranked
    return Interval(value=value / time.value, low=value / time.high, high=value / time.low)


def _unit(exhibit: Exhibit, series: Series, record: Record) -> str:
    quantity = exhibit.quantity(series)
    if quantity == METRIC and record.metric:
        return record.metric.unit
    return {TIME: "s", SPEEDUP: "×"}.get(quantity) or series.unit or exhibit.unit


def _higher(exhibit: Exhibit, panels: Sequence[Panel]) -> bool:
    first = next((p.record for panel in panels for of in panel.curves.values() for p in of.values()), None)
    if exhibit.quantity(exhibit.series[0]) == METRIC and first and first.metric:
        return first.metric.direction == "higher"
    return exhibit.quantity(exhibit.series[0]) != TIME


def _axis(exhibit: Exhibit, panels: Sequence[Panel]) -> list[Any]:
    """Return the values of the axis: those of the source in its order, then what else was run, ascending."""
    there = {x for panel in panels for of in panel.curves.values() for x in of}
    more = sorted(there.difference(exhibit.values), key=lambda x: (isinstance(x, str), x))
    numbers = all(isinstance(x, int | float) for x in (*exhibit.values, *more))
    listed = [*exhibit.values, *more]
    return [x for x in (sorted(listed) if numbers else listed) if x in there]


def _gaps(exhibit: Exhibit, panels: Sequence[Panel], xs: Sequence[Any], told: Sequence[Missing]) -> Iterator[Missing]:
    """Yield where on the axis a series has no case at all, though the source or another series of a panel has."""
    for series in exhibit.series:
        known = {x for missing in told if missing.series == series.title for x in missing.xs}
        beside = [panel for panel in panels if series.title in panel.curves]
        there = {
            x for panel in beside for of in panel.curves.values() for x in of if x not in panel.curves[series.title]
        }
        absent = {x for x in exhibit.values if beside and not any(x in panel.curves[series.title] for panel in beside)}
        wanted = [*(x for x in exhibit.values if x not in xs), *xs]
        if gaps := [x for x in wanted if x in (there | absent) - known]:
            yield Missing(series.title, "no such case in this run", gaps)
