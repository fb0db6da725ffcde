"""The roofline of an exhibit: roofs of the source's devices and of the run's, and what series reach along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...machine.device_profile import all_profiles
from ...measure.roofline import datasheet_ceilings, memory_seconds
from ...model.record import Interval, Record
from ...model.work import Work
from ...store.ratios import time_of
from .exhibit_plots import Drawing, plain_numbers
from .exhibit_points import Point, Points
from .markdown import middle
from .plots import Plot, style, svg
from .points import look

_DASHES = ("-", "--", "-.", ":")


def roofline(points: Points, drawing: Drawing, devices: Sequence[str]) -> Plot | None:
    """Return the plot; None where no record has useful operations and bytes.

    Parameters
    ----------
    devices : sequence of str
        Profiles whose datasheet gives a roof; the measured ceilings of the records give another.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for panel in points.panels:
        for title, of in panel.curves.items():
            name = f"{panel.name} {title if len(panel.curves) > 1 else ''}".strip() or title
            if along := [at for x in points.xs if x in of and (at := reached(of[x]))]:
                series[name] = along
    records = [p.record for panel in points.panels for of in panel.curves.values() for p in of.values()]
    record = next((r for r in records if r.work and r.work.flops and r.work.bytes and r.ceilings), None)
    if not series or record is None or record.work is None:
        return None
    profiles = all_profiles()
    stated = {profiles[name].title: datasheet_ceilings(profiles[name]) for name in devices}
    roofs = {f"{title} (datasheet)": roof(record.work, ceilings) for title, ceilings in stated.items()}
    roofs["this device (measured)"] = roof(record.work, record.ceilings)
    with style():
        figure = Figure(figsize=(8.0, 5.6), layout="constrained")
        axes = figure.add_subplot()
        reach = [intensity for along in series.values() for intensity, _ in along]
        ends = min(reach) / 4, max(reach) * 4
        for number, (name, known) in enumerate(roofs.items()):
            if known:
                slope, flat = known
                x = np.array(sorted({ends[0], min(max(flat / slope, ends[0]), ends[1]), ends[1]}))
                axes.plot(x, np.minimum(slope * x, flat) / 1e9, _DASHES[number % len(_DASHES)], color="black",
                          linewidth=1.8 if name.startswith("this") else 1.0, label=middle(name, 60))  # fmt: skip
        for number, (name, drawn) in enumerate(series.items()):
            colour, shape = look(number)
            axes.plot([i for i, _ in drawn], [rate / 1e9 for _, rate in drawn], marker=shape, color=colour,
                      linewidth=0.8, markersize=4.5, label=middle(name, 60))  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_numbers(axes.xaxis)
        plain_numbers(axes.yaxis)
        axes.set_xlabel("operational intensity, useful FLOP per compulsory byte")
        axes.set_ylabel("useful GFLOP/s (measured)")
        axes.grid(color="#E5E5E5", linewidth=0.6)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
        content = svg(figure)
    caption = f"Roofs from datasheets, and from measured ceilings; points along {drawing.axis} as measured."
    return Plot(f"{drawing.name}.svg", content, drawing.title, caption)


def roof(work: Work, ceilings: Mapping[str, Interval]) -> tuple[float, float] | None:
    """Return bandwidth, for this work's mix of reads and writes, and FP32 peak, in B/s and FLOP/s."""
    moving = memory_seconds(work.read_bytes, work.write_bytes, dict(ceilings))
    peak = ceilings.get("fp32_fma")
    return (work.bytes / moving.value, peak.value) if moving and moving.value and peak else None


def reached(point: Point) -> tuple[float, float] | None:
    """Return intensity and rate of a point, None without useful operations and bytes."""
    record: Record = point.record
    work = record.work
    return (work.intensity, work.flops / time_of(record)) if work and work.flops and work.bytes else None
