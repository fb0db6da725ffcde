"""What will run: cases, and groups of them that share a worker; which are left of a run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from ..measure.repeats import workers_of
from ..measure.sampling import Targets
from ..model.device import DeviceInfo
from ..model.record import Identity, Record, Status


def now() -> str:
    """Return the time as records hold it: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Case(BaseModel):
    """One variant at one set of tunables and one profile; ``key`` changes with all that can change its result.

    ``earlier`` is what the workers before measured of it: the next one adds its samples. ``defaults`` are the values of
    its tunables where nobody chooses any.
    """

    key: str
    identity: Identity
    macros: dict[str, int | float | str] = {}
    defaults: dict[str, Any] = {}
    earlier: Record | None = None

    def record(self, run: str, seed: int, status: Status, **fields: Any) -> Record:
        """Return a record of the case as of now.

        Parameters
        ----------
        run : str
            Name of the run.
        seed : int
            Of the timed inputs.
        fields
            Further fields of `Record`.
        """
        return Record(key=self.key, run=run, time=now(), status=status, identity=self.identity, seed=seed, **fields)


class Group(BaseModel):
    """Cases that run interleaved in one worker: one problem on one device. ``workers`` fresh ones do so in turn.

    ``inputs`` are the seeds of the timed instances by name. ``verify_seed`` is that of the inputs that verification
    draws; ``None``: any. ``first_round`` is the number of the first round of samples: a round that two cases have in
    common was measured side by side, so what is measured later goes on counting.
    """

    device: DeviceInfo
    workload: str
    problem: str
    preset: str | None
    parameters: dict[str, Any]
    inputs: dict[str, int]
    verify_seed: int | None = None
    targets: Targets
    timeout: float
    workers: int = 1
    first_round: int = 0
    cases: list[Case]

    @property
    def seed(self) -> int:
        """Seed of the first instance: the run's."""
        return next(iter(self.inputs.values()))

    @property
    def title(self) -> str:
        """Short name for progress and logs."""
        size = self.preset or ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.workload}/{self.problem} ({size}) on {self.device.id}"

    @property
    def place(self) -> str:
        """Where its samples are taken in turn: device, problem and parameters, as of `rounds_after`."""
        return _place([self.device.id], self.workload, self.problem, self.parameters)


def _place(devices: Sequence[str], workload: str, problem: str, parameters: Mapping[str, Any]) -> str:
    return json.dumps([*devices, workload, problem, parameters], sort_keys=True, default=str)


def rounds_after(records: Iterable[Record]) -> dict[str, int]:
    """Return the number of the first round after those of stored samples, by `Group.place`."""
    first: dict[str, int] = {}
    for record in records:
        if record.timing and record.timing.rounds:
            identity = record.identity
            place = _place(identity.devices, identity.workload, identity.problem, identity.parameters)
            first[place] = max(first.get(place, 0), 1 + max(record.timing.rounds))
    return first


def measurements(groups: Iterable[Group]) -> int:
    """Return how often cases are to be measured: by each worker that their groups want more of."""
    return sum(group.workers - workers_of(case.earlier) for group in groups for case in group.cases)


def undisturbed(records: Iterable[Record]) -> dict[str, Record]:
    """Return the last record of each case that has no contended worker's samples, by key.

    Parameters
    ----------
    records : iterable of Record
        In the order they were stored, replaced ones among them. A worker's record may replace its own, as one that a
        probe after its group made contended. What had no result once keeps nothing of before.
    """
    held: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        own = held[record.key]
        while own and (not record.status.measured or workers_of(own[-1]) >= workers_of(record)):
            own.pop()
        if record.status is Status.OK:
            own.append(record)
    return {key: own[-1] for key, own in held.items() if own}


def _left(
    record: Record | None, quiet: Record | None, workers: int, retry: Container[Status], spare: int | None
) -> tuple[bool, Record | None]:
    """Return whether a case is left, and what its next worker adds to; ``quiet`` is of `undisturbed`."""
    if record is None or record.status in retry:
        return True, quiet
    if not record.status.measured:
        return False, None
    partial = workers_of(record) < workers
    if record.status is Status.CONTENDED:
        if spare is None:
            return partial, quiet
        if spare >= workers - workers_of(quiet):
            return True, quiet
    return partial, record


def pending(
    groups: Sequence[Group],
    done: Sequence[Record],
    retry: Container[Status] = (),
    spare: Mapping[str, int] | None = None,
) -> list[Group]:
    """Return groups without the cases that are done: those that have a record of no status in ``retry``.

    A case that fewer workers have measured than its group wants is left, with what they measured. What is contended
    goes on from what was measured before that, as long as there are workers enough. Rounds are numbered on from the
    stored ones: nothing that is measured now was measured beside those.

    Parameters
    ----------
    groups : sequence of Group
    done : sequence of Record
        In the order they were stored, replaced ones among them.
    retry : container of Status
        Of records whose cases are measured again. Of a contended one its quiet workers still count.
    spare : mapping, optional
        By key, how many more workers may measure a case; without it any number, and what is contended by all workers
        of its group is done.
    """
    latest = {record.key: record for record in done}
    quiet = undisturbed(done)
    first = rounds_after(done)
    left = []
    for group in groups:
        cases = []
        for case in group.cases:
            before = quiet.get(case.key)
            more = None if spare is None else spare[case.key]
            is_left, earlier = _left(latest.get(case.key), before, group.workers, retry, more)
            if is_left:
                cases.append(case.model_copy(update={"earlier": earlier}))
        if cases:
            number = max(group.first_round, first.get(group.place, 0))
            left.append(group.model_copy(update={"cases": cases, "first_round": number}))
    return left
