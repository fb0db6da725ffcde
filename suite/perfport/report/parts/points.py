"""Dot plots of shares by name and device, told apart by shape as well as by colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from .markdown import middle
from .plots import Plot, percent_axis, style, svg

#: Okabe and Ito's palette, and a shape for each: no pair rests on colour alone.
LOOKS = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P"),
    ("#000000", "X"),
)  # fmt: skip
#: Names that one plot can show.
MOST = 26


class Series(NamedTuple):
    """A share with its interval; 1.0 is 100 %."""

    value: float
    low: float
    high: float


def look(number: int) -> tuple[str, str]:
    """Return colour and shape of the n-th device: of the first 49 no two are alike."""
    turn, own = divmod(number, len(LOOKS))
    return LOOKS[own][0], LOOKS[(own + turn) % len(LOOKS)][1]


def shifts(number: int) -> list[float]:
    """Return how far the marks of ``number`` devices lie from the middle of their row, whose neighbours are at 1."""
    step = min(0.18, 0.8 / number)
    return [step * (at - (number - 1) / 2) for at in range(number)]


def dots(name: str, title: str, caption: str, shares: Mapping[str, Mapping[str, Series]], sites: Sequence[str]) -> Plot:
    """Draw one row for each name, one mark for each device."""
    names = list(shares)[:MOST]
    looks = {site: look(number) for number, site in enumerate(dict.fromkeys(sites))}
    shown = [site for site in looks if any(site in shares[n] for n in names)]
    if len(names) < len(shares):
        caption += f" The first {len(names)} of {len(shares)} are drawn."
    caption += " Line: the bound."
    with style():
        row = max(0.4, 0.12 * len(shown))
        figure = Figure(figsize=(8.0, 1.3 + row * len(names)), layout="constrained")
        axes = figure.add_subplot()
        known = [share for n in names for share in shares[n].values()]
        reach = max(1.0, *(min(share.high, 1.3) for share in known))
        percent_axis(axes, [share.value for share in known], reach * 1.03)
        axes.axvline(100, color="black", linewidth=1.0)
        for site, shift in zip(shown, shifts(len(shown)), strict=True):
            points = [(shares[n][site], y + shift) for y, n in enumerate(names) if site in shares[n]]
            _marks(axes, points, *looks[site], middle(site, 60))
        axes.set_yticks(range(len(names)), [middle(n, 44) for n in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("share of the problem bound, %")
        figure.legend(loc="outside upper right", ncols=min(len(shown), 4), frameon=False, fontsize=9)
        return Plot(f"{name}.svg", svg(figure), title, caption)


def _marks(axes: Any, points: Sequence[tuple[Series, float]], colour: str, shape: str, label: str) -> None:
    values = [100 * s.value for s, _ in points]
    ends = [[100 * max(s.value - s.low, 0) for s, _ in points], [100 * max(s.high - s.value, 0) for s, _ in points]]
    axes.errorbar(
        values, [y for _, y in points], xerr=ends, fmt=shape, color=colour, markersize=6, markeredgecolor="white",
        markeredgewidth=0.5, linewidth=1.0, label=label,
    )  # fmt: skip
