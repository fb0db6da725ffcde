"""The cross-tuning matrix as a table and as a heat map."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ...judge.crosstuning import Slowdown, slowdowns
from ...judge.portability import amount
from ...store.case import Site
from ...store.collection import Collection
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.plots import GREY, Plot, image, style, svg
from ..parts.quantities import interval
from ..parts.view import View

#: Slowdowns that the scale of a heat map may name.
TICKS = (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
READING = (
    "Each column is a device, each row a set of tuning parameters: `native` are the variant's own defaults for "
    "the device at hand, the others those that the literature gives for another device; what these leave open is at "
    "the defaults, too. The number is the slowdown against the fastest row of the column (measured, 95 % intervals); "
    "1 is best. Cases with further tunables changed, such as ablations, take no part."
)


def view(collection: Collection) -> View:
    """Return the matrix of every variant that ran with another device's parameters."""
    blocks, plots = ["# Cross-tuning", READING], []
    found = slowdowns(collection)
    for (workload, problem, preset, variant), same in groupby(found, key=lambda one: _group(one, collection)):
        body, plot = matrix(list(same), collection)
        blocks += [f"## {code(f'{workload}/{problem}')}, {text(preset, 100)}: {code(variant)}", body]
        if plot:
            plots.append(plot)
            blocks += image(plot)
    if not found:
        blocks.append("No variant ran with the parameters of another device (`profiles` of an experiment).")
    return View("Cross-tuning", join(blocks), rows(found, collection), plots)


def _group(one: Slowdown, collection: Collection) -> tuple[str, str, str, str]:
    return one.subject.workload, one.subject.problem, collection.preset(one.subject), one.variant


def largest(found: Sequence[Slowdown], collection: Collection) -> list[Slowdown]:
    """Return each variant at its largest settings: as many as it takes to have every site that it ran on."""
    kept = []
    for _, same in groupby(found, key=lambda one: (one.subject.workload, one.subject.problem)):
        problem = list(same)
        size = {one.subject: amount(collection.subjects[one.subject]) for one in problem}
        covered: set[tuple[str, str, Site]] = set()
        for subject in sorted(size, key=lambda subject: (-size[subject], subject)):
            cells = [one for one in problem if one.subject == subject]
            new = [one for one in cells if (subject.precision, one.variant, one.site) not in covered]
            covered |= {(subject.precision, one.variant, one.site) for one in new}
            kept += new
    return kept


def matrix(found: Sequence[Slowdown], collection: Collection) -> tuple[str, Plot | None]:
    """Return one variant's matrix at one setting, and its heat map."""
    profiles = list(dict.fromkeys(one.profile for one in found))
    sites = list(dict.fromkeys(one.site for one in found))
    cells = {(one.profile, one.site): one for one in found}
    listed = [[code(profile), *(_cell(cells.get((profile, site))) for site in sites)] for profile in profiles]
    headers = ["parameters of", *(code(collection.label(site)) for site in sites)]
    grid = [
        [one.ratio.value if (one := cells.get((profile, site))) and one.ratio else None for site in sites]
        for profile in profiles
    ]
    first = found[0]
    labels = [collection.label(site) for site in sites]
    name = f"{first.subject.workload}-{first.subject.problem}-{collection.preset(first.subject)}-{first.variant}-tuning"
    title = f"Cross-tuning of {first.variant}, {first.subject.workload}/{first.subject.problem}"
    return table(headers, listed, "l" + "r" * len(sites)), heat_map(name, title, profiles, labels, grid)


def _cell(found: Slowdown | None) -> str:
    if found is None:
        return NONE
    return interval(found.ratio) if found.ratio else found.status.value


def heat_map(
    name: str, title: str, profiles: Sequence[str], sites: Sequence[str], grid: Sequence[Sequence[float | None]]
) -> Plot | None:
    """Draw slowdowns as shades with their numbers; ``None`` where there is no number."""
    known = [value for line in grid for value in line if value is not None]
    if not known:
        return None
    with style():
        figure = Figure(figsize=(8.0, 1.6 + 0.5 * len(profiles)), layout="constrained")
        axes = figure.add_subplot()
        shades: Any = colormaps["cividis"].with_extremes(bad="#EEEEEE")
        top = max(2.0, *known)
        shaded = [[float("nan") if value is None else max(value, 1.0) for value in line] for line in grid]
        drawn = axes.imshow(shaded, cmap=shades, norm=LogNorm(1.0, top), aspect="auto")
        for y, line in enumerate(grid):
            for x, value in enumerate(line):
                dark = value is not None and value * value < top
                shown = "no result" if value is None else f"{value:.2f}"
                colour = GREY if value is None else "white" if dark else "black"
                axes.text(x, y, shown, ha="center", va="center", color=colour)
        axes.set_xticks(range(len(sites)), [middle(site, 26) for site in sites])
        axes.set_yticks(range(len(profiles)), list(profiles))
        axes.set_xlabel("device")
        axes.set_ylabel("parameters of")
        ticks = [tick for tick in TICKS if tick <= top]
        bar = figure.colorbar(drawn, ax=axes, label="slowdown", ticks=ticks)
        bar.minorticks_off()
        bar.set_ticklabels([f"{tick:g}" for tick in ticks])
        content = svg(figure)
    file = re.sub(r"[^a-z0-9_.]+", "-", name.lower())[:110]
    caption = "Slowdown against the fastest of these parameters on the device (measured); 1 is best."
    return Plot(f"{file}.svg", content, title, caption)


def rows(found: Sequence[Slowdown], collection: Collection) -> list[dict[str, Any]]:
    """Return a row for each cell."""
    return [
        {
            "workload": one.subject.workload, "problem": one.subject.problem, "setting": collection.preset(one.subject),
            "precision": one.subject.precision, "variant": one.variant, "device": collection.label(one.site),
            "profile": one.profile, "status": one.status.value, "slowdown": one.ratio.value if one.ratio else None,
            "slowdown low": one.ratio.low if one.ratio else None,
            "slowdown high": one.ratio.high if one.ratio else None,
            "record": one.record.key, "best record": one.best.key,
        }
        for one in found
    ]  # fmt: skip
