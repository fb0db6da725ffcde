"""One roofline for several devices: the roof of each, and what it reaches as measured, published or modelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ...judge.predict import Device, Origin, Outcome, Prediction, figure_of
from ...measure.roofline import memory_seconds
from ...model.work import Work
from .markdown import middle
from .plots import GREY, Plot, plain_numbers, style, svg

#: Okabe and Ito's palette, black last: told apart by readers with any of the common colour-vision deficiencies.
_PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999933", "#882255", "#000000")
#: Lines of devices beyond the palette repeat its colours with another dash.
_DASHES = ("-", "--", ":")


@dataclass(frozen=True)
class _Roof:
    """A device's roof, in B/s and useful operations per second, and whether the suite measured it."""

    device: Device
    slope: float
    flat: float

    @property
    def measured(self) -> bool:
        return self.device.origins.get("dram_read") is Origin.MEASURED


def roofs_plot(columns: Sequence[Sequence[Prediction]], name: str, title: str) -> Plot | None:
    """Return the roofline of one setting on several devices; ``None`` without useful FLOPs or bytes.

    Parameters
    ----------
    columns : sequence of sequence of Prediction
        For each device, the same cases.
    """
    work = next((p.case.record.work for column in columns for p in column if p.case.record.work), None)
    if work is None or not work.flops or not work.bytes:
        return None
    roofs = [(roof, column) for column in columns if (roof := _roof(column[0].device, work))]
    if not roofs:
        return None
    with style():
        below = 0.75 + 0.19 * len(roofs)
        height = 4.4 + below
        figure = Figure(figsize=(8.0, height))
        axes = figure.add_axes((0.11, below / height, 0.86, 4.2 / height))
        ridges = [roof.flat / roof.slope for roof, _ in roofs]
        left, right = min([work.intensity, *ridges]) / 8, max([work.intensity, *ridges]) * 8
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(left, right)
        axes.axvline(work.intensity, linestyle=":", color=GREY, linewidth=1.2)
        for number, (roof, column) in enumerate(roofs):
            colour, dash = _PALETTE[number % len(_PALETTE)], _DASHES[number // len(_PALETTE) % len(_DASHES)]
            x = np.array([left, roof.flat / roof.slope, right])
            y = np.minimum(roof.slope * x, roof.flat) / 1e9
            width = 2.0 if roof.measured else 1.0
            named = roof.device.name if roof.device.runtime else roof.device.title
            label = f"{middle(named, 60)}: {_reached(axes, column, work, colour)}"
            axes.plot(x, y, dash, color=colour, linewidth=width, label=label)
        axes.set_xlabel("operational intensity, useful FLOP per compulsory byte")
        axes.set_ylabel("useful GFLOP/s")
        for axis in (axes.xaxis, axes.yaxis):
            plain_numbers(axis)
        axes.grid(True, which="major", color="#E5E5E5", linewidth=0.6, zorder=0)
        figure.legend(loc="lower left", bbox_to_anchor=(0.05, 0.0), fontsize=8.5, frameon=False, ncols=1)
        content = svg(figure)
    caption = (
        "Roofs of several devices, DRAM for this problem's mix of reads and writes. Thick: measured ceilings; thin: "
        "published ones, else the datasheet's. Filled: the best variant as measured. Hollow with its 90 % interval: "
        "the best as modelled. Cross: the best that was published. Dotted: the compulsory intensity."
    )
    return Plot(f"{name}-roofs.svg", content, title, caption)


def _roof(device: Device, work: Work) -> _Roof | None:
    moving = memory_seconds(work.read_bytes, work.write_bytes, device.ceilings)
    peak = device.ceilings.get("fp32_fma")
    return _Roof(device, work.bytes / moving.value, peak.value) if moving and peak else None


def _reached(axes: Any, column: Sequence[Prediction], work: Work, colour: str) -> str:
    """Draw the best of a device, and return how it is told in the legend."""
    draw = axes.errorbar
    timed = [p for p in column if p.seconds and p.outcome in (Outcome.MEASURED, Outcome.MODELLED)]
    best = min(timed, key=lambda p: p.seconds.value if p.seconds else 0.0, default=None)
    stated = max((f.value for p in column if (f := figure_of(p)) and f.unit == "GFLOP/s"), default=None)
    if stated:
        draw(work.intensity, stated, fmt="x", color=colour, markersize=8, markeredgewidth=2)
        return f"{stated:.4g} (published)"
    if best is None or best.seconds is None:
        return "/".join(dict.fromkeys(p.outcome.value for p in column))
    rates = [work.flops / s / 1e9 for s in (best.seconds.value, best.seconds.low, best.seconds.high)]
    if best.outcome is Outcome.MEASURED:
        draw(work.intensity, rates[0], fmt="o", color=colour, markersize=7)
        return f"{rates[0]:.4g} (measured)"
    ends = [[rates[0] - rates[2]], [rates[1] - rates[0]]]
    draw(work.intensity, rates[0], yerr=ends, fmt="o", color=colour, markersize=7, markerfacecolor="white", capsize=3)
    return f"≈ {rates[0]:.4g} (modelled)"
