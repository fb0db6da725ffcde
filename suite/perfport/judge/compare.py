"""Contrasts: two runs, two devices or two variants, case by case, with a verdict for each.

`perfport compare` ends with an exit code that says whether anything got worse, for nightly jobs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ..measure.intervals import Verdict
from ..model.errors import UsageError, nearest
from ..model.record import Record, Status
from ..store.case import Case, Site, by_inputs
from ..store.collection import Filter, collect, find_site
from ..store.comparable import fastest_first
from ..store.crossfit import compare_best
from ..store.ratios import Comparison, is_measured
from ..store.results import load_runs

Kind = Literal["runs", "devices", "variants"]
#: Records by name; of several the fastest counts, which comes first.
_Side = dict[str, list[Record]]
#: The end of a name under which two devices meet with tunables of their own.
OWN = " [each with its own]"


@dataclass(frozen=True)
class Pair:
    """One case on both sides. ``comparison`` says how many times faster ``b`` is; ``None`` where a side has no result.

    ``a`` or ``b`` is ``None`` where that side has no such case.
    """

    kind: Kind
    name: str
    a: Record | None
    b: Record | None
    comparison: Comparison | None

    @property
    def own(self) -> bool:
        """Whether two devices meet, each with tunables that the other does not have, at the fastest of these."""
        return self.name.endswith(OWN)

    @property
    def wrong(self) -> bool:
        """Whether the second side's result is wrong or cannot be."""
        return self.b is not None and self.b.status in (Status.WRONG, Status.IMPOSSIBLE)

    @property
    def lost(self) -> bool:
        """Whether the first side has a result and the second should have one, too.

        A run should have what another had. Devices and variants may differ in what they support.
        """
        if self.a is None or not is_measured(self.a):
            return False
        if self.kind == "runs":
            return self.b is None or not is_measured(self.b)
        return self.b is not None and self.b.status.failed

    @property
    def slower(self) -> bool:
        """Whether the second side is slower, its whole interval."""
        return self.comparison is not None and self.comparison.verdict is Verdict.SLOWER


def contrast(a: str, b: str, results: Sequence[Path], chosen: Filter) -> tuple[Kind, list[Pair]]:
    """Compare two run folders, two devices of ``results``, or two variants of ``results``.

    Devices are compared on equal problems, variants and tunables, and variants of which each device has other tunables
    at the fastest of these; variants on equal problems and devices, at the fastest of their settings.

    Raises
    ------
    UsageError
        If a side is none of these, the sides are not of one kind, or no case is on both.
    """
    kind, sides = _sides(a, b, results, chosen)
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    pairs = []
    for name in sorted(names):
        bases, others = (side.get(name) for side in sides)
        compared = compare_best(bases, others) if bases and others else None
        pairs.append(Pair(kind, name, bases[0] if bases else None, others[0] if others else None, compared))
    if not any(pair.a and pair.b for pair in pairs):
        raise UsageError(f"compare: no case is on both sides, {a!r} and {b!r}")
    return kind, pairs


def _sides(a: str, b: str, results: Sequence[Path], chosen: Filter) -> tuple[Kind, list[_Side]]:
    folders = [Path(side) for side in (a, b)]
    if all(folder.is_dir() for folder in folders):
        collections = [collect(load_runs([folder]), chosen, str(folder)) for folder in folders]
        # What is now wrong must not hide behind an earlier result.
        cases = _by_inputs([[replace(case, record=case.newest) for case in side.cases] for side in collections])
        labels = _site_names(*({case.site for case in side} for side in cases))
        return "runs", [_named(side, ("devices", "variant", "tunables", "profile"), labels) for side in cases]
    missing = [str(folder) for folder in folders if "/" in str(folder) and not folder.is_dir()]
    if missing:
        raise UsageError(f"compare: {missing[0]}: no such folder")
    held = collect(load_runs(results), chosen, ", ".join(map(str, results)))
    known = {site.name for site in held.sites} | {held.label(site) for site in held.sites}
    if a in known and b in known:
        sites = [find_site(held, side) for side in (a, b)]
        by_site = [[case for case in held.cases if case.site == site] for site in sites]
        return "devices", _meeting(*by_site)
    variants = {case.record.identity.variant for case in held.cases}
    for side in (a, b):
        if side not in variants:
            where = ", ".join(map(str, results))
            raise UsageError(
                f"compare: {side!r} is no run folder, and no device or variant of {where}"
                f"{nearest(side, [*known, *variants])}"
            )
    labels = _site_names(held.sites)
    chosen_cases = [[case for case in held.cases if case.record.identity.variant == v] for v in (a, b)]
    return "variants", [_named(cases, ("devices",), labels) for cases in chosen_cases]


def _meeting(*sides: Sequence[Case]) -> list[_Side]:
    """Return what two devices have by equal tunables, and of what is left of a variant on both, all by one name."""
    parts = ("variant", "tunables", "profile")
    named = [_named(side, parts) for side in sides]
    equal = named[0].keys() & named[1].keys()
    left = [[case for case in side if _name(case, parts, {}) not in equal] for side in sides]
    own = [_named(side, ("variant", "profile")) for side in left]
    both = own[0].keys() & own[1].keys()
    met = {_name(case, parts, {}) for side in left for case in side if _name(case, ("variant", "profile"), {}) in both}
    return [
        {name: records for name, records in full.items() if name not in met}
        | {name + OWN: records for name, records in further.items() if name in both}
        for full, further in zip(named, own, strict=True)
    ]


def _by_inputs(sides: Sequence[Sequence[Case]]) -> list[list[Case]]:
    """Tell cases apart by their inputs on both sides, where one of them has several for the same setting."""
    several = {case.subject.on_any_inputs for side in sides for case in side if case.subject.inputs}
    return [by_inputs(side, several) for side in sides]


def _site_names(*sides: Iterable[Site]) -> dict[Site, str]:
    """Return what each site is called: its devices, and chip and host where they mean several on one side."""
    several = {name for side in sides for name, count in Counter(site.name for site in side).items() if count > 1}
    sites = {site for side in sides for site in side}
    hosts = {site.host for site in sites}
    return {
        site: f"{site.name} ({site.chip}; {site.host.name(hosts)})" if site.name in several else site.name
        for site in sites
    }


def _named(cases: Sequence[Case], parts: Sequence[str], sites: Mapping[Site, str] | None = None) -> _Side:
    """Return the records of each name (what is solved, and what of the identity both sides share), the fastest first.

    Those are the ones that may be ranked; without any it is a single one.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(_name(case, parts, sites or {}), []).append(case)
    return {name: [case.record for case in fastest_first(group) or group[:1]] for name, group in groups.items()}


def _name(case: Case, parts: Sequence[str], sites: Mapping[Site, str]) -> str:
    identity = case.record.identity
    words = [f"{identity.workload}/{identity.problem}"]
    if "variant" in parts:
        words.append(identity.variant)
    words.append(_flat(identity.parameters))
    if "tunables" in parts and identity.tunables:
        words.append(f"[{_flat(identity.tunables)}]")
    if "profile" in parts and identity.profile:
        words.append(f"profile {identity.profile}")
    words += [identity.precision, case.subject.inputs]
    if "devices" in parts:
        words.append(f"on {sites[case.site]}")
    return " ".join(filter(None, words))


def _flat(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in sorted(values.items()))
