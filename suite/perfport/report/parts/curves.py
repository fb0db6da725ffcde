"""Curves of one problem on one device along a parameter or a tunable, with the places where a peer is overtaken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from ...model.names import settings
from ...model.untrusted import slug
from ...store.comparable import is_peer
from ...store.ratios import is_ranked
from .ladder import Ladder, Row
from .markdown import middle
from .plots import Plot, plain_numbers, style, svg
from .points import look
from .quantities import significant
from .sweeps import LEAST_VALUES, crossings

#: Curves that one plot can show, and peers among them.
MOST, MOST_PEERS = 7, 2
#: Plots of one problem: those with the most values.
MOST_PLOTS = 4
#: Of a problem of more ladders one plot is drawn.
MANY = 200
#: An axis whose ends are so many times apart is logarithmic.
WIDE = 20


#: Device, parameter or tunable, precision class.
Axis = tuple[str, str, str]


@dataclass(frozen=True)
class Point:
    """A case along an axis: its value there, and which curve and plot it belongs to."""

    x: float
    row: Row
    curve: str
    at: tuple[str, str, str, str]  # device, axis, precision class, what else is held

    @property
    def y(self) -> float:
        """The metric."""
        assert self.row.record.metric
        return self.row.record.metric.value


def curve_plots(ladders: Sequence[Ladder], name: str) -> list[Plot]:
    """Return the plots of one problem: of all that vary along one axis alone, those with the most values.

    Parameters
    ----------
    ladders : sequence of Ladder
        Of one problem, any settings and devices.
    name : str
        Of the files, without suffix.
    """
    alone = [ladder for ladder in ladders if not ladder.several]
    axes = _axes(alone)
    groups: dict[tuple[str, str, str, str], list[Point]] = {}
    for ladder in alone:
        for point in _points(ladder, axes):
            groups.setdefault(point.at, []).append(point)
    values = {at: len({point.x for point in held}) for at, held in groups.items()}
    best: dict[Axis, tuple[str, str, str, str]] = {}  # of one device, axis and class: that with the most values
    for at in sorted(at for at, number in values.items() if number >= LEAST_VALUES):
        if at[:3] not in best or values[at] > values[best[at[:3]]]:
            best[at[:3]] = at
    most = MOST_PLOTS if len(ladders) <= MANY else 1
    chosen = sorted(best.values(), key=lambda at: (-values[at], at))[:most]
    drawn = [_plot(groups[at], at, f"{name}-{slug(*at[:3])}") for at in chosen]
    return [plot for plot in drawn if plot]


def _axes(ladders: Sequence[Ladder]) -> set[Axis]:
    """Return the parameters and tunables that take enough numbers on a device to be worth a closer look."""
    values: dict[Axis, set[float]] = {}
    for ladder in ladders:
        tunables = [row.record.identity.tunables for row in ladder.measured]
        for given in (ladder.parameters, *tunables):
            for axis, value in given.items():
                if _is_number(value):
                    values.setdefault((ladder.site, axis, ladder.precision), set()).add(float(value))
    return {axis for axis, numbers in values.items() if len(numbers) >= LEAST_VALUES}


def _points(ladder: Ladder, axes: set[Axis]) -> Iterator[Point]:
    ranked = [row for row in ladder.measured if is_ranked(row.record) and row.record.metric]
    for axis, value in ladder.parameters.items():
        if (key := (ladder.site, axis, ladder.precision)) in axes and _is_number(value):
            held = f"{ladder.preset or ''} {_without(ladder.parameters, axis)}".strip()
            yield from (Point(float(value), row, row.label, (*key, held)) for row in ranked)
    for row in ranked:
        identity = row.record.identity
        for axis, value in identity.tunables.items():
            if (key := (ladder.site, axis, ladder.precision)) in axes and _is_number(value):
                curve = f"{identity.variant} {_without(identity.tunables, axis)}".strip()
                yield Point(float(value), row, curve, (*key, ladder.setting))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without(values: Mapping[str, Any], axis: str) -> str:
    return settings({name: value for name, value in values.items() if name != axis})


def _plot(points: Sequence[Point], at: tuple[str, str, str, str], name: str) -> Plot | None:
    site, axis, precision, held = at
    metric = points[0].row.record.metric
    curves: dict[str, dict[float, Point]] = {}
    for point in points:
        known = curves.setdefault(point.curve, {}).get(point.x)
        if known is None or _better(point, known):
            curves[point.curve][point.x] = point
    long = {curve: of for curve, of in curves.items() if len(of) >= LEAST_VALUES}
    if metric is None or not long:
        return None
    ordered = sorted(long, key=lambda curve: (_typical(long[curve]), curve))
    peers = [curve for curve in ordered if is_peer(next(iter(long[curve].values())).row)][:MOST_PEERS]
    own = [curve for curve in ordered if not is_peer(next(iter(long[curve].values())).row)][: MOST - len(peers)]
    with style():
        figure = Figure(figsize=(8.0, 3.9), layout="constrained")
        axes = figure.add_subplot()
        for number, curve in enumerate([*own, *peers]):
            colour, shape = look(number)
            along = sorted(long[curve].items())
            axes.plot(
                [x for x, _ in along], [point.y for _, point in along], marker=shape, color=colour, markersize=5,
                linewidth=1.4, linestyle="--" if curve in peers else "-",
                label=middle(curve, 44) + (" (peer)" if curve in peers else ""),
            )  # fmt: skip
        _scales(axes, [point for curve in (*own, *peers) for point in long[curve].values()])
        axes.set_xlabel(middle(axis, 60))
        axes.set_ylabel(f"{middle(metric.unit, 30)} (measured), {metric.direction} is better")
        axes.grid(color="#E5E5E5", linewidth=0.6)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8.5)
        content = svg(figure)
    where = f"{points[0].row.subject.workload}/{points[0].row.subject.problem} on {site}, {precision}, {held}"
    caption = f"The fastest of {len(long)} curves over {axis}, dashed: peers (measured)." if len(long) > MOST else (
        f"Curves over {axis}, dashed: peers (measured)."
    )  # fmt: skip
    caption += "".join(_crossed(own[0], peer, long, axis) for peer in peers) if own else ""
    return Plot(f"{name}.svg", content, f"Curves over {axis}: {where}", f"{caption} {where}.")


def _better(one: Point, other: Point) -> bool:
    metric = one.row.record.metric
    return one.y > other.y if metric and metric.direction == "higher" else one.y < other.y


def _typical(curve: Mapping[float, Point]) -> float:
    """The geometric mean of a curve, less where it is better."""
    metric = next(iter(curve.values())).row.record.metric
    mean = math.fsum(math.log(max(point.y, 1e-300)) for point in curve.values()) / len(curve)
    return -mean if metric and metric.direction == "higher" else mean


def _crossed(own: str, peer: str, curves: Mapping[str, Mapping[float, Point]], axis: str) -> str:
    """Say where the best curve overtakes a peer's or falls behind: linear in the logarithm of the ratio."""
    both = sorted(curves[own].keys() & curves[peer].keys())
    higher = all((m := point.row.record.metric) and m.direction == "higher" for point in curves[own].values())
    ratios = [curves[own][x].y / curves[peer][x].y for x in both if curves[peer][x].y and curves[own][x].y]
    if len(ratios) < len(both):
        return ""
    faster = [ratio if higher else 1 / ratio for ratio in ratios]
    said = [f"{'overtakes' if up else 'falls behind'} {peer} at {axis} = {significant(x)}"
            for x, up in crossings(list(zip(both, faster, strict=True)))]  # fmt: skip
    return f" {own} {', '.join(said)}." if said else ""


def _scales(axes: Any, points: Sequence[Point]) -> None:
    """Take a logarithmic scale for what spans more than a decade or so, with plain numbers."""
    for values, set_scale, axis in (
        ([point.x for point in points], axes.set_xscale, axes.xaxis),
        ([point.y for point in points], axes.set_yscale, axes.yaxis),
    ):
        if min(values) > 0 and max(values) > WIDE * min(values):
            set_scale("log")
            plain_numbers(axis)
