"""The cross-tuning matrix: what it costs to run with the tuning parameters of another device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..machine.device_profile import load_profile, parameters_for
from ..model.errors import UsageError
from ..model.names import NATIVE
from ..model.record import Interval, Record, Status
from ..run.defaults import defaults
from ..store.case import Case, Site, Subject
from ..store.collection import Collection
from ..store.comparable import fastest
from ..store.crossfit import compare_best
from ..store.ratios import Comparison, compare, is_ranked


@dataclass(frozen=True)
class Slowdown:
    """A variant with one profile's parameters on one site, against the fastest that it was there with any profile's.

    Tunables that a profile does not set are the variant's defaults for the device, in every row. ``ratio`` is the time
    over that of ``best``, at least 1 but for noise; ``None`` without a result.
    """

    subject: Subject
    variant: str
    site: Site
    profile: str
    status: Status
    ratio: Interval | None
    record: Record
    best: Record


def slowdowns(collection: Collection) -> list[Slowdown]:
    """Return a slowdown for each profile and site of every variant that ran with some device's parameters.

    Cases with other tunables than a profile and the defaults give, as in ablations, take no part.
    """
    groups: dict[tuple[Subject, str, Site], dict[str, list[Case]]] = {}
    for case in collection.cases:
        identity = case.record.identity
        group = groups.setdefault((case.subject, identity.variant, case.site), {})
        group.setdefault(identity.profile or NATIVE, []).append(case)
    listed = []
    for (subject, variant, site), profiles in sorted(groups.items(), key=lambda item: item[0]):
        if profiles.keys() == {NATIVE}:
            continue
        alike = {name: [case for case in cases if _differs_by_profile(case)] for name, cases in profiles.items()}
        best = fastest(case for cases in alike.values() for case in cases)
        if best is None:
            continue
        ranked = [case.record for cases in alike.values() for case in cases if is_ranked(case.record)]
        for profile in sorted(alike, key=lambda name: (name != NATIVE, name)):
            if not alike[profile]:
                continue
            record = (fastest(alike[profile]) or alike[profile][0]).record
            compared = _slowdown(record, best.record, ranked) if record.status == Status.OK else None
            ratio = compared.ratio if compared else None
            listed.append(Slowdown(subject, variant, site, profile, record.status, ratio, record, best.record))
    return listed


def _slowdown(record: Record, best: Record, ranked: list[Record]) -> Comparison | None:
    """How many times slower a record is than the best, which is chosen by other samples than those compared."""
    return compare(record, best) if record is best else compare_best([record], ranked)


def _differs_by_profile(case: Case) -> bool:
    """Whether a case's tunables are what its profile sets, and else the defaults."""
    identity = case.record.identity
    known = defaults(case.run, identity)
    if known is None:
        return False
    set_ = parameters_of(identity.profile, identity.workload) if identity.profile else {}
    return identity.tunables == {name: set_.get(name, value) for name, value in known.items()}


def parameters_of(profile: str, workload: str) -> Mapping[str, Any]:
    """Return what a profile sets for a workload; nothing where there is no such profile any more."""
    try:
        return parameters_for(load_profile(profile), workload)
    except UsageError:
        return {}
