"""Running a plan: workers, time-outs, attribution of crashes, resume."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from ..machine.children import held_back
from ..machine.chip_lock import chip_lock
from ..model.record import Failure, Record, Status
from ..store.results import Writer
from .cases import Case, Group, measurements, pending, rounds_after
from .messages import (
    CaseFinished,
    CeilingsInUse,
    CeilingsProbed,
    DeviceLost,
    GroupFinished,
    Message,
    StepStarted,
    WorkerFailed,
)
from .worker.serving import BATCH, main

MAX_GROUP_FAILURES = 3  # a worker that dies outside any case, this often, ends its group
GROUP_STEP_S = 180.0  # least time-out of steps that belong to no case: starting, opening the device, ceilings
WAITING_S = 5.0  # between looks at how long a step has taken
TOGETHER, APART, ALONE = 0, 1, 2  # beside which cases one is run: its group; those that found no memory there; none


#: Threads of peers' libraries sleep between cases: by default OpenBLAS's spin for tens of milliseconds, beside whatever
#: runs next. The libraries read this when they are loaded. (2^16 cycles; a call within a peer finds them awake.)
QUIET = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "16"}


class WorkerDied(Exception):
    """The worker is gone or was killed; carries what to say about the case in flight."""

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.log = status, reason, log


class WorkerHandle:
    """A worker process and the parent's end of its pipe.

    Parameters
    ----------
    serve : callable
        What the process runs, a function of a module. It gets its end of the pipe, then all further arguments, pickled.
    """

    def __init__(self, serve: Callable[..., None], *arguments: Any) -> None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=serve, args=(child, *arguments), daemon=True)
        with held_back(*BATCH):
            self._process.start()
        child.close()

    def send(self, task: Any) -> None:
        """Hand over what is to be done: a group."""
        self._pipe.send(task)

    def receive(self, timeout: float, waiting: Callable[[], None] = lambda: None) -> Any:
        """Return the next message. Raises `WorkerDied` when none comes in time or the process is gone.

        ``waiting`` is called every few seconds until then.
        """
        pipe: Connection = self._pipe
        until = time.monotonic() + timeout
        try:
            while not pipe.poll(max(0.0, min(until - time.monotonic(), WAITING_S))):
                if time.monotonic() >= until:
                    self.kill()
                    raise WorkerDied(Status.TIMEOUT, f"a step took longer than its time-out of {timeout:g} s")
                waiting()
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
    workload_paths : list of str
        Further workload folders.
    progress : object
        Told ``group``, ``step``, ``record``, ``expect`` and ``say`` (see `perfport.run.progress`).
    done : sequence of Record
        What the folder has already, in the order it was stored.
    """

    def __init__(self, writer: Writer, workload_paths: list[str], progress: Any, done: Sequence[Record] = ()) -> None:
        self.writer = writer
        self.workload_paths = workload_paths
        self.progress = progress
        self.records: list[Record] = []
        self._done = done
        self._worker: WorkerHandle | None = None
        self._served = ""
        self._company: dict[str, int] = defaultdict(lambda: TOGETHER)

    def run(self, groups: list[Group]) -> list[Record]:
        """Run every group; returns the records of this run in the order they were stored.

        Groups that want several workers go round: all of them with one worker, then again with the next. Each time a
        case has been measured it has a record, which the next worker's replaces. Where a worker was disturbed, a
        further one measures in its place: of W workers up to W - 1, then what is left is contended.
        """
        spare = {case.key: 2 * group.workers - 1 for group in groups for case in group.cases}
        try:
            while groups:
                for group in groups:
                    with chip_lock(group.device.processor, self.progress.say):
                        self._group(group)
                    for case in group.cases:
                        spare[case.key] -= 1
                self._close()
                groups = pending(groups, [*self._done, *self.records], spare=spare)
                self.progress.expect(measurements(groups))
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
        """Run a group. Cases that find no memory beside all others are run after them, at last each alone.

        A group's variants are measured in turn, so that all of their buffers are there at once.
        """
        left = group.cases
        while left:
            company = min(self._company[case.key] for case in left)
            beside = [case for case in left if self._company[case.key] == company]
            if company != TOGETHER:
                self._close()  # with what libraries keep of the memory that cases before gave back
            if company == ALONE:
                del beside[1:]
            found_none = self._measure(group.model_copy(update={"cases": beside}))
            crowded = found_none if len(beside) > 1 else []
            if crowded:
                self.progress.say(
                    f"{len(crowded)} of {len(beside)} cases found no memory: run again without the others"
                )
            for case in crowded:
                fewer = company == TOGETHER and len(crowded) < len(beside)
                self._company[case.key] = APART if fewer else ALONE
            left = [*(case for case in left if case not in beside), *crowded]
            if left:
                group = self._after_stored(group)

    def _measure(self, group: Group) -> list[Case]:
        """Measure cases in turn, and return those that found no memory."""
        self.progress.group(group)
        waiting = {case.key: case for case in group.cases}
        found_none: set[str] = set()
        failures = 0
        while waiting:
            at = StepStarted(None, "")
            try:
                for message in self._serve(group.model_copy(update={"cases": list(waiting.values())})):
                    match message:
                        case StepStarted(key, step):
                            at = message
                            self.progress.step(waiting.get(key or ""), step)
                        case CaseFinished(record):
                            waiting.pop(record.key, None)
                            if record.status is Status.OUT_OF_MEMORY:
                                found_none.add(record.key)
                            self._store(record)
                        case CeilingsInUse(device, values):
                            self.writer.ceilings(device, values)
                        case CeilingsProbed(probe):
                            self.writer.probe(probe)
                if waiting:
                    raise WorkerDied(Status.CRASHED, "the worker ended a group without all its records")
            except WorkerDied as died:
                self._worker = None
                failures += at.key is None
                if at.key in waiting:
                    died.reason += f" ({at.step})"
                    if died.status is Status.OUT_OF_MEMORY:
                        found_none.add(at.key)
                    self._lose([waiting.pop(at.key)], group, died)
                elif failures >= MAX_GROUP_FAILURES:
                    self._lose(list(waiting.values()), group, died)
                    break
                group = self._after_stored(group)
        return [case for case in group.cases if case.key in found_none]

    def _after_stored(self, group: Group) -> Group:
        """The group, with rounds that no stored sample has: what is left of it is measured later."""
        first = max(group.first_round, rounds_after(self.records).get(group.place, 0))
        return group.model_copy(update={"first_round": first})

    def _serve(self, group: Group) -> Iterator[Message]:
        """Give a group to a worker and yield its messages until it is done."""
        # A worker loads the OpenCL runtime of its device when it starts: another device gets another worker.
        if self._worker and self._served != group.device.id:
            self._close()
        if self._worker is None:
            started = WorkerHandle(main, self.workload_paths, self.writer.folder.name)
            self._worker, self._served = started, group.device.id
        self._worker.send(group)
        shared = max(group.timeout, GROUP_STEP_S)
        limit = shared
        while True:
            message: Message = self._worker.receive(limit, self.progress.waiting)
            match message:
                case GroupFinished():
                    return
                case DeviceLost():
                    self._close()
                    raise WorkerDied(Status.CRASHED, "the device reported an error that outlasts its case")
                case WorkerFailed(status, log):
                    self._close()
                    raise WorkerDied(status, log.strip().splitlines()[-1], log)
                case StepStarted(key):
                    limit = shared if key is None else group.timeout
            yield message

    def _lose(self, cases: list[Case], group: Group, died: WorkerDied) -> None:
        """Store a record of each case that a worker took with it."""
        failure = Failure(reason=died.reason, log=died.log)
        for case in cases:
            self._store(case.record(self.writer.folder.name, group.seed, died.status, failure=failure))

    def _store(self, record: Record) -> None:
        self.writer.append(record)
        self.records.append(record)
        self.progress.record(record)


def stamp() -> str:
    """Return the time as part of a run's name, to the second, UTC."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())
