"""Plots of exhibits: curves over an axis and bars, a panel for each setting, with published values and the bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ...model.record import Interval
from .curves import WIDE
from .exhibit_points import Panel, Points
from .markdown import middle
from .plots import GREY, Plot, style, svg
from .points import LOOKS, look

#: Panels that one plot can show.
MOST_PANELS = 12
_BOUND = "problem bound"


@dataclass(frozen=True)
class Level:
    """A published value, or the two ends of a published range, of a series, on a device."""

    series: str
    device: str
    low: float
    high: float


@dataclass(frozen=True)
class Drawing:
    """What a plot shows beside its points: names and published levels; ``even``: where a speed-up is none."""

    name: str
    title: str
    axis: str
    unit: str
    levels: Sequence[Level]
    even: bool


def logarithmic(xs: Sequence[Any]) -> bool:
    """Whether an axis of these values is logarithmic."""
    numbers = [x for x in xs if isinstance(x, int | float)]
    return len(numbers) == len(xs) > 1 and min(numbers) > 0 and max(numbers) > WIDE * min(numbers)


def curves(points: Points, drawing: Drawing) -> Plot:
    """Return the plot of curves over an axis of numbers."""

    def draw(axes: Any, panel: Panel, looks: dict[str, tuple[str, str]]) -> None:
        for title, of in panel.curves.items():
            colour, shape = looks[title]
            xs = [x for x in points.xs if x in of]
            values = [of[x].value for x in xs]
            axes.errorbar(
                xs, [v.value for v in values], yerr=_ends(values), marker=shape, color=colour, markersize=4.5,
                linewidth=1.3, elinewidth=0.9, label=middle(title, 44),
            )  # fmt: skip
        for level in drawing.levels:
            for end in sorted({level.low, level.high}):
                axes.axhline(end, color=looks[level.series][0], linewidth=1.1, linestyle=":", label=_published(level))
        bounds = [(x, at) for x in points.xs if (at := panel.bound(x)) is not None]
        if bounds:
            axes.plot(*zip(*bounds, strict=True), "_--", color="black", linewidth=1.0, label=_BOUND)
        if logarithmic(points.xs):
            axes.set_xscale("log")
        plain_numbers(axes.xaxis)

    return _panels(points, drawing, draw, width=4.2)


def bars(points: Points, drawing: Drawing) -> Plot:
    """Return the plot of bars: groups of them over the values of an axis, or one for each series without one.

    Published values and ranges stand in outline: behind the last group, or at the place of their series.
    """
    titles, grouped = list(points.units), points.xs != [""]
    places: list[Any] = [*points.xs, *(["published"] if drawing.levels else [])] if grouped else titles
    wide = 0.8 / len(titles) if grouped else 0.6

    def at(place: Any, title: str) -> float:
        """Where the bar of a series stands."""
        number = titles.index(title)
        return places.index(place) + (number - (len(titles) - 1) / 2) * wide if grouped else number

    def draw(axes: Any, panel: Panel, looks: dict[str, tuple[str, str]]) -> None:
        for title in titles:
            of = panel.curves.get(title, {})
            xs = [x for x in points.xs if x in of]
            values = [of[x].value for x in xs]
            hatch = "..." if titles.index(title) >= len(LOOKS) else None
            axes.bar([at(x, title) for x in xs], [v.value for v in values], wide, yerr=_ends(values), hatch=hatch,
                     color=looks[title][0], label=middle(title, 44) if grouped else None, edgecolor="white",
                     error_kw={"elinewidth": 0.9})  # fmt: skip
        for x in points.xs if grouped else titles[:1]:
            if (bound := panel.bound(x if grouped else "")) is not None:
                middle_of, half = (places.index(x), 0.45) if grouped else ((len(titles) - 1) / 2, len(titles) / 2)
                axes.plot([middle_of - half, middle_of + half], [bound] * 2, color="black", linewidth=1.0,
                          linestyle="--", label=_BOUND)  # fmt: skip
        for level in drawing.levels:
            where, colour = at("published", level.series), looks[level.series][0]
            axes.bar(where, level.high - level.low, wide, bottom=level.low, facecolor="white", edgecolor=colour,
                     hatch="///", linewidth=1.2, alpha=0.9, label="published")  # fmt: skip
        axes.set_xticks(range(len(places)), [middle(place, 24) for place in places], rotation=30, ha="right",
                        fontsize=8)  # fmt: skip
        axes.set_xlim(-0.6, len(places) - 0.4)

    return _panels(points, drawing, draw, width=0.55 * len(places) * max(1.0, 0.25 * len(titles)))


def _panels(points: Points, drawing: Drawing, draw: Any, width: float) -> Plot:
    """Draw a panel for each setting, as many beside each other as there is room for, on one scale."""
    shown = points.panels[:MOST_PANELS]
    looks = {title: look(number) for number, title in enumerate(points.units)}
    across = 1 if len(shown) == 1 or width > 4.2 else 2
    down = math.ceil(len(shown) / across)
    with style():
        figure = Figure(figsize=(8.0, 0.9 + down * (3.0 if down == 1 else 2.3)), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, sharey=True)
        wide = _wide(shown, drawing)
        for number, axes in enumerate(grid.flat):
            if number >= len(shown):
                axes.set_visible(False)
                continue
            if drawing.even:
                axes.axhline(1.0, color=GREY, linewidth=0.8)
            draw(axes, shown[number], looks)
            if wide:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            plain_numbers(axes.yaxis)
            axes.set_title(middle(shown[number].name, 60), fontsize=9)
            axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
            axes.set_axisbelow(True)
            if number + across >= len(shown):
                axes.set_xlabel(middle(drawing.axis, 60))
        what = "speed-up" if drawing.even else middle(drawing.unit, 40)
        figure.supylabel(f"{what}, {'higher' if points.higher else 'lower'} is better", fontsize=9)
        _legend(figure, grid)
        content = svg(figure)
    caption = "Measured, with 95 % intervals."
    caption += " Dashed, black: the problem bound." if any(p.bound(x) for p in shown for x in points.xs) else ""
    caption += " Dotted, or hatched in outline: published." if drawing.levels else ""
    left = len(points.panels) - len(shown)
    caption += f" {left} settings more are in the table alone." if left else ""
    return Plot(f"{drawing.name}.svg", content, drawing.title, caption)


def _published(level: Level) -> str:
    return f"{middle(level.series, 30)}, {middle(level.device, 24)} (published)"


def _wide(panels: Sequence[Panel], drawing: Drawing) -> bool:
    values = [value for panel in panels for value in _values(panel)]
    values += [end for level in drawing.levels for end in (level.low, level.high)]
    return bool(values) and min(values) > 0 and max(values) > WIDE * min(values)


def _values(panel: Panel) -> Iterator[float]:
    for of in panel.curves.values():
        for point in of.values():
            yield point.value.value
            if point.bound is not None:
                yield point.bound


def _ends(values: Sequence[Interval]) -> list[list[float]]:
    return [[max(v.value - v.low, 0.0) for v in values], [max(v.high - v.value, 0.0) for v in values]]


def plain_numbers(axis: Any) -> None:
    """Write numbers out, without powers and offsets."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, grid: Any) -> None:
    """One legend for all panels, each name once."""
    entries: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
