"""The cross-tuning matrix: what it costs to run with the tuning parameters of another device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..machine.device_profile import load_profile, parameters_at
from ..model.errors import UsageError
from ..model.names import NATIVE
from ..model.record import Identity, Interval, Record, Status
from ..run.defaults import defaults, size_at
from ..store.case import Case, Site, Subject
from ..store.collection import Collection
from ..store.comparable import fastest
from ..store.crossfit import compare_best
from ..store.ratios import Comparison, compare, is_ranked
from .portability import ZERO, metric


@dataclass(frozen=True)
class Slowdown:
    """A variant with one profile's parameters on one site, against the fastest that it was there with any profile's.

    Tunables that a profile does not set are the variant's defaults for the device, in every row. ``ratio`` is the time
    over that of ``best``, at least 1 but for noise; ``None`` without a result. ``own``: the profile names the device.
    """

    subject: Subject
    variant: str
    site: Site
    profile: str
    status: Status
    ratio: Interval | None
    record: Record
    best: Record
    own: bool = False


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
            case = fastest(alike[profile]) or alike[profile][0]
            record = case.record
            compared = _slowdown(record, best.record, ranked) if record.status == Status.OK else None
            ratio = compared.ratio if compared else None
            own = _names(profile, case)
            listed.append(Slowdown(subject, variant, site, profile, record.status, ratio, record, best.record, own))
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
    sets = parameters_of(identity.profile, identity) if identity.profile else [{}]
    return any(identity.tunables == {name: set_.get(name, value) for name, value in known.items()} for set_ in sets)


def _names(profile: str, case: Case) -> bool:
    """Whether a profile is of the device that a case ran on."""
    device = (case.run.environment.get("devices") or {}).get(case.record.identity.devices[0]) or {}
    try:
        return profile != NATIVE and load_profile(profile).names(str(device.get("name", "")))
    except UsageError:
        return False


def parameters_of(profile: str, identity: Identity) -> Sequence[Mapping[str, Any]]:
    """Return what a profile sets for a case; nothing where there is no such profile any more.

    Where nobody knows which of a profile's sizes is the nearest, what it has for each of them.
    """
    variant, family = (
        f"{identity.workload}/{identity.problem}/{identity.variant}",
        identity.devices[0].rpartition(":")[0],
    )
    try:
        return parameters_at(load_profile(profile), variant, family, size_at(identity))
    except UsageError:
        return [{}]


#: Parameters of which the portability is told apart: the code's, on each device its own, and one profile's everywhere.
DEFAULT, TUNED = "the code's defaults", "each device's own"


@dataclass(frozen=True)
class ByParameters:
    """Pennycook's metric of a variant over the sites that it ran on, with one choice of parameters.

    Attributes
    ----------
    parameters : str
        `DEFAULT`, `TUNED`, or the name of the profile that is used everywhere.
    application : Interval
        By share of the speed with the best of these parameters on each site; 0 where a site has no result.
    architectural : Interval, optional
        By share of the problem bound; ``None`` where a site has no ceilings.
    sites : int
    """

    subject: Subject
    variant: str
    parameters: str
    application: Interval
    architectural: Interval | None
    sites: int


def by_parameters(tuned: Sequence[Slowdown]) -> list[ByParameters]:
    """Return, for each variant that ran with its own and other parameters on several sites, the metric by parameters.

    What tuning each device adds over the code's defaults is the part of portability that is tuning; what one device's
    parameters lose everywhere is the part that does not carry over.
    """
    groups: dict[tuple[Subject, str], list[Slowdown]] = {}
    for cell in tuned:
        groups.setdefault((cell.subject, cell.variant), []).append(cell)
    listed = []
    for (subject, variant), cells in groups.items():
        sites = sorted({cell.site for cell in cells})
        if len(sites) < 2:
            continue
        others = sorted({cell.profile for cell in cells} - {NATIVE})
        choices = {DEFAULT: [cell for cell in cells if cell.profile == NATIVE]}
        choices[TUNED] = [cell for cell in cells if cell.own]
        choices |= {name: [cell for cell in cells if cell.profile == name] for name in others}
        for name, chosen in choices.items():
            at = {cell.site: cell for cell in chosen}
            if at.keys() == set(sites):
                by_speed = metric([_speed(at[site]) for site in sites])
                assert by_speed
                bound = metric([_share(at[site]) for site in sites])
                listed.append(ByParameters(subject, variant, name, by_speed, bound, len(sites)))
    return listed


def _speed(cell: Slowdown) -> Interval:
    if cell.ratio is None:
        return ZERO
    ends = [min(1.0, 1 / end) for end in (cell.ratio.value, cell.ratio.high, cell.ratio.low)]
    return Interval(value=ends[0], low=min(ends), high=max(ends))


def _share(cell: Slowdown) -> Interval | None:
    if cell.ratio is None:
        return ZERO
    bound = cell.record.problem_bound
    if bound is None:
        return None
    return Interval(**{end: min(1.0, getattr(bound.share, end)) for end in ("value", "low", "high")})
