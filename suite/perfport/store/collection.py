"""A collection: the cases of any number of stored runs, by where they ran and what they solved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from ..model.errors import UsageError, nearest
from ..model.record import Record, Status
from .case import Case, Host, Site, Subject, by_inputs, site_of
from .comparable import Comparable, comparable
from .results import Run


@dataclass(frozen=True)
class Filter:
    """Which cases to take: texts that the name must contain, each empty for all.

    ``device`` is a part of a device's id, chip or host; the others are parts of ``workload``, ``problem``, and so on.
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
    what = (i.workload, i.problem, i.parameters, i.variant, i.tunables, i.profile, i.precision, i.backend)
    return json.dumps([*what, record.inputs], sort_keys=True)


class Collection:
    """The cases of some runs. Of several records of the same thing on one site the latest result counts.

    No failure replaces a result: what a device lacks says nothing of what was measured on another day or with more
    devices. One that is the code's (``wrong``, ``crashed``, ...) and later than the result stays with it, as ``later``.

    Where a device is plugged in does not tell it from its like in another run on the same host: the first of a chip's
    devices that a run used is that chip's first on this host, by the lowest number of any run.

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
        alike: dict[tuple[Site, str], list[Case]] = {}
        for run, cases, names in zip(self.runs, measured, named, strict=True):
            for record, own in cases:
                site = replace(own, devices=tuple(names[id_] for id_ in own.devices))
                case = Case(run, record, site, Subject.of(record))
                alike.setdefault((case.site, _identity(record)), []).append(case)
        standing = by_inputs([_standing(cases) for cases in alike.values()])
        self._known = {case.site for case in standing}
        self.cases = [case for case in standing if chosen is None or chosen.takes(case)]

    @cached_property
    def sites(self) -> list[Site]:
        """Every site that a case ran on."""
        return sorted({case.site for case in self.cases})

    @cached_property
    def places(self) -> list[Site]:
        """Every site, whatever number of devices took part."""
        return sorted({site.alone for site in self.sites})

    def label(self, site: Site) -> str:
        """The site's name: with its chip and its host where equal ids mean several in the runs, chosen or not."""
        alike = [other for other in self._known if other.devices == site.devices]
        parts = [site.chip] if len({other.chips for other in alike}) > 1 else []
        hosts = {other.host for other in alike if other.chips == site.chips}
        parts += [site.host.name(hosts)] if len(hosts) > 1 else []
        return f"{site.name} ({'; '.join(parts)})" if parts else site.name

    @cached_property
    def subjects(self) -> dict[Subject, list[Case]]:
        """The cases by what they solve."""
        subjects: dict[Subject, list[Case]] = {}
        for case in self.cases:
            subjects.setdefault(case.subject, []).append(case)
        return subjects

    @cached_property
    def families(self) -> dict[tuple[str, str, str], list[Subject]]:
        """The subjects by workload, problem and precision class: one problem at all of its settings."""
        families: dict[tuple[str, str, str], list[Subject]] = {}
        for subject in self.subjects:
            families.setdefault(subject.family, []).append(subject)
        return families

    @cached_property
    def current(self) -> list[Case]:
        """The cases; of what a place solved on several inputs, those on the inputs of its latest result alone."""
        last: dict[tuple[Subject, Site], Case] = {}
        for case in self.cases:
            place = case.subject.on_any_inputs, case.site.alone
            last[place] = max(last.get(place, case), case, key=currency)
        return [
            case for case in self.cases
            if case.subject.inputs == last[case.subject.on_any_inputs, case.site.alone].subject.inputs
        ]  # fmt: skip

    @cached_property
    def comparable(self) -> list[Comparable[Case]]:
        """The cases by what is ranked together, in the order of tables."""
        return comparable(self.cases)

    @cached_property
    def _by_site(self) -> dict[tuple[Subject, Site], list[Case]]:
        return {(cases.subject, cases.where): cases.rows for cases in self.comparable}

    def at(self, subject: Subject, site: Site) -> list[Case]:
        """Return the cases that solve a subject on a site."""
        return self._by_site.get((subject, site), [])

    @cached_property
    def workloads(self) -> list[str]:
        """Names of the workloads."""
        return sorted({case.subject.workload for case in self.cases})

    def preset(self, subject: Subject) -> str:
        """The preset's name, or the parameters."""
        named = sorted({case.record.identity.preset or "" for case in self.subjects[subject]} - {""})
        name = "/".join(named) or ", ".join(f"{k}={v}" for k, v in sorted(subject.values.items()))
        return f"{name}, {subject.inputs}" if subject.inputs else name


def collect(runs: Sequence[Run], chosen: Filter, where: str) -> Collection:
    """Return the cases that are meant.

    Raises
    ------
    UsageError
        If there is none; the text names the option that leaves nothing. ``where`` is what was looked through.
    """
    collection = Collection(runs, chosen)
    if not collection.cases:
        raise UsageError(chosen.complaint([case.names for case in Collection(runs).cases], where))
    return collection


def currency(case: Case) -> tuple[int, str]:
    """What orders cases by how much they count where one stands for several: by status, and then the latest."""
    return {Status.OK: 2, Status.CONTENDED: 1}.get(case.record.status, 0), case.record.time


def _standing(cases: Sequence[Case]) -> Case:
    """Return the case that counts of several of one identity and site: the latest of the best status."""
    held = max(enumerate(cases), key=lambda numbered: (currency(numbered[1]), numbered[0]))[1]
    if not held.record.status.measured:
        return held
    failed = [case.record for case in cases if case.record.status.failed and case.record.time > held.record.time]
    return replace(held, later=max(failed, key=lambda record: record.time)) if failed else held


def _names(runs: Sequence[Sequence[Site]]) -> list[dict[str, str]]:
    """Return, for the sites of each run, by what ids its devices go in a collection."""
    used: list[dict[tuple[str, str, Host], list[str]]] = []  # of each run: ids by platform, chip and host
    for sites in runs:
        chips = {id_: (chip, s.host) for s in sites for id_, chip in zip(s.devices, s.chips, strict=True)}
        used.append(defaultdict(list))
        for id_ in sorted(chips, key=_place):
            used[-1][_place(id_)[0], *chips[id_]].append(id_)
    lowest: dict[tuple[tuple[str, str, Host], int], str] = {}
    for alike in used:
        for kind, ids in alike.items():
            for number, id_ in enumerate(ids):
                lowest[kind, number] = min(lowest.get((kind, number), id_), id_, key=_place)
    return [{id_: lowest[kind, n] for kind, ids in alike.items() for n, id_ in enumerate(ids)} for alike in used]


def _place(id_: str) -> tuple[str, int]:
    """Backend and platform of a device, and its number there."""
    where, _, number = id_.rpartition(":")
    return where, int(number)


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
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise UsageError(f"{name!r} is on several machines: {', '.join(map(collection.label, alike))}")
    raise UsageError(f"no results on {name!r}{nearest(name, labels)}; there are: {', '.join(labels) or 'none'}")
