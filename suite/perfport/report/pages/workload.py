"""The suite report's page of one workload: every problem, the metric, cross-tuning, claims and failures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from urllib.parse import quote

from ...judge.headline import amount
from ...model.published import inconsistencies
from ...model.untrusted import slug
from ...store.collection import Collection
from ...store.ratios import time_of
from ..parts.curves import curve_plots
from ..parts.failures import failures_table
from ..parts.ladder import Ladder
from ..parts.markdown import code, details, join, table, text
from ..parts.material import Material
from ..parts.matrix import lines, matrix_table
from ..parts.plots import Plot, image
from ..parts.rooflines import roofline_plot
from ..parts.scaling import scaling_section
from ..parts.summary import best_tables
from ..parts.tables import device_comparison, problem_facts
from . import claims, crosstuning
from . import portability as portable
from .table import chosen_settings, literature, setting_tables, share_dots

#: Rows of the table of best variants on a workload's page; of more, only those of the summary are shown.
MOST_BEST = 60


class Page:
    """A page in the making: blocks of markdown, and the plots that they show."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.plots: list[Plot] = []

    def add(self, *blocks: str) -> None:
        """Add blocks of markdown."""
        self.blocks += blocks

    def show(self, plot: Plot | None) -> None:
        """Add a plot, if there is one."""
        if plot:
            self.plots.append(plot)
            self.add(*image(plot))

    def fold(self, summary: str, plot: Plot | None) -> None:
        """Add a plot that is folded until the reader opens it, if there is one."""
        if plot:
            self.plots.append(plot)
            self.add(details(summary, join(image(plot))))


def page(workload: str, material: Material, summary: str) -> tuple[str, list[Plot]]:
    """Return the page of a workload and its plots; ``summary`` is the name of the summary's file."""
    of, made = material.only(workload), Page()
    made.add(f"# {of.ladders[0].workload_title}", f"[Summary](../{quote(summary)}) · [all claims](../claims.md)")
    made.add(matrix_table(lines(of)))
    if len(of.ladders) > MOST_BEST:
        more = code(f"perfport table --workload {workload}")
        note = f"Of {len(of.ladders)} ladders those at the headline sizes; {more} has all."
        best = join([note, best_tables(list(of.first), off=of.off)])
    else:
        best = best_tables(list(of.ladders))
    made.add(details("Best variants with their intervals, speed-up over the first rung, and peers", best))
    for problem, same in groupby(of.ladders, key=lambda ladder: ladder.problem):
        _problem(made, list(same), [ladder for ladder in of.first if ladder.problem == problem], of.collection)
    _portability(made, of)
    _tuning(made, workload, of)
    made.add("## Claims", "The numbers behind each verdict: [all claims](../claims.md).")
    if of.judgements:
        made.add(details("What each claim came to on each device", claims.matrix(of.judgements, of.collection)))
    else:
        made.add("This workload has no claims.")
    if of.converged:
        lines_of = portable.convergence_table(of.converged, variants=True)
        made.add("## Code convergence", details("Source lines in common, by variant", lines_of))
    cases = [case.newest for case in of.collection.cases if case.subject.workload == workload]
    made.add("## What failed", failures_table(cases))
    made.add("## Where the source is inconsistent", inconsistent([workload]))
    return join(made.blocks), made.plots


def _problem(made: Page, ladders: list[Ladder], first: list[Ladder], collection: Collection) -> None:
    workload, problem = ladders[0].workload, ladders[0].problem
    made.add(f"## {ladders[0].problem_title} ({code(problem)})", problem_facts(first[0] if first else ladders[0]))
    classes = [list(same) for _, same in groupby(sorted(first, key=_class), key=_class)]
    for alike in classes:
        precision = alike[0].precision
        if len(classes) > 1:
            made.add(f"**Precision class {text(precision)}**")
        made.add(device_comparison(alike, [text(ladder.preset or ladder.setting) for ladder in alike]))
        name = f"{slug(workload, problem, *([precision] if precision != 'fp32' else []))}-shares"
        title = f"Shares of the bound: {workload}/{problem}, {precision}"
        made.fold(f"Shares of the bound as a plot, {precision}", share_dots(collection, alike, name, title))
    made.fold("Roofline of the fastest device", _roofline(first, slug(workload, problem)))
    for plot in curve_plots(ladders, slug(workload, problem)):
        made.fold(plot.alt, plot)
    shown = chosen_settings(ladders, first)
    for setting in shown:
        name = f"{setting[0].setting}: every variant on every device"
        made.add(details(name, join(setting_tables(setting)[1:])))
    left = len({ladder.subject.parameters for ladder in ladders}) - len(shown)
    if left:
        where = f"perfport table --workload {workload} --problem {problem}"
        made.add(f"{left} further settings: {code(where)}.")
    if scaled := list(scaling_section(ladders, "####")):
        made.add(details("Several devices", join(scaled)))
    if published := literature(first):
        made.add(details("Archival devices and published figures", published))


def _class(ladder: Ladder) -> tuple[bool, str]:
    return ladder.precision != "fp32", ladder.precision


def _portability(made: Page, of: Material) -> None:
    made.add("## Portability")
    for (_, problem, precision), alike in groupby(of.metrics, key=lambda metric: metric.subject.family):
        tables, cascade = portable.section(list(alike), of.collection)
        made.add(f"### {code(problem)}, {text(precision)}", *tables)
        made.show(cascade)


def _tuning(made: Page, workload: str, of: Material) -> None:
    largest = crosstuning.largest(of.tuned, of.collection)
    if largest:
        made.add("## Cross-tuning", crosstuning.READING)
    if len(largest) < len(of.tuned):
        where = code(f"perfport crosstuning --workload {workload}")
        made.add(f"The largest setting of each device; {where} has all.")
    for (subject, variant), group in groupby(largest, key=lambda slowdown: (slowdown.subject, slowdown.variant)):
        body, heat = crosstuning.matrix(list(group), of.collection)
        name = f"{subject.problem}, {crosstuning.setting(subject, of.collection)}: {variant}"
        made.add(f"### {text(name, 120)}", body)
        made.show(heat)


def _roofline(ladders: Sequence[Ladder], name: str) -> Plot | None:
    """Return the roofline of the device that solves a problem fastest, by time for the useful work."""

    def pace(ladder: Ladder) -> float:
        useful = amount([ladder.best]) if ladder.best else 0.0
        return time_of(ladder.best.record) / useful if ladder.best and useful else math.inf

    best = min((ladder for ladder in ladders if pace(ladder) < math.inf), key=pace, default=None)
    return roofline_plot(best, name) if best else None


def inconsistent(workloads: Sequence[str]) -> str:
    """Return where the sources of some workloads contradict themselves, and what the suite uses."""
    listed = [
        [code(entry.workload), text(entry.source), text(entry.stated, 400), text(entry.used, 400)]
        for entry in inconsistencies()
        if entry.workload in workloads
    ]
    headers = ["workload", "source", "states (published)", "the suite uses"]
    return table(headers, listed, "llll") if listed else "None is known."
