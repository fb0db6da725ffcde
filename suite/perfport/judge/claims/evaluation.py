"""Evaluation: every claim at every place, each setting by the fastest records of its sides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...model.record import Identity, Interval
from ...store.case import Case, Site
from ...store.collection import Collection
from ...store.comparable import fastest, fastest_first, is_peer
from .ledger import Claim, Selector
from .measures import Missing, Number, measure
from .verdicts import Verdict, combined, judged, reason, settled


@dataclass(frozen=True)
class Evidence:
    """One setting of a claim on one site: the numbers, what they amount to, and the records they come from.

    Of ``numbers``, the first two are compared; a third stands beside them.
    """

    setting: str
    numbers: tuple[Number, ...]
    interval: Interval
    verdict: Verdict
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Judgement:
    """A claim on one site. ``stand_in``: the variants that were judged in place of those that the claim names."""

    workload: str
    claim: Claim
    site: Site
    verdict: Verdict
    reason: str
    evidence: tuple[Evidence, ...] = ()
    stand_in: str = ""

    @property
    def judged_on(self) -> str:
        """What the claim was judged on, where that is of another kind than what the source measured."""
        return "; ".join(filter(None, (self.claim.judged_on, self.stand_in)))


def evaluate(claims: Mapping[str, Iterable[Claim]], collection: Collection) -> list[Judgement]:
    """Judge every claim at every place of the collection that ran its workload, with however many devices.

    Where peers of a workload ran and nothing else there is nothing to judge. Of a workload that ran nowhere every place
    says so. Of a setting on several inputs those of the latest result count:
    no claim compares times on different ones.
    """
    index: dict[tuple[Site, str, str, str], list[Case]] = {}
    ran = set()
    for case in collection.current:
        identity = case.record.identity
        index.setdefault((case.site.alone, identity.workload, identity.problem, identity.variant), []).append(case)
        if not is_peer(case):
            ran.add((case.site.alone, identity.workload))
    return [
        _judge(workload, claim, site, index)
        for workload, listed in claims.items()
        for claim in listed
        for site in [site for site in collection.places if (site, workload) in ran] or collection.places
    ]


_Index = Mapping[tuple[Site, str, str, str], list[Case]]


def _judge(workload: str, claim: Claim, site: Site, index: _Index) -> Judgement:
    sides = [side for side in (claim.subject, claim.reference, claim.base) if side]
    rule = _Settings.of(sides)
    stand_ins: list[str] = []
    try:
        settings = []
        for side in sides:
            cases, stand_in = _cases(side, workload, claim, site, index)
            settings.append(_by_setting(side, cases, rule))
            stand_ins += [stand_in] if stand_in else []
        common = [key for key in settings[0] if all(key in other for other in settings[1:])]
        if not common:
            raise Missing("the sides were measured in no common setting")
        evidence = [_evidence(claim, key, [setting[key] for setting in settings]) for key in sorted(common)]
    except Missing as missing:
        verdict = settled(claim, site.kind, Verdict.NOT_MEASURED)
        return Judgement(
            workload, claim, site, verdict, claim.about if verdict is Verdict.NOT_APPLICABLE else str(missing)
        )
    intervals = [each.interval for each in evidence]
    mean = claim.over == "mean" and len(intervals) > 1
    judged_on = [_mean(intervals)] if mean else intervals
    verdict = settled(claim, site.kind, combined(claim, judged_on))
    why = (f"mean of {len(intervals)} settings: " if mean else "") + reason(claim, judged_on, verdict)
    return Judgement(workload, claim, site, verdict, why, tuple(evidence), "; ".join(dict.fromkeys(stand_ins)))


def _cases(side: Selector, workload: str, claim: Claim, site: Site, index: _Index) -> tuple[list[Case], str]:
    """Return the cases of a side, and what they are where other variants stand for those that it names."""

    def of(variants: list[str]) -> list[Case]:
        cases = [case for name in variants for case in index.get((site, workload, claim.problem, name), [])]
        return [case for case in cases if side.takes(case.record, claim.parameters)]

    own, instead = of(side.variant), of(side.instead)
    if not own and not instead and any((site, workload, claim.problem, name) in index for name in side.variants):
        raise Missing(f"no record of {side.name} in a setting that the claim is about")
    if fastest(own) or not fastest(instead):
        return own, ""
    return instead, f"{' or '.join(side.instead)} in place of {' or '.join(side.variant)}"


@dataclass(frozen=True)
class _Settings:
    """What one setting of a claim is: parameters that no side has of its own, and the precision class.

    Where all sides are one variant and name tunables, these are ``tunables``, and a setting has all others; sides of
    one variant at different parameters may have other tunables there. ``free``: the sides say of which precision class
    they are.
    """

    own: frozenset[str]
    tunables: frozenset[str] | None
    free: bool

    @classmethod
    def of(cls, sides: Sequence[Selector]) -> _Settings:
        own = frozenset(name for side in sides for name in side.parameters)
        tunables = frozenset(name for side in sides for name in side.tunables)
        alike = len(sides) > 1 and len({(*side.variants, side.profile) for side in sides}) == 1
        return cls(own, tunables if alike and tunables else None, any(side.precision for side in sides))

    def key(self, identity: Identity) -> str:
        """Return what the records of one setting have in common."""
        shared = {name: value for name, value in identity.parameters.items() if name not in self.own}
        if self.tunables is not None:
            shared |= {name: value for name, value in identity.tunables.items() if name not in self.tunables}
        return json.dumps([shared, "" if self.free else identity.precision], sort_keys=True)


def _mean(intervals: Sequence[Interval]) -> Interval:
    """Return the arithmetic mean, with the mean of the ends: wider than the 95 % interval of the mean."""
    ends = ("value", "low", "high")
    return Interval(**{end: sum(getattr(each, end) for each in intervals) / len(intervals) for end in ends})


def _by_setting(side: Selector, cases: Sequence[Case], rule: _Settings) -> dict[str, list[Case]]:
    """Return the ranked cases of each setting, the fastest first."""
    if not cases:
        raise Missing(f"no record of {side.name}")
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(rule.key(case.record.identity), []).append(case)
    ranked = {key: held for key, group in groups.items() if (held := fastest_first(group))}
    if not ranked:
        record = cases[0].record
        why = record.failure.reason if record.failure else ""
        raise Missing(f"{side.name} is {record.status.value}" + (f": {why}" if why else ""))
    return ranked


def _evidence(claim: Claim, key: str, sides: list[list[Case]]) -> Evidence:
    records = [[case.record for case in side] for side in sides]
    interval, numbers = measure(claim, records)
    parameters, _ = json.loads(key)
    setting = ", ".join(f"{name}={value}" for name, value in sorted(parameters.items()))
    verdict = settled(claim, sides[0][0].site.kind, judged(claim, interval))
    return Evidence(setting, numbers, interval, verdict, tuple(side[0].key for side in records))
