"""Cases of a run, counted after all of them are timed: ``count: true`` of an experiment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from ...machine.chip_lock import chip_lock
from ...machine.device_profile import load_profile, parameters_for
from ...model.device import DeviceInfo
from ...model.errors import PerfportError
from ...model.record import Identity, Record
from ...run.experiment import Experiment
from ...run.listing import usable_devices
from ...store.results import Run, Writer
from ...workload import Workload, discover
from ..child import CheckCase, Job
from . import profiled
from .cases import begun, complete
from .counts import COUNTS, Count, Verdict, append, read

#: Seconds for the cases of one process.
TIMEOUT_S = 1800.0


def count_run(folder: Path, definition: Experiment, workload_paths: Sequence[str], say: Callable[[str], None]) -> None:
    """Count cases of a run under Nsight Compute, and store the counts beside its records, each as it comes.

    Cases that were counted since they were timed are left out. Where none can be counted (no such device, no tool, one
    that fails), or no more, that is told, and is no error: the times are there.

    Parameters
    ----------
    folder : Path
        The run's.
    definition : Experiment
        Says which.
    workload_paths : sequence of str
        Further workload folders.
    say : callable
        Told what is counted, and how it ended.
    """
    taken: list[Count] = []
    try:
        with Writer(folder):
            records = [record for record in Run(folder).records if definition.counts(record.identity)]
            for count in _counts(folder, records, workload_paths, say):
                append(folder, count)
                taken.append(count)
    except PerfportError as error:
        say(f"count: {len(taken)} cases are counted, and no more: {error}" if taken else f"count: none: {error}")
        return
    if taken:
        off = sum(count.verdict is Verdict.DEVIATES for count in taken)
        say(f"count: {len(taken)} cases are counted; what {off} of them declare deviates (perfport report {folder})")


def _counts(
    folder: Path, wanted: Sequence[Record], workload_paths: Sequence[str], say: Callable[[str], None]
) -> Iterator[Count]:
    workloads = discover(list(workload_paths))
    records = [record for record in wanted if _profilable(record, workloads)]
    if not records:
        say("count: none: no case was timed that launches kernels through CUDA, the only ones that a profiler sees")
        return
    known = {_case(count.identity): count for count in (read(folder) if (folder / COUNTS).exists() else [])}
    records = [record for record in records if _older(known.get(_case(record.identity)), record)]
    version = profiled.version()
    infos = {info.id: info for info in usable_devices(sorted({record.identity.devices[0] for record in records}))}
    for same in _processes(records):
        job = _job(same, infos[same[0].identity.devices[0]], workloads, list(workload_paths))
        say(f"counting {job.workload}/{job.problem} {job.parameters} on {job.device.id}")
        with chip_lock(job.device.processor, say):
            pairs = profiled.count(job, TIMEOUT_S, stalls=True)
        for record, (outcome, tally) in zip(same, pairs, strict=True):
            count = begun(record.identity, outcome, record.seed, "ncu", version)
            complete(count, outcome, tally)
            yield count


def _profilable(record: Record, workloads: dict[str, Workload]) -> bool:
    """Whether a case was timed and launches kernels on one device that Nsight Compute sees."""
    identity = record.identity
    if record.timing is None or identity.backend != "cuda" or identity.device_count > 1:
        return False
    return not workloads[identity.workload].variant(identity.problem, identity.variant).host


def _case(identity: Identity) -> str:
    return identity.model_dump_json()


def _older(count: Count | None, record: Record) -> bool:
    """Whether a count, if there is one, is of before the record's samples."""
    return count is None or datetime.fromisoformat(count.time) < datetime.fromisoformat(record.time)


def _processes(records: Sequence[Record]) -> list[list[Record]]:
    """Return the records that one process counts: of one problem on one device, each variant once, as marks name it."""
    processes: dict[str, dict[str, Record]] = {}
    for record in records:
        identity, number = record.identity, 0
        place = [identity.devices, identity.workload, identity.problem, identity.parameters, record.seed]
        while identity.variant in (held := processes.setdefault(json.dumps([*place, number], sort_keys=True), {})):
            number += 1
        held[identity.variant] = record
    return [list(held.values()) for held in processes.values()]


def _job(records: Sequence[Record], info: DeviceInfo, workloads: dict[str, Workload], paths: list[str]) -> Job:
    first = records[0]
    workload = workloads[first.identity.workload]
    cases = []
    for record in records:
        identity = record.identity
        set_ = parameters_for(load_profile(identity.profile), workload.name) if identity.profile else {}
        own = workload.variant(identity.problem, identity.variant).tunables
        macros = {name: value for name, value in set_.items() if name not in own}
        cases.append(CheckCase(variant=identity.variant, tunables=identity.tunables, macros=macros))
    return Job(
        device=info, workloads=paths, workload=workload.name, problem=first.identity.problem,
        parameters=first.identity.parameters, seed=first.seed, cases=cases, warm_up=True,
    )  # fmt: skip
