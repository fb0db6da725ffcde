"""Run folders that several jobs filled with shares of one plan, merged: no case twice, none left out in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..model.record import Failure, Record, Status
from ..model.untrusted import inside, slug
from ..store.case import Host
from ..store.environment import ENVIRONMENT_VERSION
from ..store.results import EXPERIMENT, RECORDS, Run, Writer
from .cases import Case


@dataclass
class Part:
    """A job's run folder and what it was to hold.

    Attributes
    ----------
    pool : str
        Where it ran: parts of one pool are merged if their devices are the same.
    planned : list of Case, optional
        ``None`` where nobody knows.
    fate : str
        How the job ended, for the records of cases that nobody stored.
    """

    pool: str
    folder: Path
    planned: list[Case] | None
    fate: str
    run: Run | None = field(init=False)

    def __post_init__(self) -> None:
        self.run = Run(self.folder) if (self.folder / RECORDS).exists() else None

    @property
    def stored(self) -> list[Record]:
        """Its records."""
        return self.run.records if self.run else []

    @property
    def environment(self) -> dict[str, Any]:
        """Where it ran; empty where nobody knows."""
        return self.run.environment if self.run else {}


@dataclass
class Merged:
    """Records by part, each case once; those of lost cases by part; and the keys that several parts stored."""

    records: list[list[Record]]
    lost: list[list[Record]]
    duplicates: list[str]


def merge(parts: Sequence[Part], seed: int) -> Merged:
    """Pick a record for each case of all parts.

    Of several records of one case a measured one goes before a failure, then the latest counts. A planned case that no
    part stored gets a record of status ``crashed`` that says what became of its job.
    """
    best: dict[str, tuple[int, Record]] = {}
    copies: Counter[str] = Counter()
    for number, part in enumerate(parts):
        for record in part.stored:
            copies[record.key] += 1
            if record.key not in best or _rank(record) > _rank(best[record.key][1]):
                best[record.key] = (number, record)
    missing = set()
    lost: list[list[Record]] = []
    for part in parts:
        gone = [case for case in part.planned or () if case.key not in best and case.key not in missing]
        missing |= {case.key for case in gone}
        failure = Failure(reason=f"lost: {part.fate}")
        lost.append([case.record(part.folder.name, seed, Status.CRASHED, failure=failure) for case in gone])
    return Merged(
        records=[[record for where, record in best.values() if where == number] for number in range(len(parts))],
        lost=lost,
        duplicates=[key for key, count in copies.items() if count > 1],
    )


def _rank(record: Record) -> tuple[bool, str]:
    return record.status.measured, record.time


def write(top: Path, parts: Sequence[Part], merged: Merged) -> list[Path]:
    """Write a run folder below ``top`` for each pool, or several where hosts or the chips or drivers behind ids differ.

    Returns
    -------
    list of Path
        The folders. They are written anew whenever the parts are merged.
    """
    kinds: list[tuple[str, dict[str, Any], list[Record]]] = []
    # Last those that do not say where they ran: what they hold goes beside others of the same pool.
    order = sorted(range(len(parts)), key=lambda number: not parts[number].environment)
    for number in order:
        part, records = parts[number], [*merged.records[number], *merged.lost[number]]
        alike = [kind for kind in kinds if kind[0] == part.pool and _agree(kind[1], part.environment)]
        if alike:
            _join(alike[0][1], part.environment)
            alike[0][2].extend(records)
        elif part.environment or part.stored:
            kinds.append((part.pool, {"schema_version": ENVIRONMENT_VERSION, **part.environment}, records))
    written: list[Path] = []
    for pool, environment, records in kinds:
        folder = free = inside(top, f"{top.name}-{slug(pool)}")
        number = 1
        while free in written:
            number += 1
            free = folder.with_name(f"{folder.name}-{number}")
        writer = Writer(free)
        try:
            writer.environment({**environment, "run": free.name, "planned": len(records)})
            writer.text(EXPERIMENT, (top / EXPERIMENT).read_text())
            writer.text(RECORDS, "".join(f"{record.model_dump_json(exclude_none=True)}\n" for record in records))
        finally:
            writer.close()
        written.append(free)
    return written


def _agree(environment: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if other and Host.of(environment) != Host.of(other):
        return False
    known = environment.get("devices") or {}
    return all(
        device.get(name) == known[id_].get(name)
        for id_, device in (other.get("devices") or {}).items()
        for name in ("chip", "driver")
        if id_ in known
    )


def _join(environment: dict[str, Any], other: Mapping[str, Any]) -> None:
    if not other:
        return
    environment["started"] = min(filter(None, (environment.get("started"), other.get("started"))), default="")
    environment["probes"] = [*(environment.get("probes") or []), *(other.get("probes") or [])]
    if environment.get("code") and other.get("code"):
        code, others = environment["code"], other["code"]
        parts = [part for part in ("variants", "files", "made_of") if part in code]
        joined = {part: {**others.get(part, {}), **code[part]} for part in parts}
        environment["code"] = {**code, **joined}
    held, added = environment.get("defaults") or {}, other.get("defaults") or {}
    if held or added:
        environment["defaults"] = {id_: {**added.get(id_, {}), **held.get(id_, {})} for id_ in {**added, **held}}
    for name in ("devices", "broken_devices", "ceilings", "profiles", "workloads"):
        environment[name] = {**(other.get(name) or {}), **(environment.get(name) or {})}
