"""The jobs that share a plan out on a cluster: what each executes on its node, and what folders say of them."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ..model.errors import InfrastructureError, UsageError
from ..model.untrusted import inside, line, slug
from ..store.results import RECORDS
from ..store.writing import replace
from . import local
from .cases import Case
from .experiment import ReportOptions, load

PLAN = "plan.json"
Form = TypeVar("Form")


class Planned(BaseModel):
    """A case, and the job that is to run it, from 0."""

    part: int
    case: Case


class Job(BaseModel):
    """One share of a partition's cases: the Slurm jobs that ran it, the last one's state and node, what it says.

    ``session`` is the name of the folder through which the last one was handed over.
    """

    partition: str
    part: int
    parts: int
    ids: list[Annotated[str, Field(pattern=r"^[0-9]+$")]] = []
    session: str = Field("", pattern=r"^[A-Za-z0-9_-]*$")
    state: str = ""
    node: str = ""
    reason: str = ""

    def folder(self, top: Path) -> Path:
        """Its run folder."""
        return inside(top, "jobs", f"{top.name}-{slug(self.partition)}-{self.part + 1}")

    @property
    def fate(self) -> str:
        """How it ended, as text."""
        return f"Slurm job {self.ids[-1]} ended {self.state} on {self.node or 'no node'}. {self.reason}".rstrip(". ")


class Stored(BaseModel):
    """What is kept of the jobs of a run: `JOBS`."""

    seed: int
    jobs: list[Job]


class Outcome(BaseModel):
    """How a job ended, by its own words: why its share is not possible, or the error that ended it; else nothing."""

    refused: str = Field("", max_length=10_000)
    error: str = Field("", max_length=10_000)

    def write(self, folder: Path) -> None:
        """Store it as that of the Slurm job that this process is."""
        replace(inside(folder, f"{os.environ['SLURM_JOB_ID']}.json"), self.model_dump_json())

    @classmethod
    def read(cls, folder: Path, job_id: str) -> Outcome | None:
        """Return the outcome of a job; ``None`` where it left none that can be read."""
        try:
            return cls.model_validate_json((folder / f"{job_id}.json").read_bytes())
        except (OSError, ValidationError):
            return None


class Share(BaseModel):
    """What a job executes on its node; ``outcome`` is the folder for what it says of its end."""

    experiment: Path
    folder: Path
    outcome: Path | None = None
    devices: list[str]
    part: int
    parts: int
    seed: int
    patterns: tuple[str, ...]
    retry: tuple[str, ...]
    workloads: list[str]
    native: bool = False
    command: list[str]

    def __call__(self) -> None:
        """Run every ``parts``-th group of the plan, and say how that ended."""
        assert self.outcome
        try:
            outcome = Outcome(refused=line(self.run(), 1000))
        except Exception as error:  # Slurm's own ends are no exceptions: they leave no outcome
            Outcome(error=line(f"{type(error).__name__}: {error}", 1000)).write(self.outcome)
            raise
        outcome.write(self.outcome)

    def run(self) -> str:
        """Run every ``parts``-th group of the plan; returns why that is not possible, or an empty string."""
        # Slurm ends jobs by SIGTERM and, some seconds later, SIGKILL: stop before a case is blamed for either.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        options = local.Options(
            resume=(self.folder / RECORDS).exists(), retry=self.retry, patterns=self.patterns, devices=self.devices,
            out=self.folder, workloads=self.workloads, seed=self.seed, native=self.native,
            command=self.command,
        )  # fmt: skip
        try:
            prepared = local.prepare(self.experiment, load(self.experiment), options)
        except UsageError as error:
            return str(error)
        planned = [
            Planned(part=number % self.parts, case=case).model_dump(mode="json")
            for number, group in enumerate(prepared.groups)
            for case in group.cases
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(inside(self.folder, PLAN), json.dumps(planned))
        if groups := prepared.groups[self.part :: self.parts]:
            unreported = prepared.definition.model_copy(update={"report": ReportOptions()})
            local.execute(dataclasses.replace(prepared, groups=groups, definition=unreported))
        return ""

    def checkpoint(self) -> Any:
        """Called by submitit before the time is up or at preemption: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def private(top: Path, name: str) -> Path:
    """Return a folder below a run's, made where there is none, in which nobody else can write.

    Raises
    ------
    InfrastructureError
        If either is not the user's own, or others may write there: what lies there is executed by jobs.
    """
    folder = top / name
    try:
        top.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        for each in (top, folder):
            held = each.lstat()
            if not stat.S_ISDIR(held.st_mode) or held.st_uid != os.geteuid() or held.st_mode & 0o022:
                why = "is not a folder of yours that nobody else can write to"
                raise InfrastructureError(f"executor slurm: {each} {why}; what lies there is executed by jobs")
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be written ({error.strerror})") from None
    return folder


def read(file: Path, form: type[Form]) -> Form:
    """Return what a run's folder says of its jobs. Raises `UsageError` where it is something else."""
    try:
        return TypeAdapter(form).validate_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise UsageError(f"{file}: {line(error.errors()[0]['msg'])}: not what 'perfport run' writes") from None
