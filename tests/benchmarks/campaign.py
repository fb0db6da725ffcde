"""Experiments and searches over the GPUs and the spare cores of one host, within a time: run by hand.

    python tests/benchmarks/campaign.py JOBS --state FOLDER --archive FILE.tgz [--gpus 4] [--cores 8] [--limit 570]

JOBS is a text file with a line for each job, the most important first: ``gpu NAME run EXPERIMENT [OPTIONS]`` is
``perfport run EXPERIMENT OPTIONS`` on the next GPU that is free, with so many cores of its own, and ``gpu NAME tune
TARGET [OPTIONS]`` a search, whose profile lies beside it; ``cpu NAME ...`` takes the cores that no GPU has, one such
job after the other. (Much of that has come out ``contended``: a GPU's job and other tenants share memory with it.) The
folders of all of them lie in the state's; what the limit (seconds) cuts off goes on in the next call.
CUDA_VISIBLE_DEVICES says which GPUs there are, where not all. The archive is written anew whenever a job ends.
"""

from __future__ import annotations

import argparse
import os
import queue
import shlex
import signal
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

#: Kinds of files of a job that are worth carrying home: all but reports and plots.
KEPT = (".jsonl", ".json", ".yaml", ".log")
#: What a run or a search has stored once it can go on.
STORED = ("records.jsonl", "tune.jsonl")
#: Seconds that a run gets to end by itself once it is interrupted; with less than that left none is begun.
GRACE_S = 8.0


@dataclass(frozen=True)
class Job:
    """A line of the file of jobs; ``words`` are the command's."""

    place: str
    name: str
    words: list[str]

    def command(self, folder: Path) -> list[str]:
        """Return the command line that does the job in a folder, or goes on with it."""
        profile = ["-o", str(folder / "profile.yaml")] if self.words[0] == "tune" else []
        resume = ["--resume"] if any((folder / name).exists() for name in STORED) else []
        return [sys.executable, "-m", "perfport.cli", *self.words, *profile, "--out", str(folder), *resume]


def jobs(path: Path) -> list[Job]:
    """Read a file of jobs; empty lines and comments are left out. Raises `SystemExit`, naming the line."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if len(words) < 4 or words[0] not in ("gpu", "cpu") or words[2] not in ("run", "tune"):
            raise SystemExit(f"{path}: line {number}: expected 'gpu|cpu NAME run|tune TARGET [OPTIONS]', got {line!r}")
        found.append(Job(words[0], words[1], words[2:]))
    return found


class Campaign:
    """The jobs of one call."""

    def __init__(self, state: Path, archive: Path, limit: float) -> None:
        self._state, self._archive = state, archive
        self._end = time.monotonic() + limit
        self._packing = threading.Lock()

    def work(self, waiting: queue.SimpleQueue[Job], cores: set[int], gpu: str) -> None:
        """Run jobs, one after the other, until none waits or the time is over."""
        while self._end - time.monotonic() > GRACE_S:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            self._run(job, cores, gpu)
            self._pack()

    def _run(self, job: Job, cores: set[int], gpu: str) -> None:
        folder = self._state / job.name
        if (folder / "done").exists():
            return
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
        log = self._state / f"{job.name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                job.command(folder), stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),
            )  # fmt: skip
            try:
                code = process.wait(max(0.0, self._end - GRACE_S - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = self._stop(process)
        if folder.exists() and code is not None:
            (folder / "done").touch()
        print(f"{job.name}: {'cut off' if code is None else f'exit code {code}'}", flush=True)

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE_S - 2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)

    def _pack(self) -> None:
        with self._packing:
            partial = self._archive.with_name(self._archive.name + ".part")
            with tarfile.open(partial, "w:gz") as archive:
                for path in sorted(self._state.rglob("*")):
                    if path.suffix in KEPT and path.is_file():
                        archive.add(path, path.relative_to(self._state))
            partial.replace(self._archive)


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--cores", type=int, default=4, help="for each GPU")
    parser.add_argument("--limit", type=float, default=3600.0)
    asked = parser.parse_args()
    asked.state.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(asked.state, asked.archive, asked.limit)
    waiting: dict[str, queue.SimpleQueue[Job]] = {"gpu": queue.SimpleQueue(), "cpu": queue.SimpleQueue()}
    for job in jobs(asked.jobs):
        waiting[job.place].put(job)
    cores = sorted(os.sched_getaffinity(0))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(asked.gpus)))
    gpus = visible.split(",")[: asked.gpus]
    taken = len(gpus) * asked.cores
    shares = [(waiting["gpu"], cores[k * asked.cores : (k + 1) * asked.cores], gpu) for k, gpu in enumerate(gpus)]
    if len(cores) > taken:
        shares.append((waiting["cpu"], cores[taken:], ""))
    workers = [threading.Thread(target=campaign.work, args=(q, set(own) or set(cores), gpu)) for q, own, gpu in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
