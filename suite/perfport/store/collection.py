"""A collection: the cases of any number of stored runs, by where they ran and what they solved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from ..model.errors import UsageError, nearest
from ..model.names import seeds
from ..model.record import Record, Status
from .ratios import common_clock, is_ranked, time_of
from .results import Run

GIB = 1 << 30


@dataclass(frozen=True, order=True)
class Host:
    """A machine by what environment files tell of it: processor, logical cores, memory in whole GiB.

    Machines have no name here, on purpose, and containers none that lasts. So two machines of one make and size are one
    host, and a machine that gets more memory is another one.
    """

    cpu: str = ""
    cores: int = 0
    memory: int = 0

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Host:
        """Return the host that an environment file names."""
        told = environment.get("host") or {}
        return cls(
            str(told.get("cpu") or ""), int(told.get("cores") or 0), round((told.get("memory_bytes") or 0) / GIB)
        )

    def name(self, others: Iterable[Host] = ()) -> str:
        """Return how the host is called: by its cores, and by what else tells it from others."""
        rivals = [other for other in others if other != self]
        parts = [f"{self.cores}-core host"]
        if any(other.cores == self.cores for other in rivals):
            parts.append(f"{self.memory} GiB")
        if any((other.cores, other.memory) == (self.cores, self.memory) for other in rivals):
            parts.append(self.cpu or "unknown processor")
        return "; ".join(parts)


@dataclass(frozen=True, order=True)
class Site:
    """Where a case ran: devices of one machine, by their ids, the chips behind them, and how many took part.

    ``count`` is more than the devices that have ids where a variant takes further ones by itself.
    """

    devices: tuple[str, ...]
    chips: tuple[str, ...]
    host: Host = Host()
    count: int = 1
    kind: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """The devices' ids, and how many more took part."""
        return devices_name(self.devices, self.count)

    @property
    def alone(self) -> Site:
        """The same place, with no more devices than have ids."""
        return replace(self, count=len(self.devices))

    @property
    def chip(self) -> str:
        """The chips' names."""
        return " + ".join(dict.fromkeys(self.chips))


def devices_name(devices: Sequence[str], count: int) -> str:
    """Return what ``count`` devices are called of which some have ids."""
    more = count - len(devices)
    return " + ".join(devices) + (f" + {more} more" if more > 0 else "")


@dataclass(frozen=True, order=True)
class Subject:
    """What is solved, wherever: cases of one subject may be compared and ranked together.

    ``inputs`` tells on what inputs where cases of one collection and site are on several, and is empty elsewhere.
    """

    workload: str
    problem: str
    parameters: str
    precision: str
    inputs: str = ""

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
    """A stored record with its run and place.

    ``later`` is the record of a later run in which the same thing failed, where this one is a result.
    """

    run: Run
    record: Record
    site: Site
    subject: Subject
    later: Record | None = None

    @property
    def newest(self) -> Record:
        """The last that is known of the case: the later failure, if there is one."""
        return self.later or self.record

    @property
    def names(self) -> tuple[str, str, str, str, str]:
        """By what a `Filter` chooses it: workload, problem, variant, device with chip, precision."""
        i, site = self.record.identity, self.site
        device = f"{site.name} {site.chip} {site.host.name()}"
        return i.workload, i.problem, i.variant, device, i.precision


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
        found: dict[tuple[Site, str], list[Case]] = {}
        for run, cases, names in zip(self.runs, measured, named, strict=True):
            for record, own in cases:
                site = replace(own, devices=tuple(names[id_] for id_ in own.devices))
                case = Case(run, record, site, Subject.of(record))
                found.setdefault((case.site, _identity(record)), []).append(case)
        held = _by_inputs([_standing(cases) for cases in found.values()])
        self._known = {case.site for case in held}
        self.cases = [case for case in held if chosen is None or chosen.takes(case)]

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
        name = "/".join(named) or ", ".join(f"{k}={v}" for k, v in sorted(subject.values.items()))
        return f"{name}, {subject.inputs}" if subject.inputs else name


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
    kind = str(devices[0].get("kind") or "") if devices else ""
    identity = record.identity
    return Site(tuple(identity.devices), chips, Host.of(run.environment), identity.device_count, kind)


def _standing(cases: Sequence[Case]) -> Case:
    """Return the case that counts of several of one identity and site: the latest of the best status."""
    order = {Status.OK: 2, Status.CONTENDED: 1}
    _, _, _, held = max(
        (order.get(case.record.status, 0), case.record.time, number, case) for number, case in enumerate(cases)
    )
    if not held.record.status.measured:
        return held
    failed = [case.record for case in cases if case.record.status.failed and case.record.time > held.record.time]
    return replace(held, later=max(failed, key=lambda record: record.time)) if failed else held


def _by_inputs(cases: Sequence[Case]) -> list[Case]:
    """Tell subjects apart by their inputs, where one site has several: times on other inputs are other quantities."""
    on: dict[tuple[Subject, Site], set[str]] = defaultdict(set)
    for case in cases:
        on[case.subject, case.site.alone].add(seeds(case.record.inputs))
    several = {subject for (subject, _), inputs in on.items() if len(inputs) > 1}
    return [
        replace(case, subject=replace(case.subject, inputs=seeds(case.record.inputs)))
        if case.subject in several
        else case
        for case in cases
    ]


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
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise UsageError(f"{name!r} is on several machines: {', '.join(map(collection.label, alike))}")
    raise UsageError(f"no results on {name!r}{nearest(name, labels)}; there are: {', '.join(labels) or 'none'}")
