"""A collection: the cases of any number of stored runs, by where they ran and what they solved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from .comparison import common_clock, is_ranked, time_of
from .errors import UsageError, nearest
from .record import Record
from .results import Run


@dataclass(frozen=True, order=True)
class Site:
    """Where a case ran: devices of one machine, by their ids, and the chips behind them."""

    devices: tuple[str, ...]
    chips: tuple[str, ...]
    kind: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """The devices' ids."""
        return " + ".join(self.devices)

    @property
    def chip(self) -> str:
        """The chips' names."""
        return " + ".join(dict.fromkeys(self.chips))


@dataclass(frozen=True, order=True)
class Subject:
    """What is solved, wherever: cases of one subject may be compared and ranked together."""

    workload: str
    problem: str
    parameters: str
    precision: str

    @classmethod
    def of(cls, record: Record) -> Subject:
        """Return what a record's case solves."""
        i = record.identity
        return cls(i.workload, i.problem, json.dumps(i.parameters, sort_keys=True), i.precision)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(json.loads(self.parameters))


@dataclass(frozen=True)
class Case:
    """A stored record with its run and place."""

    run: Run
    record: Record
    site: Site
    subject: Subject

    @property
    def names(self) -> tuple[str, str, str, str, str]:
        """By what a `Filter` chooses it: workload, problem, variant, device with chip, precision."""
        i, site = self.record.identity, self.site
        return i.workload, i.problem, i.variant, f"{site.name} {site.chip}", i.precision


@dataclass(frozen=True)
class Filter:
    """Which cases to take: texts that the name must contain, each empty for all.

    ``device`` is a part of a device's id or chip; the others are parts of ``workload``, ``problem``, and so on.
    """

    workload: str = ""
    problem: str = ""
    variant: str = ""
    device: str = ""
    precision: str = ""

    def takes(self, case: Case) -> bool:
        """Whether a case is meant."""
        return self.names(*case.names)

    def names(self, workload: str, problem: str, variant: str, device: str, precision: str) -> bool:
        """Whether what is called so is meant; ``device`` holds ids and chips."""
        named = (
            (self.workload, workload), (self.problem, problem), (self.variant, variant), (self.device, device),
            (self.precision, precision),
        )  # fmt: skip
        return all(wanted.lower() in name.lower() for wanted, name in named)

    def complaint(self, known: Iterable[tuple[str, ...]], where: str) -> str:
        """Return why none of the cases that have these names is meant: which option names nothing.

        Parameters
        ----------
        known : iterable of tuple of str
            What `names` takes, of each case.
        where : str
            What was looked through.
        """
        given = {option: wanted for option, wanted in asdict(self).items() if wanted}
        for option, column in zip(asdict(self), zip(*known, strict=True), strict=False):
            wanted, there = given.get(option, ""), list(dict.fromkeys(column))
            if not any(wanted.lower() in name.lower() for name in there):
                complaint = f"--{option}: no {option} in {where} contains {wanted!r}{nearest(wanted, there)}"
                return f"{complaint}; there are: {', '.join(there[:12])}" + (", ..." if len(there) > 12 else "")
        options = " with " + ", ".join(f"--{option} {wanted!r}" for option, wanted in given.items()) if given else ""
        return f"no measured case in {where}{options}"


def _identity(record: Record) -> str:
    """What two records of the same thing on one site have in common."""
    i = record.identity
    parts = (i.workload, i.problem, i.parameters, i.variant, i.tunables, i.profile, i.precision, i.backend)
    return json.dumps(parts, sort_keys=True)


class Collection:
    """The cases of some runs. Of several records of the same thing on one site the latest counts.

    Where a device is plugged in does not tell it from its like in another run: the first of a chip's devices that a run
    used is that chip's first everywhere, by the lowest number of any run.

    Attributes
    ----------
    runs : list of Run
    cases : list of Case
        In the order of the runs.
    """

    def __init__(self, runs: Sequence[Run], chosen: Filter | None = None) -> None:
        self.runs = list(runs)
        measured = [
            [(record, site_of(run, record)) for record in run.records if record.provenance == "measured"]
            for run in self.runs
        ]
        named = _names([[site for _, site in cases] for cases in measured])
        latest: dict[tuple[Site, str], Case] = {}
        for run, cases, names in zip(self.runs, measured, named, strict=True):
            for record, own in cases:
                site = replace(own, devices=tuple(names[id_] for id_ in own.devices))
                case = Case(run, record, site, Subject.of(record))
                key = (case.site, _identity(record))
                held = latest.get(key)
                if held is None or held.record.time <= record.time:
                    latest[key] = case
        self.cases = [case for case in latest.values() if chosen is None or chosen.takes(case)]

    @cached_property
    def sites(self) -> list[Site]:
        """Every site that a case ran on."""
        return sorted({case.site for case in self.cases})

    def label(self, site: Site) -> str:
        """The site's name within the collection: with its chip where another machine has devices of the same ids."""
        alike = [other for other in self.sites if other.devices == site.devices]
        return f"{site.name} ({site.chip})" if len(alike) > 1 else site.name

    @cached_property
    def subjects(self) -> dict[Subject, list[Case]]:
        """The cases by what they solve."""
        found: dict[Subject, list[Case]] = {}
        for case in self.cases:
            found.setdefault(case.subject, []).append(case)
        return found

    @cached_property
    def workloads(self) -> list[str]:
        """Names of the workloads."""
        return sorted({case.subject.workload for case in self.cases})

    def preset(self, subject: Subject) -> str:
        """The preset's name, or the parameters."""
        named = sorted({case.record.identity.preset or "" for case in self.subjects[subject]} - {""})
        return "/".join(named) or ", ".join(f"{k}={v}" for k, v in sorted(subject.values.items()))


def collect(runs: Sequence[Run], chosen: Filter, where: str) -> Collection:
    """Return the cases that are meant.

    Raises
    ------
    UsageError
        If there is none; the text names the option that leaves nothing. ``where`` is what was looked through.
    """
    found = Collection(runs, chosen)
    if not found.cases:
        raise UsageError(chosen.complaint([case.names for case in Collection(runs).cases], where))
    return found


def site_of(run: Run, record: Record) -> Site:
    """Return where a record of a run was measured."""
    known = run.environment.get("devices") or {}
    devices = [known.get(id_) or {} for id_ in record.identity.devices]
    chips = tuple(str(device.get("chip") or device.get("name") or "unknown chip") for device in devices)
    return Site(tuple(record.identity.devices), chips, str(devices[0].get("kind") or "") if devices else "")


def _names(runs: Sequence[Sequence[Site]]) -> list[dict[str, str]]:
    """Return, for the sites of each run, by what ids its devices go in a collection."""
    used: list[dict[tuple[str, str], list[str]]] = []  # of each run: ids by platform and chip
    for sites in runs:
        chips = {id_: chip for site in sites for id_, chip in zip(site.devices, site.chips, strict=True)}
        used.append(defaultdict(list))
        for id_ in sorted(chips, key=_place):
            used[-1][_place(id_)[0], chips[id_]].append(id_)
    lowest: dict[tuple[tuple[str, str], int], str] = {}
    for alike in used:
        for kind, ids in alike.items():
            for number, id_ in enumerate(ids):
                lowest[kind, number] = min(lowest.get((kind, number), id_), id_, key=_place)
    return [{id_: lowest[kind, n] for kind, ids in alike.items() for n, id_ in enumerate(ids)} for alike in used]


def _place(id_: str) -> tuple[str, int]:
    """Backend and platform of a device, and its number there."""
    where, _, number = id_.rpartition(":")
    return where, int(number)


def fastest(cases: Iterable[Case]) -> Case | None:
    """Return the fastest of the cases that may be ranked, ``None`` where there is none.

    All are ranked on one clock where they have one in common, else each on its own.
    """
    ranked = [case for case in cases if is_ranked(case.record)]
    clock = common_clock(case.record for case in ranked)
    return min(ranked, key=lambda case: (time_of(case.record, clock), case.record.key), default=None)


def find_site(collection: Collection, name: str) -> Site:
    """Return the site of that label or device id.

    Raises
    ------
    UsageError
        If there is none, or more than one.
    """
    labels = {collection.label(site): site for site in collection.sites}
    if name in labels:
        return labels[name]
    alike = [site for site in collection.sites if site.name == name]
    if len(alike) > 1:
        raise UsageError(f"{name!r} is on several machines: {', '.join(map(collection.label, alike))}")
    raise UsageError(f"no results on {name!r}{nearest(name, labels)}; there are: {', '.join(labels) or 'none'}")
