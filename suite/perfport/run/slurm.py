"""Experiments on the nodes of a Slurm cluster (``executor: {kind: slurm}``, docs/integrations.md).

The cases of a partition are shared out among its jobs. Each job plans on its own node and fills a run folder of its
own, which it resumes when it is run again: Slurm requeues it after a node failed, and, asked by submitit, when it is
preempted or out of time; a job that ended otherwise without finishing is submitted anew.

    OUT/jobs.json                the jobs and how they ended
    OUT/OUT-PARTITION/           merged run, what reports read
    OUT/jobs/OUT-PARTITION-N/    run folder of a job, with plan.json
    OUT/jobs/submitit-SESSION/   batch scripts, logs, and of each job ID.json, how it ended

What a job executes is handed to it by submitit, as a pickle. It goes through a folder that is new in each session and
the user's alone, and nothing else is ever unpickled: jobs say in JSON how they ended.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from .. import workload
from ..model.errors import InfrastructureError, Stopped, UsageError, check_writable
from ..model.untrusted import line, say, slug
from ..store.results import EXPERIMENT, Writer
from . import local, plan
from .cases import Case
from .experiment import Experiment
from .jobs import PLAN, Job, Outcome, Planned, Share, Stored, private, read
from .merge import Part, merge, write
from .runner import stamp
from .signals import heeded

JOBS = "jobs.json"
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
        Without submitit or Slurm's commands, or where others could change what jobs execute.
    """

    def __init__(self, top: Path, definition: Experiment) -> None:
        try:
            import submitit
        except ImportError:
            raise InfrastructureError("executor slurm needs submitit: pip install perfport[slurm]") from None
        if not all(map(shutil.which, ("sbatch", "srun", "squeue"))):
            raise InfrastructureError("executor slurm: sbatch, srun and squeue are not on the PATH")
        self._executor = definition.executor
        self._name = slug(top.name)
        self._jobs = private(top, "jobs")
        self._session: Path | None = None
        self._submitit = submitit
        self._failed_polls = 0

    def submit(self, job: Job, share: Share) -> None:
        """Hand a share over. Raises `InfrastructureError` with what ``sbatch`` says if it refuses."""
        # Whole nodes: neighbours would disturb what is measured.
        given = {"exclusive": True, "requeue": True, **self._executor.partitions[job.partition].sbatch}
        if self._session is None:
            self._session = Path(tempfile.mkdtemp(prefix="submitit-", dir=self._jobs))  # new, and open to nobody else
        executor = self._submitit.SlurmExecutor(folder=self._session, max_num_timeout=self._executor.retries)
        executor.update_parameters(
            partition=job.partition, time=self._executor.time, job_name=self._name,
            additional_parameters={name: value for name, value in given.items() if value is not False},
        )  # fmt: skip
        try:
            submitted = executor.submit(share.model_copy(update={"outcome": self._session}))
        except self._submitit.core.utils.FailedJobError as error:
            raise InfrastructureError(f"sbatch, partition {job.partition}: {line(error, 1000)}") from None
        job.ids.append(submitted.job_id)
        job.session = self._session.name
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
            ended = job.state not in ACTIVE and Outcome.read(self._jobs / job.session, job.ids[-1])
            if ended and ended.error:
                job.reason = ended.error
            elif ended:
                job.state, job.reason = (REFUSED, ended.refused) if ended.refused else (DONE, "")


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
    plan.check(definition, str(path), workload.discover(options.workloads), patterns=options.patterns)
    jobs = [
        Job(partition=name, part=part, parts=partition.jobs)
        for name, partition in definition.executor.partitions.items()
        for part in range(partition.jobs)
    ]
    if options.dry_run:
        rows = [[job.partition, f"{job.part + 1}/{job.parts}", ", ".join(_devices(definition, job))] for job in jobs]
        say(tabulate(rows, ["partition", "job", "devices"], disable_numparse=True))
        return local.Finished([], [], None)
    top = _folder(definition, options)
    if not str(top).isprintable():
        raise UsageError(f"{str(top)!r}: no batch script can name this folder; use --out with another")
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
        say(f"the jobs go on; to collect them: perfport run {path} --resume --out {top}")
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
            stored = read(self.top / JOBS, Stored)
            self.seed = stored.seed
            known = {(job.partition, job.part, job.parts): job for job in stored.jobs}
            self.jobs = [known.get((job.partition, job.part, job.parts), job) for job in jobs]

    def _store(self) -> None:
        self.writer.text(JOBS, Stored(seed=self.seed, jobs=self.jobs).model_dump_json(indent=1) + "\n")

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
                    say(f"{job.fate}; submitted again", flush=True)
                    self._submit(job)
            self._store()
            states = Counter(job.state for job in self.jobs)
            if (now := ", ".join(f"{count} {state}" for state, count in sorted(states.items()))) != shown:
                say(f"jobs: {now}", flush=True)
                wait, shown = POLL_S[0], now

    def _submit(self, job: Job) -> None:
        share = Share(
            experiment=self.top / EXPERIMENT, folder=job.folder(self.top), devices=_devices(self.definition, job),
            part=job.part, parts=job.parts, seed=self.seed, patterns=self.options.patterns,
            retry=self.options.retry, workloads=[str(Path(p).resolve()) for p in self.options.workloads],
            native=self.options.native, command=self.options.command,
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
        say(tabulate(rows, headers="keys", disable_numparse=True))
        if merged.duplicates:
            say(f"stored more than once, counted once: {', '.join(merged.duplicates)}")
        every = [record for records in (*merged.records, *merged.lost) for record in records]
        if folders:
            local.conclude(every, folders, say, local.again(self.options.command))
        report = local.report_file(self.definition, self.top, self.options.whole) if folders else None
        unknown = [f"{job.partition} {job.part + 1}: {job.fate}" for job in self.jobs if self._planned(job) is None]
        untold = f"lost, and nobody planned what they were to run: {'; '.join(unknown)}" if unknown else ""
        return local.Finished(every, folders, report, untold)

    def _planned(self, job: Job) -> list[Case] | None:
        """What a job was to run, by its own plan or, if it never began, by that of another job of its partition."""
        for planner in sorted(self.jobs, key=lambda other: other is not job):
            file = planner.folder(self.top) / PLAN
            if (planner.partition, planner.parts) == (job.partition, job.parts) and file.exists():
                return [planned.case for planned in read(file, list[Planned]) if planned.part == job.part]
        return None
