"""At which setting a problem stands on each device: the headline size that it declares for the device's class.

`Problem.headline` names a preset for CPUs and another for GPUs. A workload that ships, or is installed, is asked as it
is now: another headline size needs no other measurement. Of others the environment of the latest run tells.

Where a device has no result at that size, or the problem declares none, it stands at the largest setting that ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..run.sources import shipped
from ..store.case import Case, Site, Subject
from ..store.collection import Collection, currency
from ..store.comparable import fastest, is_control, is_peer


@dataclass(frozen=True)
class Standing:
    """At which setting a problem stands on a site.

    Attributes
    ----------
    subject : Subject
    headline : bool or None
        Whether that is the headline size for the site's class of device; ``None`` where the problem declares none.
    """

    subject: Subject
    headline: bool | None


def amount(cases: Iterable[Case]) -> float:
    """The useful work of a problem, to order settings by: operations and bytes of any case that states them."""
    works = (case.record.work for case in cases if case.record.work)
    return max((work.flops + work.integer_ops + work.bytes for work in works), default=0.0)


def by_amount(collection: Collection, subjects: Iterable[Subject]) -> list[Subject]:
    """Return subjects by their useful work, the largest first."""
    return sorted(subjects, key=lambda subject: (-amount(collection.subjects[subject]), subject))


def standing(collection: Collection, subjects: Sequence[Subject], sites: Iterable[Site]) -> dict[Site, Standing]:
    """Return at which setting one problem stands on each site that tried it, in one precision class.

    A setting has a result where a variant may be ranked: neither a peer nor a control arm alone. Where no setting has
    one, the failures at the headline size stand, or else those at another. Of one setting on several inputs, or once
    with a default written out and once without, those of the latest result stand.

    Parameters
    ----------
    collection : Collection
    subjects : sequence of Subject
        Of one family, see `Collection.families`.
    sites : iterable of Site
    """
    sizes = _sizes(collection, subjects[0])
    ordered = by_amount(collection, subjects)
    standings = {}
    for site in sites:
        tried = [subject for subject in ordered if collection.at(subject, site)]
        candidates = [subject for subject in tried if _has_result(collection.at(subject, site))] or tried
        declared = sizes.of(site)
        at_size = [subject for subject in candidates if declared and sizes.complete(subject.values) == declared]
        if candidates:
            pool = at_size or candidates
            size = sizes.complete(pool[0].values)
            equal = [subject for subject in pool if sizes.complete(subject.values) == size]
            chosen = max(equal, key=lambda subject: max(map(currency, collection.at(subject, site))))
            standings[site] = Standing(chosen, bool(at_size) if declared else None)
    return standings


def _has_result(cases: Iterable[Case]) -> bool:
    return fastest(case for case in cases if not is_peer(case) and not is_control(case)) is not None


@dataclass(frozen=True)
class _Sizes:
    """What `Problem.sizes` tells of a problem."""

    headline: Mapping[str, Mapping[str, Any]]
    defaults: Mapping[str, Any]

    def of(self, site: Site) -> Mapping[str, Any] | None:
        """The parameters of the headline size on a site, if one is declared; accelerators are as GPUs."""
        return self.headline.get("gpu" if site.kind == "accelerator" else site.kind)

    def complete(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Parameters as a run stores them, with the defaults of those that it was not given."""
        return {**self.defaults, **parameters}


def _sizes(collection: Collection, subject: Subject) -> _Sizes:
    workload = shipped(subject.workload)
    if workload and subject.problem in workload.problems:
        return _Sizes(**workload.problem(subject.problem).sizes())
    told: Mapping[str, Any] = {}
    for run in sorted(collection.runs, key=lambda run: str(run.environment.get("started") or "")):
        about = (run.environment.get("workloads") or {}).get(subject.workload) or {}
        told = (about.get("problems") or {}).get(subject.problem) or told
    return _Sizes(told.get("headline") or {}, told.get("defaults") or {})
