"""The cross-tuning matrix as a table and as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ...judge.crosstuning import Slowdown, by_parameters, slowdowns
from ...judge.headline import amount
from ...model.record import Interval
from ...model.untrusted import slug
from ...store.case import Site, Subject
from ...store.collection import Collection
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.plots import GREY, Plot, image, style, svg
from ..parts.quantities import interval, percent
from ..parts.view import View

#: Slowdowns that the scale of a heat map may name.
TICKS = (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
READING = (
    "Each column is a device, each row a set of tuning parameters: `native` are the variant's own defaults for "
    "the device at hand, the others those that the literature gives for another device; what these leave open is at "
    "the defaults, too. The number is the slowdown against the fastest row of the column (measured, 95 % intervals); "
    "1 is best. Cases with further tunables changed, such as ablations, take no part."
)


PORTABILITY = (
    "Pennycook's metric of a variant over the devices: with the code's defaults on all of them, with the parameters "
    "that were found on each, and with those of one device on all. What the second has over the first is tuning, what "
    "the third lacks is what does not carry over. *Application*: share of the speed with the best of these parameters; "
    "*architectural*: share of the problem bound (measured; ends from the ends of the intervals). Only where every "
    "device has a row."
)


def view(collection: Collection) -> View:
    """Return the matrix of every variant that ran with another device's parameters."""
    blocks, plots = ["# Cross-tuning", READING], []
    tuned = slowdowns(collection)
    blocks += portability_by_parameters(tuned, collection)
    for (subject, variant), same in groupby(tuned, key=lambda cell: (cell.subject, cell.variant)):
        body, plot = matrix(list(same), collection)
        where = f"{code(f'{subject.workload}/{subject.problem}')}, {text(setting(subject, collection), 100)}"
        blocks += [f"## {where}: {code(variant)}", body]
        if plot:
            plots.append(plot)
            blocks += image(plot)
    if not tuned:
        blocks.append("No variant ran with the parameters of another device (`profiles` of an experiment).")
    return View("Cross-tuning", join(blocks), rows(tuned, collection), plots)


def portability_by_parameters(tuned: Sequence[Slowdown], collection: Collection) -> list[str]:
    """Return the table of Pennycook's metric by parameters; nothing where no variant ran on several devices."""
    listed = [
        [
            code(f"{each.subject.workload}/{each.subject.problem}"), text(setting(each.subject, collection), 60),
            code(each.variant), text(each.parameters), str(each.sites), _share(each.application),
            _share(each.architectural),
        ]
        for each in by_parameters(tuned)
    ]  # fmt: skip
    if not listed:
        return []
    headers = ["problem", "setting", "variant", "parameters", "devices", "PP, application", "PP, architectural"]
    return ["## Portability by parameters", PORTABILITY, table(headers, listed, "llllrrr")]


def _share(value: Interval | None) -> str:
    return f"{percent(value.value)} ({percent(value.low)}–{percent(value.high)})" if value else NONE


def setting(subject: Subject, collection: Collection) -> str:
    """Return the preset, with what tells it from others of the problem by that name: parameters and precision class."""
    preset = collection.preset(subject)
    problem = [
        other for other in collection.subjects if (other.workload, other.problem) == (subject.workload, subject.problem)
    ]
    alike = {other.parameters for other in problem if collection.preset(other) == preset}
    parts = [preset, *(f"{name}={value}" for name, value in sorted(subject.values.items()) if len(alike) > 1)]
    return ", ".join([*parts, *([subject.precision] if len({other.precision for other in problem}) > 1 else [])])


def largest(tuned: Sequence[Slowdown], collection: Collection) -> list[Slowdown]:
    """Return each variant at its largest settings: as many as it takes to have every site that it ran on."""
    kept = []
    for _, same in groupby(tuned, key=lambda cell: (cell.subject.workload, cell.subject.problem)):
        problem = list(same)
        size = {cell.subject: amount(collection.subjects[cell.subject]) for cell in problem}
        covered: set[tuple[str, str, Site]] = set()
        for subject in sorted(size, key=lambda subject: (-size[subject], subject)):
            cells = [cell for cell in problem if cell.subject == subject]
            new = [cell for cell in cells if (subject.precision, cell.variant, cell.site) not in covered]
            covered |= {(subject.precision, cell.variant, cell.site) for cell in new}
            kept += new
    return kept


def matrix(tuned: Sequence[Slowdown], collection: Collection) -> tuple[str, Plot | None]:
    """Return one variant's matrix at one setting, and its heat map."""
    profiles = list(dict.fromkeys(cell.profile for cell in tuned))
    sites = list(dict.fromkeys(cell.site for cell in tuned))
    cells = {(cell.profile, cell.site): cell for cell in tuned}
    listed = [[code(profile), *(_cell(cells.get((profile, site))) for site in sites)] for profile in profiles]
    headers = ["parameters of", *(code(collection.label(site)) for site in sites)]
    grid = [
        [cell.ratio.value if (cell := cells.get((profile, site))) and cell.ratio else None for site in sites]
        for profile in profiles
    ]
    first = tuned[0]
    labels = [collection.label(site) for site in sites]
    subject, variant = first.subject, first.variant
    name = slug(subject.workload, subject.problem, setting(subject, collection), variant)
    title = f"Cross-tuning of {variant}, {subject.workload}/{subject.problem}"
    return table(headers, listed, "l" + "r" * len(sites)), heat_map(f"{name}-tuning", title, profiles, labels, grid)


def _cell(cell: Slowdown | None) -> str:
    if cell is None:
        return NONE
    return interval(cell.ratio) if cell.ratio else cell.status.value


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
        axes.set_yticks(range(len(profiles)), [middle(profile, 26) for profile in profiles])
        axes.set_xlabel("device")
        axes.set_ylabel("parameters of")
        ticks = [tick for tick in TICKS if tick <= top]
        bar = figure.colorbar(drawn, ax=axes, label="slowdown", ticks=ticks)
        bar.minorticks_off()
        bar.set_ticklabels([f"{tick:g}" for tick in ticks])
        content = svg(figure)
    caption = "Slowdown against the fastest of these parameters on the device (measured); 1 is best."
    return Plot(f"{name}.svg", content, title, caption)


def rows(tuned: Sequence[Slowdown], collection: Collection) -> list[dict[str, Any]]:
    """Return a row for each cell."""
    return [
        {
            "workload": cell.subject.workload, "problem": cell.subject.problem,
            "setting": collection.preset(cell.subject), "precision": cell.subject.precision, "variant": cell.variant,
            "device": collection.label(cell.site), "profile": cell.profile,
            "status": cell.status.value, "slowdown": cell.ratio.value if cell.ratio else None,
            "slowdown low": cell.ratio.low if cell.ratio else None,
            "slowdown high": cell.ratio.high if cell.ratio else None,
            "record": cell.record.key, "best record": cell.best.key,
        }
        for cell in tuned
    ]  # fmt: skip
