"""Run variants once each, untimed, on one device in a child process: what verifying, counting and sanitizing share.

The parent starts the child plainly, inside a simulator or under a tool (`Wrapping`), and gets back one `Outcome` for
each case, with the text that the tool printed while that case ran. A child that dies loses only the case it was at.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pydantic import Field

from .. import backend
from ..backend import OpenDevice
from ..machine import platforms
from ..model.device import DeviceInfo
from ..model.errors import CompileError
from ..model.record import Status, Verification
from ..model.schema import Model
from ..model.work import Traffic
from ..workload import Peer, Session, Variant, Workload, build, discover
from ..workload.execution import status_of

#: Environment variable: the file that ``begin VARIANT`` and ``end VARIANT`` are appended to around launches that count.
MARKS = "PERFPORT_MARKS"
_CASE, _END = "perfport: case ", "perfport: end"


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
    return min(4, os.cpu_count() or 1)


def run(job: Job, wrapping: Wrapping = Wrapping(), timeout: float = 300.0) -> list[Outcome]:
    """Run a job; cases that a dying child did not reach are given to another one.

    Parameters
    ----------
    job : Job
    wrapping : Wrapping
    timeout : float
        Seconds for each child; the case that it was at then ends as ``timeout``.
    """
    outcomes: list[Outcome] = []
    left = list(job.cases)
    while left:
        done = _run_child(job.model_copy(update={"cases": left}), wrapping, timeout)
        outcomes += done
        left = left[len(done) :]
    return outcomes


def _run_child(job: Job, wrapping: Wrapping, timeout: float) -> list[Outcome]:
    """Run one child; returns at least one outcome, the last of which may be of the case that killed it."""
    command = [*wrapping.command, sys.executable, "-m", "perfport.untimed.child"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **wrapping.environment}
    expired = False
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        text=True, errors="replace", start_new_session=True,
    ) as child:  # fmt: skip
        try:
            out, log = child.communicate(job.model_dump_json(), timeout)
        except subprocess.TimeoutExpired:
            expired = True
            os.killpg(child.pid, 9)
            out, log = child.communicate()
    parsed, printed = _outcomes(out)
    before, *parts = log.split(_CASE)
    errors = [part.partition("\n")[2].split(_END)[0] for part in parts]
    outcomes = [
        outcome.model_copy(update={"log": before * (number == 0) + error + text})
        for number, (outcome, error, text) in enumerate(zip(parsed, errors, printed, strict=False))
    ]
    if len(outcomes) < len(job.cases) and (expired or child.returncode or not outcomes):
        status = Status.TIMEOUT if expired else Status.CRASHED
        ended = f"killed by signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        reason = f"no answer within {timeout:g} s" if expired else ended
        text = errors[len(parsed)] if len(parsed) < len(errors) else log
        outcomes.append(Outcome(case=job.cases[len(outcomes)], status=status, reason=reason, log=text))
    return outcomes


def _outcomes(out: str) -> tuple[list[Outcome], list[str]]:
    """Split the child's standard output into outcomes and what a tool printed ahead of each."""
    outcomes, printed, text = [], [], ""
    for line in out.splitlines(keepends=True):
        if line.startswith("OUTCOME "):
            outcomes.append(Outcome.model_validate_json(line[8:]))
            printed.append(text)
            text = ""
        else:
            text += line
    return outcomes, printed


def main() -> None:
    """Child: read a job from standard input, print one line for each outcome."""
    os.environ.setdefault("POCL_KERNEL_CACHE", "0")
    job = Job.model_validate_json(sys.stdin.read())
    if job.device.runtime:
        platforms.use([job.device.runtime])
    device = backend.get(job.device.backend).open(job.device)
    source = discover(job.workloads, job.workload)[job.workload]
    cls = source.problem(job.problem)
    problem = cls(cls.Parameters.model_validate(job.parameters), job.seed)
    session = Session(device, problem, source.folder, job.timed)
    with contextlib.ExitStack() as stack:
        marks = stack.enter_context(Path(os.environ[MARKS]).open("a")) if MARKS in os.environ else None
        for number, case in enumerate(job.cases):
            print(f"{_CASE}{number}", file=sys.stderr, flush=True)
            outcome = _run_case(session, source.variant(job.problem, case.variant), case, job, marks)
            print(_END, file=sys.stderr, flush=True)
            print("OUTCOME " + outcome.model_dump_json(), flush=True)
            if outcome.status is Status.CRASHED and _lost(device):
                return  # the parent gives what is left to another child


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
