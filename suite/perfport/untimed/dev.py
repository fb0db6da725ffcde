"""``perfport dev``: each save of a workload's files is compiled, verified and timed, in processes that may die of it.

The parent polls the files, copies each state that is saved, and asks one process per device (`bench`) to judge it. It
imports nothing of what is edited. A process lives until the Python files change, it dies, or it is silent for too long.

Polling: a workload has some dozens of files, whose times take a millisecond to read. It needs no further library, and
sees saves on network file systems and by renaming, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..backend.offline import cuda_info
from ..machine import private
from ..model.device import DeviceInfo
from ..model.record import Identity, Status
from ..run.messages import StepStarted
from ..run.runner import GROUP_STEP_S, WorkerDied, WorkerHandle
from ..workload import code_files
from .bench import Report, Task, Version, main
from .show import TARGET, Subject

POLL_S = 0.1
#: Of what a process that died has printed.
MOST_PRINTED = 2000


@dataclass(frozen=True)
class Round:
    """What came of one save.

    Attributes
    ----------
    number : int
        From 1.
    identity : Identity
    changed : tuple of str
        Files saved since the round before, as paths in the workload's folder; empty in the first round.
    reports : dict of Report
        By the id of each device, in their order.
    seconds : float
        From when the save was seen to the last verdict.
    """

    number: int
    identity: Identity
    changed: tuple[str, ...]
    reports: dict[str, Report]
    seconds: float

    @property
    def wrong(self) -> bool:
        """Whether a result is wrong."""
        return any(report.status is Status.WRONG for report in self.reports.values())

    @property
    def failed(self) -> bool:
        """Whether it did not get as far as a result, on any device that it can run on."""
        return any(report.status.failed for report in self.reports.values())


@dataclass
class _Worker:
    """A process, and the Python files that it has imported."""

    handle: WorkerHandle
    python: str
    output: Path


class Loop:
    """Judges what is saved.

    Parameters
    ----------
    subject : Subject
        The variant, or a stored case of it, whose parameters and tunables are kept.
    devices : sequence of DeviceInfo
    timeout : float
        Seconds that a step of the edited code may take: a verification at one size, a sample.
    tell : callable
        Is told what is done.
    """

    def __init__(
        self, subject: Subject, devices: Sequence[DeviceInfo], timeout: float, tell: Callable[[str], None]
    ) -> None:
        self._folder, self._identity, self._seed = subject.workload.folder, subject.identity, subject.seed
        self._devices = [*devices]
        if not any("cuda" in device.capabilities for device in devices):
            self._devices.append(cuda_info(TARGET))
        self._timeout, self._tell = timeout, tell
        self._copies = Path(tempfile.mkdtemp(prefix="dev-", dir=private.folder()))
        self._workers: dict[str, _Worker] = {}
        self._rivals: dict[str, str] = {}
        self._excluded: dict[str, tuple[str, ...]] = {}
        self._right: dict[str, Version] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._number = 0

    def wait(self) -> None:
        """Return when files have been saved since the last round, and are no longer being written."""
        before = self._stamps()
        while True:
            time.sleep(POLL_S)
            latest = self._stamps()
            if latest == before != self._seen:
                return
            before = latest

    def _stamps(self) -> dict[str, tuple[int, int]]:
        stamps = {}
        for path in code_files(self._folder):
            with contextlib.suppress(FileNotFoundError):  # editors replace files
                found = path.stat()
                stamps[str(path.relative_to(self._folder))] = (found.st_mtime_ns, found.st_size)
        return stamps

    def round(self) -> Round:
        """Judge the files as they are now on every device, one after the other."""
        started = time.perf_counter()
        seen = self._stamps()
        names = sorted(seen.keys() | self._seen.keys())
        changed = tuple(name for name in names if seen.get(name) != self._seen.get(name)) if self._number else ()
        self._seen, self._number = seen, self._number + 1
        now = self._copy()
        reports = {device.id: self._judge(device, now) for device in self._devices}
        for identifier, report in reports.items():
            if report.status is Status.OK:
                self._right[identifier] = now
        self._forget(now)
        return Round(self._number, self._identity, changed, reports, time.perf_counter() - started)

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for worker in self._workers.values():
            worker.handle.kill()
        self._workers.clear()
        shutil.rmtree(self._copies, ignore_errors=True)

    def _copy(self) -> Version:
        folder = self._copies / str(self._number) / self._folder.name
        # An editor's lock of a file that is not saved yet may be a symbolic link to nowhere.
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(self._folder, folder, ignore=ignored, ignore_dangling_symlinks=True)
        digest = hashlib.sha256()
        for path in code_files(folder):
            if path.suffix in (".py", ".yaml"):
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
        return Version(folder, digest.hexdigest())

    def _forget(self, now: Version) -> None:
        """Remove copies that no further round asks for."""
        kept = {version.folder.parent for version in (now, *self._right.values())}
        for folder in self._copies.iterdir():
            if folder.is_dir() and folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _judge(self, device: DeviceInfo, now: Version) -> Report:
        before = self._right.get(device.id)
        while True:
            excluded = self._excluded.get(device.id, ())
            report, at = self._ask(device, Task(now, before, self._rivals.get(device.id), excluded))
            if at is None or at.key in (None, self._identity.variant) or not at.step.startswith("looking"):
                break
            self._excluded[device.id] = (*excluded, str(at.key))  # another variant took the process along
        if report.rival_name is not None:
            self._rivals[device.id] = report.rival_name
        for name in ("reason", "log"):  # the author's files, not their copies
            text = getattr(report, name)
            for version in filter(None, (now, before)):
                text = text.replace(str(version.folder), str(self._folder))
            setattr(report, name, text)
        return report

    def _ask(self, device: DeviceInfo, task: Task) -> tuple[Report, StepStarted | None]:
        """Return the report of a device's process; where that died, one that says so, and the step that it was at."""
        worker = self._worker(device, task.now)
        worker.handle.send(task)
        at = StepStarted(None, "starting")
        try:
            while True:
                limit = max(self._timeout, GROUP_STEP_S) if at.key is None else self._timeout
                message = worker.handle.receive(limit)
                if isinstance(message, Report):
                    if message.status is Status.CRASHED:  # nobody knows what the device is left in
                        self._end(device)
                    return message, None
                at = message
                self._tell(f"{device.id}: {at.step}")
        except WorkerDied as died:
            self._end(device)
            printed = worker.output.read_text(errors="replace")[-MOST_PRINTED:] if worker.output.exists() else ""
            reason = f"{died} ({at.step})"
            return Report(died.status, reason, printed, rival_name=task.rival), at

    def _worker(self, device: DeviceInfo, now: Version) -> _Worker:
        """Return the device's process; a fresh one where other Python files are imported than these."""
        worker = self._workers.get(device.id)
        if worker and worker.python != now.python:
            self._end(device)
            worker = None
        if worker is None:
            output = self._copies / f"{device.id.replace(':', '-')}.log"
            handle = WorkerHandle(main, device, self._identity, self._seed, output)
            worker = self._workers[device.id] = _Worker(handle, now.python, output)
        return worker

    def _end(self, device: DeviceInfo) -> None:
        self._workers.pop(device.id).handle.kill()
