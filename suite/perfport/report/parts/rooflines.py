"""The hierarchical roofline of one ladder: a roof per memory level and unit, a point per variant and level.

After S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009, with a roof and an operational intensity per level of the memory hierarchy as in
C. Yang, T. Kurth, S. Williams, "Hierarchical Roofline analysis for GPUs", Concurrency and Computation: Practice and
Experience 32(20), 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from ...model.work import Work
from .labels import label
from .ladder import Ladder
from .markdown import middle
from .plots import COLOURS, GREY, NAMES, Plot, shown, style, svg, where
from .quantities import scaled, significant
from .roofs import LEVELS, Level, Point, Roofs, measured_roofs, nominal_roofs, placed

#: Cases without a point that a caption names.
MOST_NAMED = 6
_PITCH = 0.23  # inches between the rows of the legend


@dataclass(frozen=True)
class _View:
    """What one plot shows. ``unit`` is that of operations, ``FLOP`` or ``op``."""

    work: Work
    unit: str
    measured: Roofs
    nominal: Roofs
    points: list[Point]

    @property
    def scale(self) -> tuple[float, str]:
        """Operations per second in the unit of the axis and of the legend, and its name."""
        tera = self.bottom_top[1] > 1e13
        return (1e12, f"T{self.unit}/s") if tera else (1e9, f"G{self.unit}/s")

    @property
    def left_right(self) -> tuple[float, float]:
        xs = [x for point in self.points for x in point.intensities.values()]
        xs += [self.work.intensity, *self.measured.ridges, *self.nominal.ridges]
        return min(xs) / 2.5, max(xs) * 4

    @property
    def bottom_top(self) -> tuple[float, float]:
        rates = [point.rate for point in self.points]
        reached = [slope * self.work.intensity for slope in self.measured.slopes.values()]
        peaks = [*self.measured.flats.values(), *self.nominal.flats.values()]
        return min(rates) / 2.5, max(rates + (peaks or reached)) * 2.2


def no_roofline(ladder: Ladder) -> str:
    """Return why a ladder has no roofline, as plain text; empty where it has one."""
    work = next((row.record.work for row in ladder.measured if row.record.work), None)
    if not ladder.measured:
        return "no case has a time"
    if work is None or not work.bytes:
        return "the problem states no useful work"
    if not (work.flops or work.integer_ops):
        return "the problem counts no operations: it moves bytes alone"
    measured = measured_roofs(ladder, shown(ladder.measured), work)
    return "" if measured.slopes or measured.flats else "no ceiling of this device was measured"


def roofline_plot(ladder: Ladder, name: str) -> Plot | None:
    """Return the roofline of a ladder; ``None`` for problems without operations and for devices without roofs."""
    work = next((row.record.work for row in ladder.measured if row.record.work), None)
    if work is None or no_roofline(ladder):
        return None
    rows = shown(ladder.measured)
    measured = measured_roofs(ladder, rows, work)
    points = [placed(row, ladder, work, measured.slopes) for row in rows]
    view = _View(work, "FLOP" if work.flops else "op", measured, nominal_roofs(ladder, work), points)
    with style():
        roofs = _roof_entries(view)
        lines = (len(roofs) + 2) // 3 + (len(rows) + 1) // 2 + 1
        below = _PITCH * (lines + 0.6)
        height = 4.55 + below
        figure = Figure(figsize=(8.0, height))
        axes = figure.add_axes((0.105, (0.55 + below) / height, 0.87, 3.85 / height))
        labels = _draw_roofs(axes, view)
        _draw_points(axes, view, labels)
        operation = "integer operation" if view.unit == "op" else "FLOP"
        axes.set_xlabel(f"operational intensity, useful {operation}s per byte of each level's traffic")
        axes.set_ylabel(f"useful {view.scale[1]} (measured)")
        _legend(figure, view, roofs, lines)
        content = svg(figure)
    return Plot(f"{name}-roofline.svg", content, f"Roofline: {where(ladder)}", _caption(ladder, view))


def _caption(ladder: Ladder, view: _View) -> str:
    records = [point.row.record for point in view.points]
    provenance = " or ".join(sorted({record.traffic.provenance for record in records if record.traffic}))
    several = len({term for point in view.points for term in point.intensities}) > 1
    sentences = ["Roofline. Solid roofs: measured ceilings, DRAM for this problem's mix of reads and writes."]
    if view.nominal.slopes or view.nominal.flats:
        sentences.append("Dashed: datasheet (published).")
    if provenance:
        at = "a marker per memory level, joined by a line" if several else "at its DRAM traffic"
        sentences.append(f"Each variant stands at its measured rate, {at} ({provenance} traffic).")
    if not all(point.intensities for point in view.points):
        sentences.append("Cross: no traffic known, placed at the compulsory intensity.")
    warm = any(record.timing and record.timing.cache == "warm" for record in records)
    if warm:
        sentences.append("Warm cache: DRAM bounds nothing, and there is no marker for it.")
    meets = "" if warm else "; where it meets the DRAM roof is the problem bound"
    sentences.append(f"Dotted: the problem's compulsory intensity{meets}.")
    without = [f"{row.label} ({row.record.status.value})" for row in ladder.rows if row not in ladder.measured]
    if without:
        more = f" and {len(without) - MOST_NAMED} more" if len(without) > MOST_NAMED else ""
        sentences.append(f"No point, because it has no time: {', '.join(without[:MOST_NAMED])}{more}.")
    if left := len(ladder.measured) - len(view.points):
        sentences.append(f"The {len(view.points)} fastest of {left + len(view.points)} cases are drawn.")
    return " ".join(sentences)


def _draw_roofs(axes: Any, view: _View) -> list[tuple[float, float]]:
    """Draw roofs, their names and the axes; return where the names are, as display coordinates to keep clear."""
    (left, right), (bottom, top), scale = view.left_right, view.bottom_top, view.scale[0]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom / scale, top / scale)
    for roofs, line, colour in ((view.nominal, "--", GREY), (view.measured, "-", "black")):
        peak = max(roofs.flats.values(), default=top)
        fastest = max(roofs.slopes.values(), default=0.0)
        for term, slope in roofs.slopes.items():
            width = 1.8 if term == "dram" and line == "-" else 1.1
            ends = np.array([left, peak / slope])
            axes.plot(ends, slope * ends / scale, line, color=colour, linewidth=width, zorder=2)
        for flat in roofs.flats.values():
            start = max(left, flat / fastest) if fastest else left
            width = 1.8 if line == "-" else 1.1
            axes.plot([start, right], [flat / scale] * 2, line, color=colour, linewidth=width, zorder=2)
    axes.axvline(view.work.intensity, linestyle=":", color=GREY, linewidth=1.4, zorder=1)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axis, span in ((axes.xaxis, right / left), (axes.yaxis, top / bottom)):
        axis.set_major_formatter(plain)
        if span > 1e3:
            axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(plain if span < 15 else NullFormatter())
    axes.tick_params(which="minor", labelsize=8)
    axes.grid(True, which="major", color="#E5E5E5", linewidth=0.6, zorder=0)
    return _name_roofs(axes, view)


def _name_roofs(axes: Any, view: _View) -> list[tuple[float, float]]:
    """Write the name of each measured roof along it, below its upper end; neighbours are staggered."""
    (left, right), (bottom, top) = view.left_right, view.bottom_top
    roofs, scale, dots = view.measured, view.scale[0], axes.figure.dpi / 72
    where: list[tuple[float, float]] = []

    def write(name: str, x: float, y: float, angle: float) -> None:
        direction = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        offset = 6 * np.array([-direction[1], direction[0]])
        axes.annotate(
            name, (x, y / scale), xytext=tuple(np.round(offset, 3)), textcoords="offset points", ha="right",
            va="center", rotation=round(angle, 2), rotation_mode="anchor", fontsize=8.5, zorder=3,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )  # fmt: skip
        end = np.array(axes.transData.transform((x, y / scale))) + offset * dots
        where.extend(tuple(end - direction * step * dots) for step in range(0, 6 * len(name), 6))

    for name, flat in roofs.flats.items():
        write(label(name), right / (right / left) ** 0.01, flat, 0.0)
    peak = max(roofs.flats.values(), default=top / 2.2)
    back, before = 25.0, 0.0
    for term, slope in sorted(roofs.slopes.items(), key=lambda item: -item[1]):
        start, end = max(left, bottom / slope), min(right, peak / slope)
        if start >= end:
            continue
        back = back + 75.0 if before and before / slope < 1.7 else 25.0
        before = slope
        (x0, y0), (x1, y1) = (axes.transData.transform((at, slope * at / scale)) for at in (start, end))
        x = end / (end / start) ** min(back * dots / np.hypot(x1 - x0, y1 - y0), 0.9)
        write(label(term), x, slope * x, float(np.degrees(np.arctan2(y1 - y0, x1 - x0))))
    return where


def _draw_points(axes: Any, view: _View, labels: list[tuple[float, float]]) -> None:
    """Draw the markers of each variant, then number the first where no number covers anything else."""
    markers: list[tuple[float, float]] = []
    firsts: list[tuple[float, float]] = []
    for point in view.points:
        colour, rate = COLOURS[point.row.record.identity.role], point.rate / view.scale[0]
        xs = list(point.intensities.values())
        firsts.append((xs[0] if xs else view.work.intensity, rate))
        if len(xs) > 1:
            axes.plot([min(xs), max(xs)], [rate, rate], color=colour, linewidth=0.8, alpha=0.7, zorder=3.5)
            markers += [(float(x), rate) for x in np.geomspace(min(xs), max(xs), 60)]
        for level in reversed(LEVELS):
            if level.term in point.intensities:
                _mark(axes, point.intensities[level.term], rate, level, colour)
                markers.append((point.intensities[level.term], rate))
        if not xs:
            axes.plot(*firsts[-1], "x", color=colour, markersize=7, markeredgewidth=1.8, zorder=4)
            markers.append(firsts[-1])
    _number(axes, firsts, markers, labels)


def _number(
    axes: Any, firsts: list[tuple[float, float]], markers: list[tuple[float, float]], labels: list[tuple[float, float]]
) -> None:
    """Number the points; those on top of each other share one label."""
    # Not by adjustText 1.4: it gave other places each time and wrote the numbers of close points over each other.
    scale, corners = axes.figure.dpi / 72, axes.bbox.extents / (axes.figure.dpi / 72)

    def in_points(at: tuple[float, float]) -> tuple[float, float]:
        x, y = axes.transData.transform(at)
        return float(x) / scale, float(y) / scale

    shared: list[tuple[tuple[float, float], list[str]]] = []
    for number, first in enumerate(map(in_points, firsts), 1):
        near = (names for (x, y), names in shared if abs(x - first[0]) < 5 and abs(y - first[1]) < 5)
        if (names := next(near, None)) is not None:
            names.append(str(number))
        else:
            shared.append((first, [str(number)]))
    around = [in_points(marker) for marker in markers]
    taken = [(x / scale, y / scale, 3.0, 5.0) for x, y in labels]
    for (px, py), names in shared:
        name = ", ".join(names)
        half = 0.5 + 2.9 * len(name)
        dx, dy = _free((px, py), half, around, taken, corners)
        taken.append((px + dx, py + dy, half, 5.5))
        away = np.hypot(max(abs(dx) - half + 3.4, 0.0), dy)
        leader = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkA": 4, "shrinkB": 3}
        axes.annotate(
            name, firsts[int(names[0]) - 1], xytext=(dx, dy), textcoords="offset points", ha="center", va="center",
            fontsize=9, fontweight="bold", zorder=5, arrowprops=leader if away > 15 else None,
        )  # fmt: skip


def _mark(axes: Any, x: float, y: float, level: Level, colour: str) -> None:
    """Draw DRAM, the main level, large and filled; nearer levels small and hollow, above it where they coincide."""
    main = level.term == "dram"
    axes.plot(
        [x], [y], level.marker, color=colour, markersize=7 if main else 5, linestyle="none", zorder=4 if main else 4.5,
        markerfacecolor=colour if main else "white", markeredgewidth=1.2,
    )  # fmt: skip


def _free(
    point: tuple[float, float], half: float, markers: list[tuple[float, float]],
    taken: list[tuple[float, float, float, float]], box: tuple[float, float, float, float],
) -> tuple[float, float]:  # fmt: skip
    """Return the nearest offset, to the right first, at which a label is free of markers and other labels.

    All lengths are in points; ``half`` is half the label's width, and ``taken`` holds the centres and half sizes of
    the others.
    """
    for radius in (13, 20, 28, 37, 47, 58, 70):
        for angle in (0, 180, 30, 330, 150, 210, 60, 300, 120, 240, 90, 270):
            across = round(float(np.cos(np.radians(angle))), 6)
            dx = radius * across + float(np.sign(across)) * (half - 3.4)
            dy = radius * float(np.sin(np.radians(angle)))
            x, y = point[0] + dx, point[1] + dy
            inside = box[0] + half + 4 < x < box[2] - half - 4 and box[1] + 6 < y < box[3] - 6
            clear = all(abs(x - mx) > half + 6.5 or abs(y - my) > 9 for mx, my in markers)
            clear = clear and all(abs(x - tx) > half + w + 1 or abs(y - ty) > h + 5.5 for tx, ty, w, h in taken)
            if inside and clear:
                return round(dx, 3), round(dy, 3)
    return 13.0 + half - 3.4, 0.0


def _roof_entries(view: _View) -> list[tuple[Any, str]]:
    """Return the legend of the roofs: how each is drawn, and what it is."""
    style_of: dict[str, Any] = {"color": "black", "linewidth": 1.8}
    markers = {level.term: level.marker for level in LEVELS}
    entries: list[tuple[Any, str]] = []
    drawn = {term for point in view.points for term in point.intensities}
    for term, slope in view.measured.slopes.items():
        main = term == "dram"
        marker: dict[str, Any] = {
            "marker": markers[term], "markersize": 7 if main else 5, "markerfacecolor": "black" if main else "white",
        } if term in drawn else {}  # fmt: skip
        entries.append(
            ({**style_of, "linewidth": 1.8 if main else 1.1, **marker}, f"{label(term)} {scaled(slope, 'B/s')}")
        )
    for name, flat in view.measured.flats.items():
        entries.append((style_of, f"{label(name)} {scaled(flat, f'{view.unit}/s')}"))
    nominal = [scaled(slope, "B/s") for slope in view.nominal.slopes.values()]
    nominal += [scaled(flat, f"{view.unit}/s") for flat in view.nominal.flats.values()]
    if nominal:
        entries.append(({"color": GREY, "linewidth": 1.1, "linestyle": "--"}, f"datasheet {', '.join(nominal)}"))
    compulsory = f"compulsory {significant(view.work.intensity)} {view.unit}/B"
    entries.append(({"color": GREY, "linewidth": 1.4, "linestyle": ":"}, compulsory))
    return entries


def _legend(figure: Figure, view: _View, roofs: list[tuple[Any, str]], lines: int) -> None:
    """List the roofs, the numbered variants and the roles below the axes."""
    pitch = _PITCH / figure.get_figheight()
    top = pitch * (lines - 0.1)

    def draw(x: float, y: float, wide: float, **how: Any) -> None:
        figure.add_artist(Line2D([x, x + wide / 2, x + wide], [y] * 3, markevery=[1], **how))

    for i, (how, entry) in enumerate(roofs):
        x, y = 0.03 + 0.325 * (i % 3), top - pitch * (i // 3)
        draw(x, y, 0.045, **how)
        figure.text(x + 0.055, y, entry, fontsize=8.5, va="center")
    top -= pitch * ((len(roofs) + 2) // 3 + 0.3)
    half = (len(view.points) + 1) // 2
    for i, point in enumerate(view.points):
        x, y = 0.03 + 0.49 * (i // half), top - pitch * (i % half)
        colour = COLOURS[point.row.record.identity.role]
        draw(x, y, 0.0, marker="o" if point.intensities else "x", color=colour, markersize=6, linestyle="none")
        figure.text(x + 0.04, y, str(i + 1), fontsize=9, fontweight="bold", va="center", ha="right")
        named = f"{middle(point.row.label, 34)}  {significant(point.rate / view.scale[0])}"
        figure.text(x + 0.05, y, named, fontsize=9, va="center")
    y = pitch * 0.5
    figure.text(0.03, y, f"useful {view.scale[1]};", fontsize=8.5, color=GREY, va="center")
    used = [role for role in NAMES if any(point.row.record.identity.role == role for point in view.points)]
    x = 0.17
    for role in used:
        draw(x, y, 0.025, color=COLOURS[role], linewidth=5, solid_capstyle="butt")
        figure.text(x + 0.035, y, NAMES[role], fontsize=8.5, color=GREY, va="center")
        x += 0.075 + 0.0105 * len(NAMES[role])
