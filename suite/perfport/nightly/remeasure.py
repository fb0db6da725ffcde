"""Suspected cases of a run, measured again: exactly those, with the same inputs, by fresh workers."""

from __future__ import annotations

from collections.abc import Sequence

from .. import workload
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError
from ..model.record import Record
from ..model.untrusted import inside
from ..run import local, plan
from ..run.cases import Group
from ..run.experiment import ReportOptions, load
from ..store.results import EXPERIMENT, RECORDS, Run

#: Fresh workers that measure a suspected case again.
WORKERS = 5
#: Cases of each device that do not look slower and are measured again beside the suspects: they tell how the machine
#: has shifted meanwhile.
CONTROLS = 10
AGAIN = "again"


def stored(run: Run) -> dict[str, Record]:
    """Return what was measured again of a run before, by key."""
    folder = run.folder / AGAIN
    return {record.key: record for record in Run(folder).records} if (folder / RECORDS).exists() else {}


def measure_again(
    run: Run, wanted: Sequence[Record], here: list[DeviceInfo], workload_paths: list[str], command: list[str]
) -> dict[str, Record]:
    """Measure cases of a run again, into the folder ``again`` of the run; returns all records there, by key.

    Parameters
    ----------
    run : Run
    wanted : sequence of Record
        Its suspected cases.
    here : list of DeviceInfo
        From `perfport.machine.discovery.discover`.
    workload_paths : list of str
        Further workload folders.
    command : list of str
        The command line, for the environment file.

    Raises
    ------
    InfrastructureError
        If a case can no longer be measured as it was: its device is missing, its source or driver is another.
    """
    path = run.folder / EXPERIMENT
    definition = load(path).model_copy(update={"workers": WORKERS, "report": ReportOptions()})
    ids = {id_ for record in wanted for id_ in record.identity.devices}
    devices = [device for device in here if device.id in ids and device.healthy]
    workloads = workload.discover(workload_paths)
    seed = wanted[0].seed
    keys = {record.key for record in wanted}
    groups: list[Group] = []
    for native in (False, True):  # whichever defaults the run was told to take
        for group in plan.make(definition, str(path), workloads, devices, seed, native=native):
            known = {case.key for group in groups for case in group.cases}
            cases = [case for case in group.cases if case.key in keys - known]
            if cases:
                groups.append(group.model_copy(update={"cases": cases}))
    lost = keys - {case.key for group in groups for case in group.cases}
    if lost:
        names = sorted(record.identity.variant for record in wanted if record.key in lost)
        raise InfrastructureError(
            f"{run.folder}: {len(lost)} cases cannot be measured again as they were ({', '.join(names[:5])}): "
            "source, driver or device is another by now"
        )
    options = local.Options(workloads=workload_paths, seed=seed, command=command)
    folder = inside(run.folder, AGAIN)
    done = local.execute(local.Prepared(groups, definition, path, workloads, folder, options, here))
    return {record.key: record for record in done.records}
