"""The plots of one ladder: its roofline, and the share of the problem bound that each variant reaches.

Figures are drawn without pyplot, with a fixed hash salt and without a date: the same records give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from ..record import Interval, Record, Status
from ..roofline import memory_seconds
from ..work import Work
from .ladder import Ladder, Row, is_measured, time_of
from .markdown import line, middle
from .quantities import impossible, percent, significant

#: Okabe and Ito's palette: told apart by readers with any of the common colour-vision deficiencies.
COLOURS = {"rung": "#0072B2", "control": "#E69F00", "beyond": "#009E73", "peer": "#CC79A7"}
MARKERS = {"rung": "o", "control": "s", "beyond": "^", "peer": "D"}
NAMES = {"rung": "rung", "control": "control", "beyond": "beyond the source", "peer": "peer"}
#: Variants that one plot can show; of more, the fastest are drawn and the tables hold the rest.
MOST = 24
_GREY = "#595959"
_STYLE: Any = {
    "svg.hashsalt": "perfport", "svg.fonttype": "none", "font.size": 10, "font.family": "DejaVu Sans",
    "axes.spines.top": False, "axes.spines.right": False, "path.simplify": False, "axes.unicode_minus": False,
    "text.parse_math": False,
}  # fmt: skip


#: Operational intensity, useful FLOP/s, and whether the intensity comes from the variant's own traffic.
_Point = tuple[float, float, bool]


@dataclass(frozen=True)
class Plot:
    """One drawn plot: file name without folder, its content, alternative text and caption."""

    name: str
    svg: bytes
    alt: str
    caption: str


@contextmanager
def _style() -> Iterator[None]:
    """Draw by matplotlib's own defaults and ours, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": "perfport"})
    return buffer.getvalue()


def _shown(rows: list[Row]) -> list[Row]:
    """The rows that a plot has room for, in ladder order."""
    fastest = sorted(rows, key=lambda row: (not is_measured(row.record), _speed_key(row.record)))[:MOST]
    kept = {id(row) for row in fastest}
    return [row for row in rows if id(row) in kept]


def _speed_key(record: Record) -> float:
    return time_of(record) if is_measured(record) else 0.0


def _where(ladder: Ladder) -> str:
    return f"{ladder.workload}/{ladder.problem} ({line(ladder.setting, 60)}) on {ladder.site}, {ladder.precision}"


def share_plot(ladder: Ladder, name: str) -> Plot | None:
    """Return the bar chart of shares of the problem bound; ``None`` where no record has one."""
    rows = _shown(ladder.rows)
    if not any(row.record.problem_bound for row in rows if is_measured(row.record)):
        return None
    with _style():
        figure = Figure(figsize=(8.0, 1.35 + 0.3 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        bounds = [row.record.problem_bound for row in rows if is_measured(row.record)]
        reach = max([1.0, *(_drawn(bound.share) for bound in bounds if bound)])
        for y, row in enumerate(rows):
            _bar(axes, y, row, reach)
        axes.axvline(100, color="black", linewidth=1.0)
        axes.set_yticks(range(len(rows)), [middle(row.label, 44) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, 100 * reach * 1.24)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 100 * reach * 1.01])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("share of the problem bound, % (measured ceilings; whisker: 95 % interval)")
        _legend_roles(figure, rows)
        svg = _svg(figure)
    left = len(ladder.rows) - len(rows)
    caption = "Share of the problem bound under measured ceilings, with 95 % intervals (measured). Line: the bound."
    if any(row.record.status == Status.CONTENDED for row in rows):
        caption += " Hatched: contended."
    caption += f" The {len(rows)} fastest of {len(ladder.rows)} cases are drawn." if left else ""
    return Plot(f"{name}-share.svg", svg, f"Share of the problem bound: {_where(ladder)}", caption)


def _bounded(row: Row) -> bool:
    return is_measured(row.record) and row.record.problem_bound is not None


def _drawn(share: Interval) -> float:
    """How far a bar may reach: one far above the bound is cut, its label says how far it goes."""
    return min(max(share.value, min(share.high, 1.1 * share.value)), 1.5)


def _bar(axes: Any, y: int, row: Row, reach: float) -> None:
    record = row.record
    if not _bounded(row):
        label = record.status.value if not is_measured(record) else "no bound"
        axes.text(100 * reach * 0.01, y, label, va="center", color=_GREY, style="italic")
        return
    assert record.problem_bound
    found = record.problem_bound.share
    value, low, high = (min(max(v, 0.0), reach) for v in (found.value, found.low, found.high))
    contended = record.status == Status.CONTENDED
    wrong = impossible(record.problem_bound)
    axes.barh(
        y, 100 * value, height=0.68, color="white" if contended else COLOURS[record.identity.role],
        edgecolor="#D55E00" if wrong else COLOURS[record.identity.role], hatch="///" if contended else None,
        linewidth=2.5 if wrong else 0.8,
    )  # fmt: skip
    ends = [[100 * max(value - low, 0.0)], [100 * max(high - value, 0.0)]]
    axes.errorbar(100 * value, y, xerr=ends, color="black", capsize=3, linewidth=1.2)
    shown = percent(found.value) + (" ERROR" if wrong else "")
    axes.text(100 * max(value, high) + 1.2 * reach, y, shown, va="center", color="#B04300" if wrong else "black")


def _legend_roles(figure: Figure, rows: Sequence[Row]) -> None:
    from matplotlib.patches import Patch

    used = [role for role in NAMES if any(row.record.identity.role == role for row in rows)]
    if len(used) > 1:
        handles = [Patch(color=COLOURS[role], label=NAMES[role]) for role in used]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(used), frameon=False, fontsize=9)


@dataclass(frozen=True)
class _Roof:
    bandwidth: float | None
    peak: float | None

    def at(self, intensity: np.ndarray) -> np.ndarray:
        slope = intensity * self.bandwidth if self.bandwidth else np.full_like(intensity, np.inf)
        return np.minimum(slope, self.peak) if self.peak else slope


def _roof(ceilings: dict[str, Interval], work: Work) -> _Roof:
    """Peak, and the bandwidth that the ceilings give for the problem's own mix of reads and writes."""
    moving = memory_seconds(work.read_bytes, work.write_bytes, ceilings)
    peak = ceilings.get("fp32_fma")
    return _Roof(work.bytes / moving if moving else None, peak.value if peak else None)


def _exact(value: float | None) -> Interval | None:
    return Interval(value=value, low=value, high=value) if value else None


def _measured_roof(ladder: Ladder, work: Work) -> _Roof:
    stored = ladder.run.environment.get("ceilings") or {}
    found: dict[str, Interval] = {}
    if len(ladder.devices) == 1 and ladder.devices[0] in stored:
        entries = stored[ladder.devices[0]].get("entries") or {}
        found = {k: Interval(value=e["value"], low=e["low"], high=e["high"]) for k, e in sorted(entries.items())}
    else:
        found = next((row.record.ceilings for row in ladder.measured if row.record.ceilings), {})
    return _roof(found, work)


def _datasheet_roof(ladder: Ladder, work: Work) -> _Roof:
    profile = (ladder.run.environment.get("profiles") or {}).get(ladder.devices[0]) or {}
    if len(ladder.devices) != 1:
        return _Roof(None, None)
    bandwidth, peak = _exact(profile.get("bandwidth")), _exact(profile.get("fp32"))
    found = {"dram_read": bandwidth} if bandwidth else {}
    return _roof({**found, **({"fp32_fma": peak} if peak else {})}, work)


def _intensity(record: Record, work: Work) -> tuple[float, bool]:
    """Useful operations per DRAM byte that the variant causes, and whether its traffic is known."""
    moved = record.traffic.dram_read + record.traffic.dram_write if record.traffic else 0.0
    return (work.flops / moved, True) if moved else (work.intensity, False)


def roofline_plot(ladder: Ladder, name: str) -> Plot | None:
    """Return the roofline of a ladder; ``None`` for problems without floating-point work and devices without roofs."""
    work = next((row.record.work for row in ladder.measured if row.record.work), None)
    if work is None or not work.flops or not work.bytes:
        return None
    measured, nominal = _measured_roof(ladder, work), _datasheet_roof(ladder, work)
    if not (measured.bandwidth or measured.peak):
        return None
    rows = _shown(ladder.measured)
    points = []
    for row in rows:
        x, known = _intensity(row.record, work)
        points.append((x, work.flops / time_of(row.record), known))
    with _style():
        legend_rows = (len(rows) + 1) // 2 + 1
        height = 4.6 + 0.23 * legend_rows
        figure = Figure(figsize=(8.0, height))
        axes = figure.add_axes((0.105, (0.62 + 0.23 * legend_rows) / height, 0.87, 3.85 / height))
        _draw_roofs(axes, measured, nominal, work, points)
        _draw_points(axes, rows, points)
        axes.set_xlabel("operational intensity, useful FLOP per byte of DRAM traffic")
        axes.set_ylabel("useful GFLOP/s (measured)")
        _roof_legend(axes)
        _point_legend(figure, rows, points, 0.23 / height, legend_rows)
        svg = _svg(figure)
    counted = sorted({row.record.traffic.provenance for row in rows if row.record.traffic})
    caption = (
        "Roofline. Solid roofs: measured ceilings, for this problem's mix of reads and writes; dashed: datasheet "
        "(published). "
        f"Markers: measured rate at the {' or '.join(counted) or 'compulsory'} DRAM traffic of each variant"
        f"{'; hollow: no traffic model, placed at the compulsory intensity' if not all(p[2] for p in points) else ''}. "
        "Dotted: the problem's compulsory intensity; where it meets the solid roof is the problem bound."
    )
    left = len(ladder.measured) - len(rows)
    caption += f" The {len(rows)} fastest of {len(ladder.measured)} cases are drawn." if left else ""
    return Plot(f"{name}-roofline.svg", svg, f"Roofline: {_where(ladder)}", caption)


def _draw_roofs(axes: Any, measured: _Roof, nominal: _Roof, work: Work, points: list[_Point]) -> None:
    ridges = [roof.peak / roof.bandwidth for roof in (measured, nominal) if roof.peak and roof.bandwidth]
    xs = [x for x, _, _ in points] + [work.intensity, *ridges]
    left, right = min(xs) / 2.5, max(xs) * 4
    grid = np.geomspace(left, right, 200)
    grid = np.sort(np.concatenate([grid, ridges]))
    lowest = min(y for _, y, _ in points)
    roofs = [roof for roof in (measured, nominal) if roof.peak or roof.bandwidth]
    top = max([float(roof.at(grid).max()) for roof in roofs] + [y for _, y, _ in points])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(lowest / 2.5 / 1e9, top * 2.2 / 1e9)
    for roof, style, colour, label in ((measured, "-", "black", "measured"), (nominal, "--", _GREY, "datasheet")):
        if not (roof.bandwidth or roof.peak):
            continue
        parts = [f"{significant(roof.bandwidth / 1e9)} GB/s"] if roof.bandwidth else []
        parts += [f"{significant(roof.peak / 1e9)} GFLOP/s"] if roof.peak else []
        width = 1.8 if style == "-" else 1.2
        name = f"{label}: {', '.join(parts)}"
        axes.plot(grid, roof.at(grid) / 1e9, style, color=colour, linewidth=width, label=name, zorder=2)
        if roof.peak and roof.bandwidth:
            ridge = roof.peak / roof.bandwidth
            axes.plot([ridge], [roof.peak / 1e9], marker="v", color=colour, markersize=6, zorder=2)
            if style == "-":
                axes.annotate(
                    f"ridge {significant(ridge)}", (ridge, roof.peak / 1e9), xytext=(0, 7), textcoords="offset points",
                    ha="center", fontsize=8.5,
                )  # fmt: skip
    axes.axvline(
        work.intensity, linestyle=":", color=_GREY, linewidth=1.4, zorder=1,
        label=f"compulsory: {significant(work.intensity)} FLOP/B",
    )  # fmt: skip
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axis, span in ((axes.xaxis, right / left), (axes.yaxis, 5.5 * top / lowest)):
        axis.set_major_formatter(plain)
        if span > 1e3:
            axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(plain if span < 15 else NullFormatter())
    axes.tick_params(which="minor", labelsize=8)
    axes.grid(True, which="major", color="#E5E5E5", linewidth=0.6, zorder=0)


def _draw_points(axes: Any, rows: list[Row], points: list[_Point]) -> None:
    """Draw markers, then number them where no number covers a marker or another number."""
    for row, (x, y, known) in zip(rows, points, strict=True):
        role = row.record.identity.role
        axes.plot(
            [x], [y / 1e9], MARKERS[role], color=COLOURS[role], markersize=7, zorder=4, linestyle="none",
            markerfacecolor=COLOURS[role] if known else "white", markeredgewidth=1.3,
        )  # fmt: skip
    where = [tuple(axes.transData.transform((x, y / 1e9))) for x, y, _ in points]
    scale = axes.figure.dpi / 72
    x0, y0, x1, y1 = axes.bbox.extents
    taken: list[tuple[float, float]] = []
    for number, (px, py) in enumerate(where, 1):
        dx, dy = _free(px, py, where, taken, scale, (x0, y0, x1, y1))
        taken.append((px + dx * scale, py + dy * scale))
        far = (dx * dx + dy * dy) ** 0.5 > 15
        x, y, _ = points[number - 1]
        leader = {"arrowstyle": "-", "color": _GREY, "linewidth": 0.7, "shrinkA": 4, "shrinkB": 3}
        axes.annotate(
            str(number), (x, y / 1e9), xytext=(dx, dy), textcoords="offset points", ha="center", va="center",
            fontsize=9, fontweight="bold", zorder=5, arrowprops=leader if far else None,
        )  # fmt: skip


def _free(
    px: float, py: float, markers: list[tuple[float, ...]], taken: list[tuple[float, float]], scale: float,
    box: tuple[float, float, float, float],
) -> tuple[float, float]:  # fmt: skip
    """Return the nearest offset in points, to the right first, at which a number is free of markers and numbers."""
    for radius in (13, 20, 28, 37, 47, 58, 70):
        for angle in (0, 180, 30, 330, 150, 210, 60, 300, 120, 240, 90, 270):
            dx, dy = radius * float(np.cos(np.radians(angle))), radius * float(np.sin(np.radians(angle)))
            x, y = px + dx * scale, py + dy * scale
            inside = box[0] + 8 * scale < x < box[2] - 8 * scale and box[1] + 6 * scale < y < box[3] - 6 * scale
            clear = all(abs(x - mx) > 10 * scale or abs(y - my) > 9 * scale for mx, my in markers)
            clear = clear and all(abs(x - tx) > 15 * scale or abs(y - ty) > 11 * scale for tx, ty in taken)
            if inside and clear:
                return round(dx, 3), round(dy, 3)
    return 13.0, 0.0


def _roof_legend(axes: Any) -> None:
    axes.legend(loc="lower right", fontsize=8.5, frameon=True, framealpha=0.9, edgecolor="none")


def _point_legend(figure: Figure, rows: list[Row], points: list[_Point], pitch: float, legend_rows: int) -> None:
    """List the numbered variants below the axes, in two columns."""
    from matplotlib.lines import Line2D

    half = (len(rows) + 1) // 2
    top = pitch * (legend_rows - 0.6)
    for i, (row, (_, rate, known)) in enumerate(zip(rows, points, strict=True)):
        x, y = 0.03 + 0.49 * (i // half), top - pitch * (i % half)
        role = row.record.identity.role
        colour = COLOURS[role]
        face = colour if known else "white"
        marker = MARKERS[role]
        figure.add_artist(Line2D([x], [y], marker=marker, color=colour, markerfacecolor=face, ls="none", markersize=6))
        figure.text(x + 0.04, y, str(i + 1), fontsize=9, fontweight="bold", va="center", ha="right")
        figure.text(x + 0.05, y, f"{middle(row.label, 34)}  {significant(rate / 1e9)}", fontsize=9, va="center")
    used = [role for role in NAMES if any(row.record.identity.role == role for row in rows)]
    key = ", ".join({"rung": "circle: rung", "control": "square: control", "beyond": "triangle: beyond the source",
                     "peer": "diamond: peer"}[role] for role in used)  # fmt: skip
    figure.text(0.03, pitch * 0.5, f"useful GFLOP/s; {key}", fontsize=8.5, color=_GREY, va="center")
