"""The worker process: it serves groups one after another until its parent closes the connection."""

from __future__ import annotations

import os
import signal
import traceback
from multiprocessing.connection import Connection

from ...machine.children import obey_parent
from ...model.errors import PerfportError
from ...model.record import Failure
from ...workload.execution import status_of
from ..cases import Group
from ..messages import CaseFinished, DeviceLost, GroupFinished, WorkerFailed
from .group import DeviceLostError, GroupRun
from .resources import Resources

#: What batch systems send to every process of a job.
BATCH = (signal.SIGTERM, signal.SIGUSR2)


def main(connection: Connection, workload_paths: list[str], run: str) -> None:
    """Serve groups until the parent closes the connection, or until nothing more may run in this process."""
    obey_parent(*BATCH)
    os.environ.setdefault("POCL_KERNEL_CACHE", "0")  # compile times are reported: measure them
    resources = Resources(run, workload_paths, connection.send)
    while True:
        try:
            group: Group = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            serve(group, resources)
        except DeviceLostError:
            connection.send(DeviceLost())
            return
        except Exception as error:  # while sampling: the parent knows which case is in flight
            connection.send(WorkerFailed(status_of(error), traceback.format_exc()))
            return
        connection.send(GroupFinished())


def serve(group: Group, resources: Resources) -> None:
    """Run a group; where the problem itself cannot be made, each of its cases fails with the reason."""
    try:
        made = GroupRun(group, resources)
    except PerfportError as error:
        failure = Failure(reason=str(error))
        for case in group.cases:
            record = case.record(resources.run, group.seed, status_of(error), failure=failure)
            resources.send(CaseFinished(record))
    else:
        made.run()
