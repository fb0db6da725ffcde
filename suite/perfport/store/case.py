"""A case: a stored record with where it ran and what it solved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..model.names import seeds
from ..model.record import Record
from .results import Run

GIB = 1 << 30


@dataclass(frozen=True, order=True, slots=True)
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


@dataclass(frozen=True, order=True, slots=True)
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
    def several(self) -> bool:
        """Whether more devices took part than have ids."""
        return self.count > len(self.devices)

    @property
    def alone(self) -> Site:
        """The same place, with no more devices than have ids."""
        return replace(self, count=len(self.devices))

    @property
    def chip(self) -> str:
        """The chips' names."""
        return " + ".join(dict.fromkeys(self.chips))

    @property
    def make(self) -> str:
        """The chips, and of a CPU the host's cores: a virtual machine's processor has one name whatever its size."""
        return f"{self.chip}, {self.host.cores} cores" if self.kind == "cpu" and self.host.cores else self.chip


def devices_name(devices: Sequence[str], count: int) -> str:
    """Return what ``count`` devices are called of which some have ids."""
    more = count - len(devices)
    return " + ".join(devices) + (f" + {more} more" if more > 0 else "")


@dataclass(frozen=True, order=True, slots=True)
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
    def family(self) -> tuple[str, str, str]:
        """Workload, problem and precision class: what is solved, at any setting."""
        return self.workload, self.problem, self.precision

    @property
    def on_any_inputs(self) -> Subject:
        """The same, whatever the inputs."""
        return replace(self, inputs="")

    @property
    def values(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(json.loads(self.parameters))


@dataclass(frozen=True, slots=True)
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


def site_of(run: Run, record: Record) -> Site:
    """Return where a record of a run was measured."""
    known = run.environment.get("devices") or {}
    devices = [known.get(id_) or {} for id_ in record.identity.devices]
    chips = tuple(str(device.get("chip") or device.get("name") or "unknown chip") for device in devices)
    kind = str(devices[0].get("kind") or "") if devices else ""
    identity = record.identity
    return Site(tuple(identity.devices), chips, Host.of(run.environment), identity.device_count, kind)


def cases_of(*runs: Run) -> list[Case]:
    """Return every record of a run, and of what was imported beside it, as a case, in their order."""
    held = [(run, record) for run in runs for record in run.records]
    return by_inputs([Case(run, record, site_of(run, record), Subject.of(record)) for run, record in held])


def by_inputs(cases: Sequence[Case], several: Container[Subject] | None = None) -> list[Case]:
    """Tell subjects apart by their inputs: times on other inputs are other quantities.

    Parameters
    ----------
    cases : sequence of Case
    several : container of Subject, optional
        Those to tell apart (without their inputs); by default those that one site solved on several inputs.
    """
    if several is None:
        on: dict[tuple[Subject, Site], set[str]] = defaultdict(set)
        for case in cases:
            on[case.subject, case.site.alone].add(seeds(case.record.inputs))
        several = {subject for (subject, _), inputs in on.items() if len(inputs) > 1}
    return [
        replace(case, subject=replace(case.subject, inputs=seeds(case.record.inputs)))
        if case.subject.on_any_inputs in several
        else case
        for case in cases
    ]
