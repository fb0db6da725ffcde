"""Bounds of stored records, computed again: by what a problem demands as the suite states it now.

Times, ceilings and traffic stay as they were measured. A problem is made again from the parameters and the seeds that a
record holds; where it cannot be (its workload is not here, its file is gone) a record keeps no bound.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from ..machine.device_profile import match_profile
from ..measure.roofline import datasheet_ceilings, impossible, place
from ..model.errors import PerfportError, UsageError, cut, leave_out
from ..model.record import SCHEMA_VERSION, Failure, Record, Status
from ..model.work import mean_of
from ..store.environment import read_environment
from ..store.reading import REBOUND, lines, parse
from ..store.results import RECORDS
from ..store.writing import replace
from ..workload import Problem, Workload

BOUNDS = ("problem_bound", "datasheet_bound", "variant_bound")


def rebound(
    folder: Path, workloads: Mapping[str, Workload], tell: Callable[[str], None] = lambda _: None
) -> Counter[str]:
    """Compute the bounds of a run's records again and replace its file of records.

    Records of schema version 2, whose bounds had other definitions, become ones of today's. A time below its bound
    becomes ``impossible``; nothing else of a record is changed.

    Parameters
    ----------
    folder : Path
        The run.
    workloads : mapping
        Those that there are, by name.
    tell : callable
        Told of each problem that is made.

    Returns
    -------
    Counter
        Why records have no bound, and how many.

    Raises
    ------
    UsageError
        If the folder holds no run, or a line of it is no record: then nothing is replaced.
    InfrastructureError
        If the file cannot be written.
    """
    environment, left_out = read_environment(folder)
    for error in left_out:
        leave_out(error)
    path = folder / RECORDS
    records = [_record(line, f"{path}:{number}") for number, line, torn in lines(path) if not torn]
    alike: dict[str, list[Record]] = {}
    for record in records:
        identity = record.identity
        what = [identity.workload, identity.problem, identity.parameters, record.inputs]
        alike.setdefault(json.dumps(what, sort_keys=True), []).append(record)
    reasons: Counter[str] = Counter()
    for same in alike.values():
        tell(f"{same[0].identity.workload}/{same[0].identity.problem} {same[0].identity.parameters}")
        problems: list[Problem] = []
        for record in same:
            _unbind(record)
            try:
                problems = problems or _problems(record, workloads)
                _bind(record, problems, workloads, environment.get("devices") or {})
            except PerfportError as error:
                reasons[str(error)] += 1
    replace(path, "".join(f"{record.model_dump_json(exclude_none=True)}\n" for record in records))
    return reasons


def _record(line: bytes, where: str) -> Record:
    """Return the record of a line, without bounds if it is of the version before."""
    try:
        content = from_json(line)
    except ValueError:
        return parse(line, where)  # which says why
    if isinstance(content, dict) and content.get("schema_version") == REBOUND:
        kept = {name: value for name, value in content.items() if name not in BOUNDS}
        line = json.dumps({**kept, "schema_version": SCHEMA_VERSION}).encode()
    return parse(line, where)


def _problems(record: Record, workloads: Mapping[str, Workload]) -> list[Problem]:
    """Make the problem of a record on each instance of its inputs. Raises `UsageError` if that cannot be."""
    identity = record.identity
    if identity.workload not in workloads:
        raise UsageError(f"{identity.workload}: there is no such workload here")
    cls = workloads[identity.workload].problem(identity.problem)
    try:
        parameters = cls.Parameters.model_validate(identity.parameters)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(cut, first["loc"]))
        raise UsageError(f"{identity.workload}/{identity.problem}: {where}: {cut(first['msg'])}") from None
    return [cls(parameters, seed) for seed in record.inputs.values()]


def _unbind(record: Record) -> None:
    for name in BOUNDS:
        setattr(record, name, None)


def _bind(
    record: Record, problems: Sequence[Problem], workloads: Mapping[str, Workload], devices: Mapping[str, Any]
) -> None:
    """Give a record the demand of its problem and, where it was measured on one device, bounds."""
    identity = record.identity
    computes = workloads[identity.workload].variant(identity.problem, identity.variant).computes
    info = devices.get(identity.devices[0]) or {}
    kind = str(info.get("kind", ""))
    record.work = mean_of([problem.work(computes, identity.precision).on(kind) for problem in problems])
    if record.timing is None or identity.device_count > 1:
        return
    profile = match_profile(str(info.get("name", "")), kind)
    place(record, datasheet_ceilings(profile) if profile else {}, merged=kind == "cpu")
    if impossible(record.problem_bound):
        record.status = Status.IMPOSSIBLE
        record.failure = Failure(reason="less time than the problem bound allows, as it is computed now")
