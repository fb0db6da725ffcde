"""The portability metric: how well an application does over a named set of platforms.

For application a, problem p and platforms H the metric is the harmonic mean of its efficiencies, 0 where one of the
platforms is not supported (S. J. Pennycook, J. D. Sewall, V. W. Lee, "Implications of a metric for performance
portability", Future Generation Computer Systems 92, 2019):

    PP(a, p, H) = |H| / sum over i in H of 1 / e_i(a, p)     or 0

*Architectural* efficiency is the share of the problem bound, *application* efficiency the share of the speed of the
best implementation known on that platform. Measured results alone enter.

A platform where the variant is ``unsupported``, ``wrong``, ``crashed``, ``timeout`` or has no valid result for another
reason of its own counts as 0. Where it is ``unavailable`` (a library or data set is missing), or was not run, nothing
is known: the platform is left out, and named. So it is where everything was ``contended``, and nothing is the best
known, and where a ``contended`` result is faster than all that was not: its clocks may be what was disturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ..model.names import order
from ..model.record import Interval, Record, Status
from ..run.sources import shipped
from ..store.case import Case, Site, Subject
from ..store.collection import Collection
from ..store.comparable import fastest, is_control, is_peer, leading
from ..store.crossfit import compare_best
from ..store.ratios import is_measured, is_ranked
from .headline import by_amount, standing

#: Says nothing of the variant: left out and named.
UNKNOWN = (Status.UNAVAILABLE,)
DISTURBED = "contended, and nothing undisturbed to compare with"
AHEAD = "contended, and nothing undisturbed is faster"
ZERO = Interval(value=0.0, low=0.0, high=0.0)
ONE = Interval(value=1.0, low=1.0, high=1.0)
#: The application that takes the best variant of the workload on each platform.
BEST = "(best on each)"


class Rule(StrEnum):
    """By which rule the settings of a problem are chosen, like with like where there is anything alike."""

    HEADLINE = "headline size"
    COMMON = "largest common"
    OWN = "each its own"


@dataclass(frozen=True)
class Choice:
    """At which setting each platform solves a problem, by which rule, and where that is not its headline size."""

    settings: Mapping[Site, Subject]
    rule: Rule
    off: frozenset[Site] = frozenset()


@dataclass(frozen=True)
class Efficiency:
    """A variant on one platform: its efficiencies, 0 where it has no valid result, and where they come from."""

    site: Site
    status: Status
    architectural: Interval | None
    application: Interval
    record: Record


@dataclass(frozen=True)
class Portability:
    """An application on one problem over a set of platforms.

    Attributes
    ----------
    choice : Choice
        What was solved, by site.
    efficiencies : tuple of Efficiency
        Of the platforms that count, in the order of the set.
    left_out : dict
        Why, by site.
    """

    choice: Choice
    application: str
    efficiencies: tuple[Efficiency, ...]
    left_out: Mapping[Site, str] = field(default_factory=dict)

    @property
    def subject(self) -> Subject:
        """What is solved; its parameters may differ by site."""
        return next(iter(self.choice.settings.values()))

    @property
    def chips(self) -> int:
        """How many distinct chips the platforms are."""
        return len({chip for e in self.efficiencies for chip in e.site.chips})

    @property
    def architectural(self) -> Interval | None:
        """The metric by share of the problem bound; ``None`` where no platform counts, or one has no ceilings."""
        return metric([e.architectural for e in self.efficiencies])

    @property
    def by_application(self) -> Interval | None:
        """The metric by share of the best known; ``None`` where no platform counts."""
        return metric([e.application for e in self.efficiencies])


def harmonic_mean(efficiencies: Sequence[float]) -> float:
    """Return the portability metric of efficiencies: their harmonic mean, 0 if one is 0.

    Raises
    ------
    ValueError
        Without any, or for one that is not within [0, 1].
    """
    if not efficiencies:
        raise ValueError("the metric of no platform is not defined")
    if any(not 0 <= e <= 1 for e in efficiencies):
        raise ValueError(f"an efficiency is not within 0 and 1: {list(efficiencies)}")
    if min(efficiencies) == 0:
        return 0.0
    # In units of the smallest, so that no reciprocal overflows; rounding must not leave the range of the values.
    least = min(efficiencies)
    mean = least * (len(efficiencies) / sum(least / e for e in efficiencies))
    return min(max(mean, least), max(efficiencies))


def metric(values: Sequence[Interval | None]) -> Interval | None:
    """Return the metric of efficiencies with its interval: it grows with each of them, so ends come from ends.

    ``None`` where one is not known, unless another is 0.
    """
    known = [each for each in values if each is not None]
    if any(each.value == 0 for each in known):
        return ZERO
    if not known or len(known) < len(values):
        return None
    return Interval(
        value=harmonic_mean([each.value for each in known]),
        low=harmonic_mean([each.low for each in known]),
        high=harmonic_mean([each.high for each in known]),
    )


def _capped(share: Interval) -> Interval:
    """An efficiency is at most 1: a share above the bound within its uncertainty counts as 1."""
    return Interval(value=min(share.value, 1.0), low=min(share.low, 1.0), high=min(share.high, 1.0))


def efficiency(case: Case, own: Sequence[Case], rivals: Sequence[Case]) -> Efficiency:
    """Return a case's efficiencies.

    Parameters
    ----------
    case : Case
    own : sequence of Case
        Those that it is the fastest of, itself among them.
    rivals : sequence of Case
        Every case of its subject on its site.
    """
    record = case.record
    if not is_measured(record):
        return Efficiency(case.site, record.status, ZERO, ZERO, record)
    architectural = _capped(record.problem_bound.share) if record.problem_bound else None
    candidates = [each.record for each in own if is_ranked(each.record)] or [record]
    rivals = list(filter(_known, rivals))
    shares = [ONE]
    for clock in ("span", "wall"):  # the best known on either: a host's variants have no device events
        known = [rival.record for rival in rivals if _clock(rival.record) == clock]
        if known and (compared := compare_best(known, candidates)):
            shares.append(_capped(compared.ratio))
    return Efficiency(case.site, record.status, architectural, min(shares, key=lambda share: share.value), record)


def _known(case: Case) -> bool:
    """Whether a case may be the best known on its platform."""
    return is_ranked(case.record) and not is_control(case)


def _clock(record: Record) -> str:
    return record.timing.rank if record.timing else ""


def portability(collection: Collection, platforms: Sequence[Site] | None = None) -> list[Portability]:
    """Return the metric of every variant of every problem over a set of platforms, or over `each_device`.

    At which setting a problem is taken, `settings` says.

    For each variant and platform its fastest setting of tunables counts, of those without another device's tuning
    parameters. Peers are no applications, but they count among what is best known, as control arms do not. Last of each
    problem comes `BEST`.
    """
    metrics = []
    for _, subjects in sorted(collection.families.items()):
        sites = each_device(collection, subjects) if platforms is None else platforms
        choice = settings(collection, subjects, sites)
        chosen = choice.settings
        here = {site: collection.at(chosen[site], site) if site in chosen else [] for site in sites}
        names = applications(case for cases in here.values() for case in cases)
        metrics += [_over(choice, name, here) for name in names]
    return metrics


def device_of(site: Site) -> str:
    """Return what one model of device is called on whatever host: its platform and chip, of a CPU with its cores."""
    families = " + ".join(device.rpartition(":")[0] for device in site.devices)
    return f"{families} ({site.make})"


def each_device(collection: Collection, subjects: Sequence[Subject]) -> list[Site]:
    """Return every device of the results once: one model, on whatever hosts and under whatever number, is one platform.

    Of equal devices that one stands for all that has the problem's headline size, with results of most of the variants
    and peers that there are today, the latest of these: beside a run of a part, what else ran would seem to be missing.
    A device that did not try the problem is there all the same. A CPU's cores tell it from others of its name.
    """
    own = standing(collection, subjects, collection.places)
    living = _living(subjects[0])
    equal: dict[tuple[str, int], list[Site]] = {}
    for site in collection.places:
        equal.setdefault((device_of(site), site.count), []).append(site)

    def known(site: Site) -> tuple[bool, int, str]:
        if site not in own:
            return False, -1, ""
        cases = [case for case in collection.at(own[site].subject, site) if not case.record.identity.profile]
        names = {case.record.identity.variant for case in filter(_known, cases)}
        latest = max((case.record.time for case in cases), default="")
        return own[site].headline is True, len(names if living is None else names & living), latest

    return sorted(max(sites, key=known) for sites in equal.values())


def _living(subject: Subject) -> set[str] | None:
    """Return the names of a problem's variants and peers today; ``None`` where its workload is not here."""
    workload = shipped(subject.workload)
    if workload is None or subject.problem not in workload.problems:
        return None
    return set(workload.variants[subject.problem])


def applications(cases: Iterable[Case]) -> list[str]:
    """Return the variants that are no peers, in the order of their ladder, and `BEST`; nothing without any."""
    names = {case.record.identity.variant: order(case.record) for case in cases if _own(case)}
    return [*sorted(names, key=lambda name: names[name]), BEST] if names else []


def _own(case: Case) -> bool:
    return not is_peer(case) and not case.record.identity.profile


def settings(collection: Collection, subjects: Sequence[Subject], platforms: Sequence[Site]) -> Choice:
    """Return at which setting each platform solves a problem; platforms that did not run it are left out.

    The first of these that there is, of the platforms where anything succeeded: the setting that is the headline size
    of all of them (`standing`) and succeeded on all; the largest that succeeded on all; of each its own headline size,
    or else its largest. A data-centre GPU and a laptop may share no sensible size: both efficiencies then refer to what
    is possible on the platform at that size.

    A platform where nothing succeeded takes the setting of the others, so that its failures count.
    """
    ran: dict[Subject, dict[bool, set[Site]]] = {}
    for subject in by_amount(collection, subjects):
        ran[subject] = {True: set(), False: set()}
        for case in collection.subjects[subject]:
            if case.site in platforms:
                ran[subject][is_ranked(case.record)].add(case.site)
    own = standing(collection, subjects, platforms)
    everywhere = {site for sites in ran.values() for site in sites[True]}
    common = [subject for subject, sites in ran.items() if everywhere and sites[True] == everywhere]
    if not common:
        off = frozenset(site for site in own if own[site].headline is False)
        return Choice({site: own[site].subject for site in sorted(own)}, Rule.OWN, off)
    shared = {own[site].subject if own[site].headline else None for site in everywhere}
    at_headline = [subject for subject in common if shared == {subject}]
    preferred = [*at_headline, *common, *ran]
    chosen = {
        site: next(subject for subject in preferred if site in ran[subject][site in everywhere]) for site in sorted(own)
    }
    return Choice(chosen, Rule.HEADLINE if at_headline else Rule.COMMON)


def efficiencies(name: str, here: Mapping[Site, Sequence[Case]]) -> dict[Site, Efficiency | str]:
    """Return an application's efficiency on each platform, or why nothing is known there.

    Parameters
    ----------
    name : str
        A variant, or `BEST`.
    here : mapping
        All cases of one subject on each platform, peers included.
    """
    reached: dict[Site, Efficiency | str] = {}
    for site, cases in here.items():
        own = [case for case in cases if _own(case)]
        own = [case for case in own if case.record.identity.variant == name or (name == BEST and not is_control(case))]
        case = _standing(own)
        if case is None:
            reached[site] = "not run"
        elif case.record.status in UNKNOWN:
            reached[site] = case.record.failure.reason if case.record.failure else case.record.status.value
        else:
            found = efficiency(case, own, cases)
            reached[site] = _why_unknown(found, cases) or found
    return reached


def _why_unknown(found: Efficiency, cases: Sequence[Case]) -> str:
    """Return why an efficiency says nothing, empty where it does: what is contended is not the best known."""
    if found.status is not Status.CONTENDED or found.application.value < 1:
        return ""
    return AHEAD if any(map(_known, cases)) else DISTURBED


def _standing(cases: Sequence[Case]) -> Case | None:
    """The case that stands for a variant on a platform: its fastest ranked one, else a contended one, or a failure."""
    return (
        fastest(cases)
        or leading(cases)
        or min(cases, key=lambda c: (c.record.status in UNKNOWN, c.record.key), default=None)
    )


def _over(choice: Choice, name: str, here: Mapping[Site, Sequence[Case]]) -> Portability:
    known = efficiencies(name, here)
    counted = tuple(each for each in known.values() if isinstance(each, Efficiency))
    left_out = {site: each for site, each in known.items() if isinstance(each, str)}
    return Portability(choice, name, counted, left_out)
