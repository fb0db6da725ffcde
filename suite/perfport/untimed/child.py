"""Run variants once each, untimed, on one device in a child process: what verifying, counting and sanitizing share.

A child takes seconds to start, so it runs several jobs where nothing forbids. The parent starts it plainly, inside a
simulator or under a tool (`Wrapping`), and gets back one `Outcome` for each case, with the text that the tool printed
while that case ran. A child that dies loses only the case it was at.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pydantic import Field, TypeAdapter

from .. import backend
from ..backend import OpenDevice
from ..machine import platforms
from ..machine.environment import usable_cores
from ..model.device import DeviceInfo
from ..model.errors import CompileError
from ..model.record import Status, Verification
from ..model.schema import Model
from ..model.work import Traffic
from ..workload import Peer, Session, Variant, Workload, build, discover
from ..workload.execution import status_of

#: Environment variable: the file that ``begin VARIANT`` and ``end VARIANT`` are appended to around launches that count.
MARKS = "PERFPORT_MARKS"
_CASE, _END, _OUTCOME = "perfport: case", "perfport: end", "OUTCOME "


class CheckCase(Model):
    """A variant at chosen values of its tunables, compiled with a device profile's further parameters."""

    variant: str
    tunables: dict[str, Any] = Field(default_factory=dict)
    macros: dict[str, Any] = Field(default_factory=dict)


class Job(Model):
    """One problem on one device, and the cases to run on it.

    ``warm_up`` runs each case once before the run that a tool sees; ``timed`` says whether times mean anything there.
    """

    device: DeviceInfo
    workloads: list[str] = Field(default_factory=list)
    workload: str
    problem: str
    parameters: dict[str, Any]
    seed: int
    cases: list[CheckCase]
    warm_up: bool = False
    timed: bool = True


_JOBS = TypeAdapter(list[Job])


class Outcome(Model):
    """How one case ended: ``ok``, ``wrong``, or any other status with its reason.

    ``traffic`` is what the variant declares for the execution, ``log`` what the child and its tool printed meanwhile.
    """

    case: CheckCase
    status: Status
    reason: str = ""
    verification: Verification | None = None
    traffic: Traffic | None = None
    unit: str | None = None
    log: str = ""


@dataclass(frozen=True)
class Wrapping:
    """How a tool gets hold of the child: words in front of its command, and environment variables."""

    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def parallel() -> int:
    """How many children may run at a time where nothing is timed."""
    return min(4, usable_cores())


def run(jobs: Sequence[Job], wrapping: Wrapping = Wrapping(), timeout: float = 300.0) -> list[Outcome]:
    """Run jobs in a child; cases that a dying child did not reach are given to another one.

    Parameters
    ----------
    jobs : sequence of Job
        Of one workload on one device.
    wrapping : Wrapping
    timeout : float
        Seconds for each case, the first of a child with its start; one that takes longer ends as ``timeout``.

    Returns
    -------
    list of Outcome
        In the order of the jobs and their cases.
    """
    outcomes: list[Outcome] = []
    while left := beyond(jobs, len(outcomes)):
        outcomes += _run_child(left, wrapping, timeout)
    return outcomes


def beyond(jobs: Sequence[Job], done: int) -> list[Job]:
    """Return the jobs without their first cases, so many in all."""
    left = []
    for job in jobs:
        if cases := job.cases[done:]:
            left.append(job.model_copy(update={"cases": cases}))
        done = max(0, done - len(job.cases))
    return left


def _run_child(jobs: list[Job], wrapping: Wrapping, timeout: float) -> list[Outcome]:
    """Run one child; returns at least one outcome, the last of which may be of the case that killed it."""
    command = [*wrapping.command, sys.executable, "-m", "perfport.untimed.child"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **wrapping.environment}
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment,
            text=True, errors="replace", start_new_session=True,
        ) as child,
    ):  # fmt: skip
        assert child.stdin
        with contextlib.suppress(BrokenPipeError), child.stdin as stdin:
            stdin.write(_JOBS.dump_json(jobs).decode())
        out, expired = _answers(child, timeout)
        errors.seek(0)
        log = errors.read()
    parsed, printed = _outcomes(out)
    before, *parts = log.split(_CASE)
    told = [part.partition("\n")[2].split(_END)[0] for part in parts]
    outcomes = [
        outcome.model_copy(update={"log": before * (number == 0) + error + text})
        for number, (outcome, error, text) in enumerate(zip(parsed, told, printed, strict=False))
    ]
    cases = [case for job in jobs for case in job.cases]
    if len(outcomes) < len(cases) and (expired or child.returncode or not outcomes):
        status = Status.TIMEOUT if expired else Status.CRASHED
        ended = f"killed by signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        reason = f"no answer within {timeout:g} s" if expired else ended
        text = told[len(parsed)] if len(parsed) < len(told) else log
        outcomes.append(Outcome(case=cases[len(outcomes)], status=status, reason=reason, log=text))
    return outcomes


def _answers(child: subprocess.Popen[str], timeout: float) -> tuple[str, bool]:
    """Read what a child prints until it ends; it is killed where an outcome takes longer, and that is said."""
    expired = threading.Event()

    def kill() -> None:
        expired.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    def watch() -> threading.Timer:
        timer = threading.Timer(timeout, kill)
        timer.daemon = True  # one that runs keeps no interrupted command alive
        timer.start()
        return timer

    out, timer = "", watch()
    for line in child.stdout or ():
        out += line
        if line.startswith(_OUTCOME):
            timer.cancel()
            timer = watch()
    child.wait()
    timer.cancel()
    return out, expired.is_set()


def _outcomes(out: str) -> tuple[list[Outcome], list[str]]:
    """Split the child's standard output into outcomes and what a tool printed ahead of each."""
    outcomes, printed, text = [], [], ""
    for line in out.splitlines(keepends=True):
        if line.startswith(_OUTCOME):
            outcomes.append(Outcome.model_validate_json(line.removeprefix(_OUTCOME)))
            printed.append(text)
            text = ""
        else:
            text += line
    return outcomes, printed


def main() -> None:
    """Child: read jobs from standard input, print one line for each outcome."""
    os.environ.setdefault("POCL_KERNEL_CACHE", "0")
    jobs = _JOBS.validate_json(sys.stdin.read())
    place = jobs[0]
    if place.device.runtime:
        platforms.use([place.device.runtime])
    device = backend.get(place.device.backend).open(place.device)
    source = discover(place.workloads, place.workload)[place.workload]
    with contextlib.ExitStack() as stack:
        marks = stack.enter_context(Path(os.environ[MARKS]).open("a")) if MARKS in os.environ else None
        for job in jobs:
            cls = source.problem(job.problem)
            problem = cls(cls.Parameters.model_validate(job.parameters), job.seed)
            session = Session(device, problem, source.folder, job.timed)
            for case in job.cases:
                print(_CASE, file=sys.stderr, flush=True)
                outcome = _run_case(session, source.variant(job.problem, case.variant), case, job, marks)
                print(_END, file=sys.stderr, flush=True)
                print(_OUTCOME + outcome.model_dump_json(), flush=True)
                if outcome.status is Status.CRASHED and _lost(device):
                    return  # the parent gives what is left to another child
            session.close()


def _lost(device: OpenDevice) -> bool:
    """Whether the device reports an error that outlasts its case."""
    try:
        device.finish()
    except Exception:
        return True
    return False


def _run_case(session: Session, cls: type[Variant], case: CheckCase, job: Job, marks: TextIO | None) -> Outcome:
    outcome = Outcome(case=case, status=Status.CRASHED, unit=cls.unit)
    built = None
    try:
        built = build(cls, session, case.tunables, case.macros)
        outcome.unit = built.variant.unit
        if job.warm_up:
            built.variant.launch()
        outcome.verification = built.execute(lambda: _window(session.device, case, marks))
        outcome.traffic = built.variant.traffic()
        outcome.status = Status.OK if outcome.verification.passed else Status.WRONG
        outcome.reason = outcome.verification.complaint
    except Exception as error:
        outcome.status = status_of(error)
        outcome.reason = str(error) or type(error).__name__
        if outcome.status is Status.CRASHED:
            traceback.print_exc()
        if isinstance(error, CompileError):
            print(error.log, file=sys.stderr)
    finally:
        if built:
            built.release()
    return outcome


@contextlib.contextmanager
def _window(device: OpenDevice, case: CheckCase, marks: TextIO | None) -> Iterator[None]:
    """Mark the launches that count: in the file that a simulator's plugin writes to, and to the device's profiler."""
    device.finish()
    _mark(marks, f"begin {case.variant}")
    with device.profiled():
        yield
        device.finish()
    _mark(marks, f"end {case.variant}")


def _mark(marks: TextIO | None, text: str) -> None:
    if marks:
        marks.write(text + "\n")
        marks.flush()


def chosen(workload: Workload, problem: str, variant: str, pattern: str) -> bool:
    """Whether a variant launches kernels of ours and its ``workload/problem/variant`` contains the pattern."""
    ours = not issubclass(workload.variants[problem][variant], Peer)
    return ours and pattern in f"{workload.name}/{problem}/{variant}"


def cases(
    workload: Workload, problem: str, info: DeviceInfo, macros: Mapping[str, Any] = {}, pattern: str = ""
) -> list[CheckCase]:
    """Return the variants of a problem that launch kernels of ours, with the values of tunables that suit a device.

    Parameters
    ----------
    workload : Workload
    problem : str
    info : DeviceInfo
    macros : dict
        A device profile's parameters; they replace the defaults of tunables of the same name.
    pattern : str
        Only variants whose ``workload/problem/variant`` contains this.
    """
    return [
        CheckCase(
            variant=name,
            tunables={key: macros.get(key, tunable.default_for(info)) for key, tunable in cls.tunables.items()},
            macros={key: value for key, value in macros.items() if key not in cls.tunables},
        )
        for name, cls in workload.variants[problem].items()
        if chosen(workload, problem, name, pattern)
    ]


if __name__ == "__main__":
    main()
