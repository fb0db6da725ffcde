"""Running a plan: workers, time-outs, attribution of crashes, resume."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Container, Iterator
from multiprocessing.connection import Connection
from typing import Any

from ..machine.chip_lock import chip_lock
from ..measure.repeats import workers_of
from ..model.record import Record, Status
from ..store.results import Writer
from .plan import Group
from .worker import failed_record, main

MAX_GROUP_FAILURES = 3  # a worker that dies outside any case, this often, ends its group
GROUP_STEP_S = 180.0  # least time-out of steps that belong to no case: starting, opening the device, ceilings


#: Threads of peers' libraries sleep between cases: by default OpenBLAS's spin for tens of milliseconds, beside whatever
#: runs next. The libraries read this when they are loaded. (2^16 cycles; a call within a peer finds them awake.)
QUIET = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "16"}


class WorkerDied(Exception):
    """The worker is gone or was killed; carries what to say about the case in flight."""

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.log = status, reason, log


class WorkerHandle:
    """A worker process and the parent's end of its pipe."""

    def __init__(self, workload_paths: list[str], run: str) -> None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=main, args=(child, workload_paths, run), daemon=True)
        self._process.start()
        child.close()

    def send(self, group: Group) -> None:
        """Hand a group over."""
        self._pipe.send(group)

    def receive(self, timeout: float) -> Any:
        """Return the next message. Raises `WorkerDied` when none comes in time or the process is gone."""
        pipe: Connection = self._pipe
        try:
            if not pipe.poll(timeout):
                self.kill()
                raise WorkerDied(Status.TIMEOUT, f"a step took longer than its time-out of {timeout:g} s")
            return pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(5)
            raise self._cause() from None

    def _cause(self) -> WorkerDied:
        code = self._process.exitcode
        if code == -signal.SIGKILL:
            reason = "the worker was killed by SIGKILL, as the kernel does when memory runs out"
            return WorkerDied(Status.OUT_OF_MEMORY, reason)
        if code is not None and code < 0:
            return WorkerDied(Status.CRASHED, f"the worker died of signal {signal.Signals(-code).name}")
        return WorkerDied(Status.CRASHED, f"the worker exited with code {code}")

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()
        self._process.join(5)

    def close(self) -> None:
        """Let the worker end by itself; kill it if it does not."""
        self._pipe.close()
        self._process.join(5)
        if self._process.is_alive():
            self.kill()


class Runner:
    """Runs groups and stores what comes back.

    Parameters
    ----------
    writer : Writer
        The open results folder.
    environment : dict
        Its environment file's content; ceilings and probes are added as they come.
    workload_paths : list of str
        Further workload folders.
    progress : object
        Told ``group``, ``step``, ``record`` and ``say`` (see `perfport.run.progress`).
    """

    def __init__(self, writer: Writer, environment: dict[str, Any], workload_paths: list[str], progress: Any) -> None:
        self.writer = writer
        self.environment = environment
        self.workload_paths = workload_paths
        self.progress = progress
        self.records: list[Record] = []
        self._worker: WorkerHandle | None = None
        self._served = ""

    def run(self, groups: list[Group]) -> list[Record]:
        """Run every group; returns the records of this run in the order they were stored.

        Groups that want several workers go round: all of them with one worker, then again with the next. Each time a
        case has been measured it has a record, which the next worker's replaces.
        """
        try:
            while groups:
                for group in groups:
                    with chip_lock(group.device.chip, self.progress.say):
                        self._group(group)
                self._close()
                latest = {record.key: record for record in self.records}
                groups = pending(groups, list(latest.values()))
        except BaseException:  # Ctrl-C, or results that cannot be written: what the worker does is lost anyway
            if self._worker:
                self._worker.kill()
            raise
        finally:
            self._close()
        return self.records

    def _close(self) -> None:
        if self._worker:
            self._worker.close()
        self._worker = None

    def _group(self, group: Group) -> None:
        self.progress.group(group)
        waiting = {case.key: case for case in group.cases}
        failures = 0
        while waiting:
            in_flight: str | None = None
            step = ""
            try:
                for kind, *content in self._serve(group.model_copy(update={"cases": list(waiting.values())})):
                    if kind == "at":
                        in_flight, step = content
                        self.progress.step(waiting.get(in_flight or ""), step)
                    elif kind == "record":
                        waiting.pop(content[0].key, None)
                        self._store(content[0])
                    else:
                        self._environment(kind, content)
                if waiting:
                    raise WorkerDied(Status.CRASHED, "the worker ended a group without all its records")
            except WorkerDied as died:
                self._worker = None
                failures += in_flight is None
                if in_flight in waiting:
                    case = waiting.pop(in_flight)
                    died.reason += f" ({step})"
                    self._store(_record(case, group, self.writer.folder.name, died))
                elif failures >= MAX_GROUP_FAILURES:
                    for case in waiting.values():
                        self._store(_record(case, group, self.writer.folder.name, died))
                    return

    def _serve(self, group: Group) -> Iterator[Any]:
        """Give a group to a worker and yield its messages until it is done."""
        # A worker loads the OpenCL runtime of its device when it starts: another device gets another worker.
        if self._worker and self._served != group.device.id:
            self._close()
        if self._worker is None:
            started = WorkerHandle(self.workload_paths, self.writer.folder.name)
            self._worker, self._served = started, group.device.id
        self._worker.send(group)
        shared = max(group.timeout, GROUP_STEP_S)
        limit = shared
        while True:
            message = self._worker.receive(limit)
            if message[0] == "at":
                limit = shared if message[1] is None else group.timeout
            if message[0] == "done":
                return
            if message[0] == "retire":
                self._close()
                if not group.cases:
                    return
                raise WorkerDied(Status.CRASHED, "the device reported an error that outlasts its case")
            if message[0] == "failed":
                self._close()
                last = message[1].strip().splitlines()[-1]
                raise WorkerDied(message[2], last, message[1])
            yield message

    def _store(self, record: Record) -> None:
        self.writer.append(record)
        self.records.append(record)
        self.progress.record(record)

    def _environment(self, kind: str, content: list[Any]) -> None:
        if kind == "ceilings":
            self.environment["ceilings"][content[0]] = content[1]
        elif kind == "probe":
            self.environment["probes"].append(content[0])
        self.writer.environment(self.environment)


def _record(case: Any, group: Group, run: str, died: WorkerDied) -> Record:
    return failed_record(case.identity, case.key, run, group.seed, died.status, died.reason, died.log)


def pending(groups: list[Group], done: list[Record], retry: Container[Status] = ()) -> list[Group]:
    """Return groups without the cases that are done: those that have a record of no status in ``retry``.

    A case that fewer workers have measured than its group wants is left, with what they measured.
    """
    kept = {record.key: record for record in done if record.status not in retry}
    left = []
    for group in groups:
        cases = [
            case.model_copy(update={"earlier": kept.get(case.key)})
            for case in group.cases
            if case.key not in kept or (kept[case.key].status.measured and workers_of(kept[case.key]) < group.workers)
        ]
        if cases:
            left.append(group.model_copy(update={"cases": cases}))
    return left


def stamp() -> str:
    """Return the time as part of a run's name, to the second, UTC."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())
