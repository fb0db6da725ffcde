"""The suite report's page of one workload: every problem, the metric, cross-tuning, claims and failures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from urllib.parse import quote

from ...judge.claims import Claim, Judgement, evaluate
from ...judge.crosstuning import Slowdown, slowdowns
from ...judge.headline import amount
from ...judge.portability import Portability, portability
from ...model.published import inconsistencies
from ...model.untrusted import slug
from ...store.collection import Collection
from ...store.ratios import time_of
from ...untimed.convergence import Convergence
from ..parts.failures import failures_table
from ..parts.ladder import Ladder, collected
from ..parts.markdown import code, join, table, text
from ..parts.plots import Plot, image
from ..parts.rooflines import roofline_plot
from ..parts.scaling import scaling_section
from ..parts.summary import best_tables
from . import claims, crosstuning
from . import portability as portable
from .table import chosen_settings, headline, literature, setting_tables, share_dots

#: Rows of the table of best variants on a workload's page; of more, only those of the summary are shown.
MOST_BEST = 60


@dataclass(frozen=True)
class Material:
    """What the suite report is made of: a collection and all that is derived from it.

    Attributes
    ----------
    first : mapping
        The ladders at which each problem stands on each site, and whether they are not of its headline size.
    """

    collection: Collection
    ladders: Sequence[Ladder]
    first: Mapping[Ladder, bool]
    metrics: Sequence[Portability]
    judgements: Sequence[Judgement]
    tuned: Sequence[Slowdown]
    converged: Sequence[Convergence]

    @classmethod
    def of(
        cls, collection: Collection, ledger: Mapping[str, Iterable[Claim]], converged: Sequence[Convergence]
    ) -> Material:
        """Judge a collection."""
        ladders = collected(collection)
        return cls(
            collection, ladders, headline(collection, ladders), portability(collection, collection.places),
            evaluate(ledger, collection), slowdowns(collection), converged,
        )  # fmt: skip

    @property
    def off(self) -> list[Ladder]:
        """Those of ``first`` that are not of the headline size."""
        return [ladder for ladder, off in self.first.items() if off]

    def only(self, workload: str) -> Material:
        """Return what concerns one workload."""
        return replace(
            self,
            ladders=[ladder for ladder in self.ladders if ladder.workload == workload],
            first={ladder: off for ladder, off in self.first.items() if ladder.workload == workload},
            metrics=[metric for metric in self.metrics if metric.subject.workload == workload],
            judgements=[judgement for judgement in self.judgements if judgement.workload == workload],
            tuned=[slowdown for slowdown in self.tuned if slowdown.subject.workload == workload],
            converged=[entry for entry in self.converged if entry.workload == workload],
        )


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


def page(workload: str, material: Material, summary: str) -> tuple[str, list[Plot]]:
    """Return the page of a workload and its plots; ``summary`` is the name of the summary's file."""
    of, made = material.only(workload), Page()
    made.add(f"# {of.ladders[0].workload_title}", f"[Summary](../{quote(summary)}) · [all claims](../claims.md)")
    if len(of.ladders) > MOST_BEST:
        more = code(f"perfport table --workload {workload}")
        made.add(
            f"Of {len(of.ladders)} ladders those at the headline sizes; {more} has all.",
            best_tables(list(of.first), off=of.off),
        )
    else:
        made.add(best_tables(list(of.ladders)))
    for problem, same in groupby(of.ladders, key=lambda ladder: ladder.problem):
        _problem(made, list(same), [ladder for ladder in of.first if ladder.problem == problem], of.collection)
    _portability(made, of)
    _tuning(made, workload, of)
    made.add("## Claims", "The numbers behind each verdict: [all claims](../claims.md).")
    made.add(claims.matrix(of.judgements, of.collection) if of.judgements else "This workload has no claims.")
    if of.converged:
        made.add("## Code convergence", portable.convergence_table(of.converged, variants=True))
    cases = [case.newest for case in of.collection.cases if case.subject.workload == workload]
    made.add("## What failed", failures_table(cases))
    made.add("## Where the source is inconsistent", inconsistent([workload]))
    return join(made.blocks), made.plots


def _problem(made: Page, ladders: list[Ladder], first: list[Ladder], collection: Collection) -> None:
    workload, problem = ladders[0].workload, ladders[0].problem
    made.add(f"## {ladders[0].problem_title} ({code(problem)})")
    title = f"Shares of the bound: {workload}/{problem}"
    made.show(share_dots(collection, first, f"{slug(workload, problem)}-shares", title))
    if roofline := _roofline(first, slug(workload, problem)):
        made.show(roofline)
        made.add("The reports of single runs have a roofline for every device.")
    shown = chosen_settings(ladders, first)
    for setting in shown:
        made.add(*setting_tables(setting))
    left = len({ladder.subject.parameters for ladder in ladders}) - len(shown)
    if left:
        where = f"perfport table --workload {workload} --problem {problem}"
        made.add(f"{left} further settings: {code(where)}.")
    if scaled := list(scaling_section(ladders, "####")):
        made.add("### Several devices", *scaled)
    made.add(literature(first))


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
