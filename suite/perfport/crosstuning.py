"""The cross-tuning matrix: what it costs to run with the tuning parameters of another device."""

from __future__ import annotations

from dataclasses import dataclass

from .collection import Case, Collection, Site, Subject, fastest
from .comparison import compare
from .record import Interval, Record, Status

#: How the variants' own defaults for the device at hand are called.
NATIVE = "native"


@dataclass(frozen=True)
class Slowdown:
    """A variant with one profile's parameters on one site, against the fastest that it was there with any.

    ``ratio`` is the time over that of ``best``, at least 1 but for noise; ``None`` without a result.
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
    """Return a slowdown for each profile and site of every variant that ran with some device's parameters."""
    groups: dict[tuple[Subject, str, Site], dict[str, list[Case]]] = {}
    for case in collection.cases:
        identity = case.record.identity
        group = groups.setdefault((case.subject, identity.variant, case.site), {})
        group.setdefault(identity.profile or NATIVE, []).append(case)
    found = []
    for (subject, variant, site), profiles in sorted(groups.items(), key=lambda item: item[0]):
        best = fastest(case for cases in profiles.values() for case in cases)
        if best is None or profiles.keys() == {NATIVE}:
            continue
        for profile in sorted(profiles, key=lambda name: (name != NATIVE, name)):
            case = fastest(profiles[profile]) or profiles[profile][0]
            record = case.record
            compared = compare(record, best.record) if record.status == Status.OK else None
            ratio = compared.ratio if compared else None
            found.append(Slowdown(subject, variant, site, profile, record.status, ratio, record, best.record))
    return found
