"""The process behind ``perfport dev``: one variant on one device, compiled, verified and timed each time it is saved.

It stays alive from save to save, with its device, problems and loaded code. It never imports a file twice: another
state of the Python files gets another process, an edited kernel another module of this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .. import backend
from ..backend import Module, OpenDevice
from ..backend.offline import OfflineDevice
from ..machine import platforms
from ..machine.children import answer, obey_parent
from ..measure.ceilings import load_cached
from ..measure.contention import Watch
from ..measure.intervals import Ratio, Series, speedup
from ..measure.roofline import measured_ceilings, place
from ..measure.sampling import Execution, Sampler, Subject, Targets
from ..model.device import DeviceInfo
from ..model.errors import UnavailableError, UsageError
from ..model.record import Identity, Record, Status
from ..run.cases import now
from ..run.messages import StepStarted
from ..run.worker.serving import BATCH
from ..workload import Built, Peer, Problem, Session, Variant, Workload, build, load_copy
from ..workload.execution import status_of

#: A few samples of each side: enough for paired ratios with a 95 % interval, few enough to wait for.
TARGETS = Targets(min_samples=7, max_samples=21, time_budget=0.2)
#: Seconds after which no further variant is tried in search of the best one, and executions of each.
SEARCH_S, SEARCH_SAMPLES = 15.0, 3
NOW, BEFORE, RIVAL = "now", "before", "rival"
NAMES = {NOW: "this version", BEFORE: "the version before", RIVAL: "the best other variant"}


@dataclass(frozen=True)
class Version:
    """A state of a workload's folder: a copy that nobody edits, and what tells its Python files from others."""

    folder: Path
    python: str


@dataclass(frozen=True)
class Task:
    """What to do with a save: compile, verify and time it beside the last version that was right and the best variant.

    ``rival`` is the name of the best other variant; None: it is to be looked for, not among ``excluded``.
    """

    now: Version
    before: Version | None = None
    rival: str | None = None
    excluded: tuple[str, ...] = ()


@dataclass
class Report:
    """How a save did on one device.

    Attributes
    ----------
    status : Status
        ``ok``: right everywhere, and timed where there is a device.
    reason, log : str
        As of `perfport.model.record.Failure`.
    sizes : int
        How many check sizes passed.
    record : Record, optional
        Time, bounds, resources, as a run would store them.
    before, rival : Ratio, optional
        How many times as fast the save is as the version before, and as the best other variant.
    rival_name : str, optional
        Empty where there is none.
    disturbed : str
        Why times are not to be trusted; empty where nothing says so.
    """

    status: Status = Status.OK
    reason: str = ""
    log: str = ""
    sizes: int = 0
    record: Record | None = None
    before: Ratio | None = None
    rival: Ratio | None = None
    rival_name: str | None = None
    disturbed: str = ""


def main(connection: Connection, info: DeviceInfo, identity: Identity, seed: int, output: Path) -> None:
    """Serve tasks until the parent closes the connection. What compilers and kernels print goes to ``output``."""
    obey_parent(*BATCH)
    os.environ.setdefault("POCL_KERNEL_CACHE", "0")
    answer(connection, output, lambda: Bench(info, identity, seed, connection.send).serve)


@dataclass
class Bench:
    """Judges versions of one variant on one device."""

    info: DeviceInfo
    identity: Identity
    seed: int
    send: Callable[[Any], None]
    _device: OpenDevice | None = None
    _loaded: dict[str, Workload] = field(default_factory=dict)
    _problems: dict[str, Problem] = field(default_factory=dict)
    _modules: dict[str, Module] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def serve(self, task: Task) -> Report:
        """Judge a save. Whatever goes wrong with it is in the report."""
        report = Report(rival_name=task.rival)
        self._used.clear()
        try:
            self._step(None, "importing")
            workload = self._workload(task.now)
            variant = workload.variant(self.identity.problem, self.identity.variant)
        except Exception as error:
            return self._failed(report, error, Status.COMPILE_ERROR)
        try:
            if self._offline:
                self._compile(task.now, variant)
                return report
            self._step(None, "opening the device")
            self._judge(task, variant, report)
        except Exception as error:
            self._failed(report, error, status_of(error))
        self._modules = {key: module for key, module in self._modules.items() if key in self._used}
        return report

    def _failed(self, report: Report, error: Exception, status: Status) -> Report:
        if isinstance(error, UnavailableError):
            status = Status.UNAVAILABLE
        report.status, report.reason = status, str(error) or type(error).__name__
        report.log = getattr(error, "log", "") or ("" if isinstance(error, UsageError) else traceback.format_exc())
        return report

    def _step(self, key: str | None, step: str) -> None:
        self.send(StepStarted(key, step))

    @property
    def _offline(self) -> bool:
        return "offline" in self.info.id

    @property
    def device(self) -> OpenDevice:
        """The device, opened when it is first asked for."""
        if self._device is None:
            if self.info.runtime:
                platforms.use([self.info.runtime])
            self._device = backend.get(self.info.backend).open(self.info)
        return self._device

    def _workload(self, version: Version) -> Workload:
        if version.python not in self._loaded:
            self._loaded[version.python] = load_copy(version.folder, f"perfport_dev_{len(self._loaded)}_")
        return self._loaded[version.python]

    def _problem(self, version: Version, parameters: dict[str, Any]) -> Problem:
        """Return a problem of a version; inputs and references are made once."""
        key = f"{version.python} {json.dumps(parameters, sort_keys=True, default=str)}"
        if key not in self._problems:
            self._step(self.identity.variant, "making inputs")
            cls = self._workload(version).problem(self.identity.problem)
            self._problems[key] = cls(cls.Parameters.model_validate(parameters), self.seed)
        return self._problems[key]

    def _build(self, variant: type[Variant], session: Session) -> Built:
        built = build(variant, session, self._tunables(variant), {}, self._modules)
        self._used.update(artifact.source_hash for artifact in built.setup.artifacts)
        return built

    def _compile(self, version: Version, variant: type[Variant]) -> None:
        """Compile for a target that is not here, at the first check size."""
        problem = self._problem(version, dict(variant.problem.check_sizes[0]))
        self._step(variant.name, "compiling")
        build(variant, Session(OfflineDevice(self.info), problem, version.folder, False), self._tunables(variant), {})

    def _tunables(self, variant: type[Variant]) -> dict[str, Any]:
        own = {name: tunable.default_for(self.info) for name, tunable in variant.tunables.items()}
        return own | self.identity.tunables if variant.name == self.identity.variant else own

    def _verified(
        self, variant: type[Variant], session: Session, parameters: Mapping[str, Any], report: Report
    ) -> bool:
        """Execute once, and return whether all outputs pass."""
        named = ", ".join(f"{key}={value}" for key, value in parameters.items())
        self._step(variant.name, f"verifying at {named}")
        built = self._build(variant, session)
        try:
            verified = built.execute()
        finally:
            built.release()
        if not verified.passed:
            report.status, report.reason = Status.WRONG, f"at {named}: {verified.complaint}"
            return False
        report.sizes += 1
        return True

    def _judge(self, task: Task, variant: type[Variant], report: Report) -> None:
        """Verify at every check size, and at the size that is timed; then time it there."""
        for parameters in variant.problem.check_sizes:
            with self._session(task.now, parameters, timed=False) as session:
                if not self._verified(variant, session, parameters, report):
                    return
        with self._session(task.now, self.identity.parameters) as session:
            if self._verified(variant, session, self.identity.parameters, report):
                self._time(task, variant, session, report)

    @contextlib.contextmanager
    def _session(
        self, version: Version, parameters: Mapping[str, Any], timed: bool = True, lender: Session | None = None
    ) -> Iterator[Session]:
        """Open the problem of a version on the device; with the inputs of another session where they are the same."""
        session = Session(self.device, self._problem(version, dict(parameters)), version.folder, timed)
        try:
            if lender and lender.problem is session.problem:
                session.borrow(lender)
            yield session
        finally:
            session.close()

    def _time(self, task: Task, variant: type[Variant], session: Session, report: Report) -> None:
        """Time the save beside the version before and the best other variant, in turn."""
        reference = task.before or task.now
        with contextlib.ExitStack() as stack:

            def beside(version: Version) -> Session:
                return stack.enter_context(self._session(version, self.identity.parameters, lender=session))

            def add(side: str, cls: type[Variant], on: Session) -> None:
                self._step(variant.name, f"building {NAMES[side]}")
                built[side] = self._build(cls, on)
                stack.callback(built[side].release)

            built: dict[str, Built] = {}
            if report.rival_name is None:
                report.rival_name = self._best_other(reference, beside(reference), variant, task.excluded)
            add(NOW, variant, session)
            if task.before:
                add(BEFORE, self._variant(task.before, variant.name), beside(task.before))
            if report.rival_name:
                add(RIVAL, self._variant(reference, report.rival_name), beside(reference))
            self._sample(built, report)

    def _variant(self, version: Version, name: str) -> type[Variant]:
        return self._workload(version).variant(self.identity.problem, name)

    def _sample(self, built: dict[str, Built], report: Report) -> None:
        subjects = {
            name: Subject(
                name, {"a": Execution(each.launch, each.poison)}, each.variant.host, each.variant.host_driven
            )
            for name, each in built.items()
        }  # fmt: skip
        sampler = Sampler(self.device, TARGETS, any(subject.rank == "wall" for subject in subjects.values()))

        def announce(subject: Subject) -> None:
            self._step(subject.key, f"timing {NAMES[subject.key]}")

        try:
            for subject in subjects.values():
                sampler.warm_up(subject, announce)
            watch = Watch(self.device)
            list(sampler.run(list(subjects.values()), announce))
        finally:
            sampler.close()
        report.disturbed = watch.reason()
        series = {name: _series(subject) for name, subject in subjects.items()}
        report.before = speedup(series[BEFORE], series[NOW]) if BEFORE in series else None
        report.rival = speedup(series[RIVAL], series[NOW]) if RIVAL in series else None
        report.record = self._record(built[NOW], subjects[NOW])

    def _record(self, built: Built, subject: Subject) -> Record:
        """Return what was measured as a record, under the ceilings that are known: none are swept here."""
        variant = built.variant
        identity = self.identity.model_copy(update={"devices": [self.info.id], "backend": self.info.backend})
        known = load_cached(self.info)
        record = Record(
            key="", run="", time=now(), status=Status.OK, identity=identity, title=variant.title, unit=variant.unit,
            seed=self.seed, timing=subject.timing(TARGETS), traffic=variant.traffic(),
            work=built.setup.problem.work(variant.computes, variant.precision).on(self.info.kind),
            ceilings=measured_ceilings(known) if known else {},
            resources={kernel.name: kernel.resources for kernel in built.setup.kernels},
        )  # fmt: skip
        place(record, {}, merged=self.info.kind == "cpu")
        return record

    def _best_other(self, version: Version, session: Session, variant: type[Variant], excluded: tuple[str, ...]) -> str:
        """Return the fastest other variant of ours with the same result, by few executions; empty without any."""
        started, times = time.monotonic(), {}
        for name, cls in self._workload(version).variants[self.identity.problem].items():
            same = (cls.computes, cls.precision) == (variant.computes, variant.precision)
            if name == variant.name or name in excluded or not same or issubclass(cls, Peer):
                continue
            if time.monotonic() - started > SEARCH_S:
                break
            self._step(name, f"looking for the best variant: {name}")
            with contextlib.suppress(Exception):  # another variant that fails is not what the author works on
                built = self._build(cls, session)
                try:
                    times[name] = min(self._once(built) for _ in range(SEARCH_SAMPLES))
                finally:
                    built.release()
        return min(times, key=lambda name: times[name], default="")

    def _once(self, built: Built) -> float:
        """Execute once; return the time in seconds on the clock that ranks the variant."""
        if not (built.variant.host or built.variant.host_driven):
            return self.device.timed(built.launch).span
        started = time.perf_counter()
        built.launch()
        self.device.finish()
        return time.perf_counter() - started


def _series(subject: Subject) -> Series:
    return Series(dict(zip(subject.rounds, subject.samples(subject.rank), strict=True)))
