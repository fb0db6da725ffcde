"""What the suite report is made of: the ladders of a collection, those that stand for each problem, what is judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from ...judge.claims import Claim, Judgement, evaluate
from ...judge.crosstuning import Slowdown, slowdowns
from ...judge.headline import amount, standing
from ...judge.portability import Portability, portability
from ...store.case import Site, Subject
from ...store.collection import Collection
from ...untimed.convergence import Convergence
from .ladder import Ladder, collected


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
            collection, ladders, headline(collection, ladders), portability(collection),
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


def headline(collection: Collection, ladders: Iterable[Ladder]) -> dict[Ladder, bool]:
    """Return the ladders at the setting at which each problem stands on each site (`judge.headline.standing`).

    With each, whether that is not the headline size that the problem declares, because there is no result of it.
    """
    off: dict[tuple[Subject, Site], bool] = {}
    for subjects in collection.families.values():
        for site, chosen in standing(collection, subjects, collection.sites).items():
            off[chosen.subject, site] = chosen.headline is False
    placed = {ladder: (ladder.subject, ladder.where) for ladder in ladders}
    return {ladder: off[place] for ladder, place in placed.items() if place in off}


def by_size(ladders: Iterable[Ladder]) -> list[Ladder]:
    """Return ladders so that of every problem the largest come first, a level of all problems at a time."""
    by: dict[tuple[str, str], list[Ladder]] = {}
    for ladder in ladders:
        by.setdefault((ladder.workload, ladder.problem), []).append(ladder)
    problems = [sorted(held, key=lambda ladder: -amount(ladder.rows)) for held in by.values()]
    return [ladder for level in zip_longest(*problems) for ladder in level if ladder is not None]
