"""Experiments on the nodes of a Slurm cluster (``executor: {kind: slurm}``, docs/integrations.md).

The cases of a partition are shared out among its jobs. Each job plans on its own node and fills a run folder of its
own, which it resumes when it is run again: Slurm requeues it after a node failed, and, asked by submitit, when it is
preempted or out of time; a job that ended otherwise without finishing is submitted anew.

    OUT/jobs.json                the jobs and how they ended
    OUT/OUT-PARTITION/           merged run, what reports read
    OUT/jobs/OUT-PARTITION-N/    run folder of a job, with plan.json
    OUT/jobs/submitit/           batch scripts and logs
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tabulate import tabulate

from .. import workload
from ..model.errors import InfrastructureError, Stopped, UsageError, check_writable
from ..store.results import EXPERIMENT, RECORDS, Writer
from . import local, plan
from .cases import Case
from .experiment import Experiment, ReportOptions, load
from .merge import Part, merge, write
from .runner import stamp
from .signals import heeded

JOBS = "jobs.json"
PLAN = "plan.json"
#: Slurm's states of a job that goes on, by itself or when its turn comes.
ACTIVE = {
    "PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "REQUEUED", "REQUEUE_HOLD",
    "REQUEUE_FED", "RESIZING", "SIGNALING", "STAGE_OUT", "RESV_DEL_HOLD", "SPECIAL_EXIT",
}  # fmt: skip
DONE = "COMPLETED"
#: Two states of ours: Slurm forgets jobs some minutes after their end; a share may not be possible on its node at all.
GONE, REFUSED = "GONE", "REFUSED"
#: What submitting again does not mend, or somebody wanted so.
FINAL = {DONE, REFUSED, "CANCELLED", "DEADLINE", "REVOKED"}
POLL_S = (0.5, 15.0)
MOST_FAILED_POLLS = 20


class Planned(BaseModel):
    """A case, and the job that is to run it, from 0."""

    part: int
    case: Case


class Job(BaseModel):
    """One share of a partition's cases: the Slurm jobs that ran it, the last one's state and node, what it says."""

    partition: str
    part: int
    parts: int
    ids: list[str] = []
    state: str = ""
    node: str = ""
    reason: str = ""

    def folder(self, top: Path) -> Path:
        """Its run folder."""
        return top / "jobs" / f"{top.name}-{self.partition}-{self.part + 1}"

    @property
    def fate(self) -> str:
        """How it ended, as text."""
        return f"Slurm job {self.ids[-1]} ended {self.state} on {self.node or 'no node'}. {self.reason}".rstrip(". ")


class Share(BaseModel):
    """What a job executes on its node."""

    experiment: Path
    folder: Path
    devices: list[str]
    part: int
    parts: int
    seed: int
    pattern: str | None
    retry: tuple[str, ...]
    workloads: list[str]
    command: list[str]

    def __call__(self) -> str:
        """Run every ``parts``-th group of the plan; returns why that is not possible, or an empty string."""
        # Slurm ends jobs by SIGTERM and, some seconds later, SIGKILL: stop before a case is blamed for either.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        options = local.Options(
            resume=(self.folder / RECORDS).exists(), retry=self.retry, pattern=self.pattern, devices=self.devices,
            out=self.folder, workloads=self.workloads, seed=self.seed, command=self.command,
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
        partial = self.folder / f"{PLAN}.part"
        partial.write_text(json.dumps(planned))
        partial.replace(self.folder / PLAN)
        if groups := prepared.groups[self.part :: self.parts]:
            unreported = prepared.definition.model_copy(update={"report": ReportOptions()})
            local.execute(dataclasses.replace(prepared, groups=groups, definition=unreported))
        return ""

    def checkpoint(self) -> Any:
        """Called by submitit before the time is up or at preemption: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Cluster:
    """Submission through submitit, and the states of jobs as ``squeue`` tells them.

    Parameters
    ----------
    top : Path
        Folder of the whole run; every node must see it under this path.
    definition : Experiment

    Raises
    ------
    InfrastructureError
        Without submitit or Slurm's commands.
    """

    def __init__(self, top: Path, definition: Experiment) -> None:
        try:
            import submitit
        except ImportError:
            raise InfrastructureError("executor slurm needs submitit: pip install perfport[slurm]") from None
        if not all(map(shutil.which, ("sbatch", "srun", "squeue"))):
            raise InfrastructureError("executor slurm: sbatch, srun and squeue are not on the PATH")
        self._executor = definition.executor
        self._name = top.name
        self._logs = top / "jobs" / "submitit"
        self._submitit = submitit
        self._failed_polls = 0

    def submit(self, job: Job, share: Share) -> None:
        """Hand a share over. Raises `InfrastructureError` with what ``sbatch`` says if it refuses."""
        # Whole nodes: neighbours would disturb what is measured.
        given = {"exclusive": True, "requeue": True, **self._executor.partitions[job.partition].sbatch}
        executor = self._submitit.SlurmExecutor(folder=self._logs, max_num_timeout=self._executor.retries)
        executor.update_parameters(
            partition=job.partition, time=self._executor.time, job_name=self._name,
            additional_parameters={name: value for name, value in given.items() if value is not False},
        )  # fmt: skip
        try:
            submitted = executor.submit(share)
        except self._submitit.core.utils.FailedJobError as error:
            raise InfrastructureError(f"sbatch, partition {job.partition}: {' '.join(str(error).split())}") from None
        job.ids.append(submitted.job_id)
        job.state, job.node, job.reason = "PENDING", "", ""

    def update(self, jobs: Sequence[Job]) -> None:
        """Bring jobs up to date. Raises `InfrastructureError` when Slurm does not answer for long."""
        command = ["squeue", "--noheader", "--states=all", f"--name={self._name}", "--format=%i|%T|%N"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self._failed_polls += 1
            if self._failed_polls >= MOST_FAILED_POLLS:
                raise InfrastructureError(f"squeue: {done.stderr.strip()}")
            return
        self._failed_polls = 0
        known = {line.split("|")[0]: line.split("|")[1:] for line in done.stdout.splitlines()}
        for job in jobs:
            job.state, node = known.get(job.ids[-1], (GONE, ""))
            job.node = node or job.node
            result = self._submitit.SlurmJob(self._logs, job.ids[-1]).paths.result_pickle
            if job.state not in ACTIVE and result.exists():
                self._outcome(job, *self._submitit.core.utils.pickle_load(result))

    def _outcome(self, job: Job, kind: str, value: str) -> None:
        if kind == "success":
            job.state, job.reason = (REFUSED, value) if value else (DONE, "")
        else:
            job.reason = value.strip().splitlines()[-1]


def run(path: Path, definition: Experiment, options: local.Options) -> local.Finished:
    """Run an experiment on Slurm and wait for it: the merged records, with one for each case that was lost.

    Raises
    ------
    UsageError
        For bad input.
    InfrastructureError
        Without submitit or Slurm.
    """
    if options.devices or "devices" in definition.model_fields_set:
        where = "--device" if options.devices else f"{path}: devices"
        raise UsageError(f"{where}: with executor slurm, 'executor.partitions' says what runs on which devices")
    plan.check(definition, str(path), workload.discover(options.workloads), pattern=options.pattern)
    jobs = [
        Job(partition=name, part=part, parts=partition.jobs)
        for name, partition in definition.executor.partitions.items()
        for part in range(partition.jobs)
    ]
    if options.dry_run:
        rows = [[job.partition, f"{job.part + 1}/{job.parts}", ", ".join(_devices(definition, job))] for job in jobs]
        print(tabulate(rows, ["partition", "job", "devices"], disable_numparse=True))
        return local.Finished([], [], None)
    top = _folder(definition, options)
    if report := local.report_file(definition, top, options.whole):
        check_writable(report, f"{path}: report.path")
    cluster = Cluster(top, definition)
    writer = Writer(top)
    try:
        writer.text(EXPERIMENT, path.read_text())
        session = Session(definition, options, jobs, cluster, writer)
        with heeded():
            session.run()
        return session.close()
    except (KeyboardInterrupt, Stopped):
        print(f"the jobs go on; to collect them: perfport run {path} --resume --out {top}")
        raise
    finally:
        writer.close()


def _devices(definition: Experiment, job: Job) -> list[str]:
    return definition.executor.partitions[job.partition].devices


def _folder(definition: Experiment, options: local.Options) -> Path:
    if options.out:
        local.check_out(options, JOBS)
        return options.out.resolve()
    if not options.resume:
        return (local.RESULTS / f"{definition.name}-{stamp()}").resolve()
    own = re.compile(re.escape(definition.name) + r"-\d{8}-\d{6}")
    runs = sorted(f.parent for f in local.RESULTS.glob(f"*/{JOBS}") if own.fullmatch(f.parent.name))
    if not runs:
        raise UsageError(f"--resume: no run of {definition.name!r} on Slurm under {local.RESULTS}")
    return runs[-1].resolve()


class Session:
    """One run over all partitions, from submission to the merged results."""

    def __init__(
        self, definition: Experiment, options: local.Options, jobs: list[Job], cluster: Cluster, writer: Writer
    ) -> None:
        self.top, self.definition, self.options = writer.folder, definition, options
        self.jobs, self.cluster, self.writer = jobs, cluster, writer
        self.seed = local.seed_of(definition, options)
        if (self.top / JOBS).exists():
            stored = json.loads((self.top / JOBS).read_text())
            self.seed = stored["seed"]
            known = {(job.partition, job.part, job.parts): job for job in map(Job.model_validate, stored["jobs"])}
            self.jobs = [known.get((job.partition, job.part, job.parts), job) for job in jobs]

    def _store(self) -> None:
        content = {"seed": self.seed, "jobs": [job.model_dump() for job in self.jobs]}
        self.writer.text(JOBS, json.dumps(content, indent=1) + "\n")

    def run(self) -> None:
        """Submit what is not finished, and wait until every job is done or given up."""
        self.cluster.update([job for job in self.jobs if job.state in ACTIVE])  # of an interrupted session
        for job in self.jobs:
            if job.state not in ACTIVE and (job.state != DONE or self.options.retry):
                self._submit(job)
        tries = dict.fromkeys((job.folder(self.top) for job in self.jobs), 0)
        wait, shown = POLL_S[0], ""
        while active := [job for job in self.jobs if job.state in ACTIVE]:
            time.sleep(wait)
            wait = min(wait * 1.2, POLL_S[1])
            self.cluster.update(active)
            for job in active:
                folder = job.folder(self.top)
                if job.state not in ACTIVE | FINAL and tries[folder] < self.definition.executor.retries:
                    tries[folder] += 1
                    print(f"{job.fate}; submitted again", flush=True)
                    self._submit(job)
            self._store()
            states = Counter(job.state for job in self.jobs)
            if (now := ", ".join(f"{count} {state}" for state, count in sorted(states.items()))) != shown:
                print(f"jobs: {now}", flush=True)
                wait, shown = POLL_S[0], now

    def _submit(self, job: Job) -> None:
        share = Share(
            experiment=self.top / EXPERIMENT, folder=job.folder(self.top), devices=_devices(self.definition, job),
            part=job.part, parts=job.parts, seed=self.seed, pattern=self.options.pattern,
            retry=self.options.retry, workloads=[str(Path(p).resolve()) for p in self.options.workloads],
            command=self.options.command,
        )  # fmt: skip
        self.cluster.submit(job, share)
        self._store()

    def close(self) -> local.Finished:
        """Merge what the jobs stored, and print what became of them."""
        parts = [Part(job.partition, job.folder(self.top), self._planned(job), job.fate) for job in self.jobs]
        merged = merge(parts, self.seed)
        folders = write(self.top, parts, merged)
        rows = []
        for job, part, records, lost in zip(self.jobs, parts, merged.records, merged.lost, strict=True):
            rows.append({
                "partition": job.partition, "job": f"{job.part + 1}/{job.parts}", "Slurm jobs": ", ".join(job.ids),
                "state": job.state, "node": job.node, "cases": "?" if part.planned is None else len(part.planned),
                "stored": len(part.stored), "elsewhere": len(part.stored) - len(records),
                "failed": sum(record.status.failed for record in records),
                "lost": "?" if part.planned is None else len(lost), "why": job.reason[:80],
            })  # fmt: skip
        print(tabulate(rows, headers="keys", disable_numparse=True))
        if merged.duplicates:
            print(f"stored more than once, counted once: {', '.join(merged.duplicates)}")
        every = [record for records in (*merged.records, *merged.lost) for record in records]
        if folders:
            local.conclude(every, folders, print, local.again(self.options.command))
        report = local.report_file(self.definition, self.top, self.options.whole) if folders else None
        unknown = [f"{job.partition} {job.part + 1}: {job.fate}" for job in self.jobs if self._planned(job) is None]
        untold = f"lost, and nobody planned what they were to run: {'; '.join(unknown)}" if unknown else ""
        return local.Finished(every, folders, report, untold)

    def _planned(self, job: Job) -> list[Case] | None:
        """What a job was to run, by its own plan or, if it never began, by that of another job of its partition."""
        for planner in sorted(self.jobs, key=lambda other: other is not job):
            file = planner.folder(self.top) / PLAN
            if (planner.partition, planner.parts) == (job.partition, job.parts) and file.exists():
                listed = map(Planned.model_validate, json.loads(file.read_text()))
                return [planned.case for planned in listed if planned.part == job.part]
        return None
