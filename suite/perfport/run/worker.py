"""The worker: a child process that runs groups of cases and sends records back.

It announces each step before taking it, so that the parent can attribute a crash or a hang to its case.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any

from .. import backend, workload
from ..backend import Artifact, Module, OpenDevice
from ..machine import platforms
from ..machine.device_profile import match_profile
from ..measure.ceilings import Ceilings, load_cached, probe_again, raise_to, store, sweep
from ..measure.contention import Watch
from ..measure.repeats import joined
from ..measure.roofline import (
    IMPOSSIBLE_SHARE,
    INTEGER_CEILINGS,
    datasheet_ceilings,
    measured_ceilings,
    problem_bound,
    variant_bound,
)
from ..measure.sampling import Execution, Sampler, Subject
from ..model.arithmetic import geometric_mean
from ..model.errors import (
    DeviceMemoryError,
    PerfportError,
)
from ..model.record import Failure, Identity, Interval, MetricValue, Overheads, Record, Status, Timing, Verification
from ..model.work import mean_of
from ..workload import Problem, Session, Variant
from ..workload.execution import Built, build, status_of
from .plan import Case, Group

PROBE_AGE_S = 10.0


@dataclass
class Live:
    """A case with its variant, built on every instance of the inputs and ready to be sampled."""

    case: Case
    cls: type[Variant]
    record: Record
    instances: dict[str, Built] = field(default_factory=dict)
    watch: Watch | None = field(default=None)

    @property
    def first(self) -> Built:
        """The one that stands for the case where instances do not differ, or are not averaged."""
        return next(iter(self.instances.values()))

    def verified(self, found: Verification) -> None:
        """Keep the worst of all verifications of the case."""
        known = self.record.verification
        self.record.verification = min(filter(None, (known, found)), key=lambda one: (one.passed, -one.worst))

    def release(self) -> None:
        """Give the buffers back."""
        for built in self.instances.values():
            built.release()


class Retire(Exception):
    """The device is in a state that no further case may meet."""


def main(connection: Connection, workload_paths: list[str], run: str) -> None:
    """Serve groups until the parent closes the connection."""
    _die_with_parent()
    # The parent decides what Ctrl-C means, and what a batch system sends to every process of a job.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(name, signal.SIG_IGN)
    os.environ.setdefault("POCL_KERNEL_CACHE", "0")  # compile times are reported: measure them
    workloads: dict[str, workload.Workload] = {}
    devices: dict[str, OpenDevice] = {}
    probes: dict[str, tuple[float, Ceilings]] = {}
    while True:
        try:
            group: Group = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            try:
                if group.workload not in workloads:
                    workloads |= workload.discover(workload_paths, group.workload)
                made = GroupRun(group, workloads[group.workload], devices, probes, connection.send, run)
            except PerfportError as error:  # the problem itself cannot be made: no case of it can run
                for case in group.cases:
                    record = failed_record(case.identity, case.key, run, group.seed, status_of(error), str(error))
                    connection.send(("record", record))
            else:
                made.run()
        except Retire:
            connection.send(("retire",))
            return
        except Exception as error:  # while sampling: the parent knows which case is in flight
            connection.send(("failed", traceback.format_exc(), status_of(error)))
            return
        connection.send(("done",))


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class GroupRun:
    """Runs one group: builds and verifies each case, samples all of them interleaved, sends each record when done."""

    def __init__(
        self,
        group: Group,
        found: workload.Workload,
        devices: dict[str, OpenDevice],
        probes: dict[str, tuple[float, Ceilings]],
        send: Callable[[Any], None],
        run: str,
    ) -> None:
        self.group = group
        self.workload = found
        self.probes = probes
        self.send = send
        self.run_name = run
        self.send(("at", None, "opening the device"))
        self.device = self._open(devices)
        self.problems = {name: self._problem(seed) for name, seed in group.inputs.items()}
        self.work = mean_of([problem.work().on(group.device.kind) for problem in self.problems.values()])
        self.artifacts: dict[str, Artifact] = {}
        self.sessions = {
            name: Session(self.device, problem, found.folder, artifacts=self.artifacts)
            for name, problem in self.problems.items()
        }
        # Inputs that nothing is tuned for or timed on: each run draws others.
        drawn = secrets.randbelow(2**31) if group.verify_seed is None else group.verify_seed
        self.drawn = Session(self.device, self._problem(drawn), found.folder, timed=False, artifacts=self.artifacts)
        profile = match_profile(self.device.info.name, self.device.info.kind)
        self.datasheet = datasheet_ceilings(profile) if profile else {}

    def _problem(self, seed: int) -> Problem:
        cls = self.workload.problem(self.group.problem)
        return cls(cls.Parameters.model_validate(self.group.parameters), seed)

    def _open(self, devices: dict[str, OpenDevice]) -> OpenDevice:
        info = self.group.device
        if info.id not in devices:
            if info.runtime:
                platforms.use([info.runtime])
            devices[info.id] = backend.get(info.backend).open(info)
        return devices[info.id]

    def run(self) -> None:
        self.known = self._ceilings()
        self._raise(self._recent_probe(self.known) or self._probe("before"))
        live = [one for case in self.group.cases if (one := self._prepare(case))]
        self.drawn.close()
        need_wall = any(one.cls.host or one.cls.host_driven for one in live)
        sampler = Sampler(self.device, self.group.targets, need_wall)
        by_key = {one.case.key: one for one in live}
        subjects = []
        for one in live:
            instances = {name: Execution(built.variant.launch) for name, built in one.instances.items()}
            subject = Subject(one.case.key, instances, one.cls.host, one.cls.host_driven)
            sampler.warm_up(subject, lambda subject: self._at(by_key[subject.key].case, "warm-up"))
            one.watch = Watch(self.device)
            subjects.append(subject)
        try:
            for subject in sampler.run(subjects, lambda subject: self._at(by_key[subject.key].case, "sampling")):
                self._finish(by_key[subject.key], subject)
        finally:
            sampler.close()
        for session in self.sessions.values():  # first: the probe needs room for arrays of its own
            session.close()
        self._probe("after")

    def _at(self, case: Case, step: str) -> None:
        self.send(("at", case.key, step))

    def _ceilings(self) -> Ceilings:
        info = self.device.info
        known = load_cached(info)
        if known is None:
            known = sweep(self.device, progress=lambda name: self.send(("at", None, f"measuring ceiling {name}")))
            store(info, known)
        return known

    def _probed(self, known: Ceilings) -> set[str]:
        """The ceilings to probe: what the work of this group goes under, and memory where caches are cold."""
        work = self.work
        units = {self.workload.variant(self.group.problem, case.identity.variant).unit for case in self.group.cases}
        names = set(filter(None, units))
        names |= {"dram_read", "dram_copy"} if self.group.targets.cache == "cold" else set()
        names |= {"fp32_fma"} if work.flops else set()
        names |= set(INTEGER_CEILINGS) if work.integer_ops else set()
        return names & set(known.entries)

    def _recent_probe(self, known: Ceilings) -> Ceilings | None:
        """The probe that ended the group before, if that was just now and of all that this group needs."""
        taken, probe = self.probes.get(self.device.info.id, (0.0, None))
        fresh = probe is not None and time.monotonic() - taken < PROBE_AGE_S
        return probe if probe and fresh and self._probed(known) <= set(probe.entries) else None

    def _raise(self, probe: Ceilings) -> None:
        """Take what a probe gave into account: where it gave more than the sweep, the sweep was disturbed."""
        raised = raise_to(self.known, probe)
        if raised is not self.known:
            store(self.device.info, raised)
        self.known = raised
        self.ceilings = measured_ceilings(raised, probe)
        self.send(("ceilings", self.device.info.id, raised.model_dump()))

    def _probe(self, when: str) -> Ceilings:
        self.send(("at", None, f"probing ceilings {when}"))
        now = probe_again(self.device, self.known, self._probed(self.known))
        self.probes[self.device.info.id] = (time.monotonic(), now)
        entries = {name: {"value": e.value, "low": e.low, "high": e.high} for name, e in now.entries.items()}
        self.send(("probe", {"device": self.known.device, "when": when, "date": now.date, "entries": entries}))
        return now

    def _prepare(self, case: Case) -> Live | None:
        """Build and verify; send a record and return nothing if that ends the case."""
        cls = self.workload.variant(self.group.problem, case.identity.variant)
        record = Record(
            key=case.key, run=self.run_name, time=_now(), status=Status.CRASHED, identity=case.identity,
            title=cls.title, unit=cls.unit, source=cls.source, seed=self.group.seed, work=self.work,
            verification=case.earlier.verification if case.earlier else None,
        )  # fmt: skip
        live = Live(case, cls, record)
        modules: dict[str, Module] = {}
        try:
            for name, session in self.sessions.items():
                self._at(case, "compile")
                live.instances[name] = build(cls, session, case.identity.tunables, case.macros, modules)
            self._describe(live)
            for built in live.instances.values():
                self._at(case, "verify")
                live.verified(built.execute())
            self._verify_drawn(live, modules)
        except Exception as error:
            self._fail(record, error)
            live.release()
            return None
        if record.verification and not record.verification.passed:
            self._wrong(record)
            live.release()
            return None
        return live

    def _verify_drawn(self, live: Live, modules: dict[str, Module]) -> None:
        """Verify the variant built anew on inputs of its own; what fails there names their seed."""
        step = f"verify on inputs drawn from seed {self.drawn.problem.seed}"
        self._at(live.case, step)
        try:
            built = build(live.cls, self.drawn, live.case.identity.tunables, live.case.macros, modules)
            try:
                live.verified(built.execute())
            finally:
                built.release()
        except Exception as error:
            error.add_note(step)
            raise

    def _describe(self, live: Live) -> None:
        record = live.record
        artifacts = [artifact for built in live.instances.values() for artifact in built.setup.artifacts]
        record.source_hash = "+".join(sorted({artifact.source_hash[:16] for artifact in artifacts}))
        record.options = sorted({option for artifact in artifacts for option in artifact.options})
        record.resources = {kernel.name: kernel.resources for kernel in live.first.setup.kernels}

    def _wrong(self, record: Record) -> None:
        assert record.verification
        record.status = Status.WRONG
        record.failure = Failure(reason=record.verification.complaint)
        self.send(("record", record))

    def _fail(self, record: Record, error: Exception) -> None:
        record.status = status_of(error)
        log = getattr(error, "log", "")
        if record.status is Status.CRASHED:
            log = traceback.format_exc()
        reason = ", ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])
        record.failure = Failure(reason=reason, log=log)
        self.send(("record", record))
        if record.status is Status.CRASHED:
            try:
                self.device.finish()
            except Exception as sticky:
                raise Retire from sticky

    def _finish(self, live: Live, subject: Subject) -> None:
        record, setup = live.record, live.first.setup
        try:
            timing = subject.timing(self.group.targets)
            earlier = live.case.earlier
            if earlier and earlier.timing:
                timing = joined(earlier.timing, timing, self.group.targets.max_samples)
            contended = live.watch.reason() if live.watch else ""
            if earlier and earlier.status is Status.CONTENDED and earlier.failure:
                contended = contended or earlier.failure.reason
            for built in live.instances.values():
                self._at(live.case, "verify again")
                live.verified(built.execute())
            traffics = [built.variant.traffic() for built in live.instances.values()]
            record.traffic = mean_of([one for one in traffics if one]) if all(traffics) else None
            record.extra = live.first.variant.notes()
        except Exception as error:
            self._fail(record, error)
            live.release()
            return
        if record.verification and not record.verification.passed:
            self._wrong(record)
            live.release()
            return
        record.status = Status.CONTENDED if contended else Status.OK
        if contended:
            record.failure = Failure(reason=contended)
        record.time = _now()
        record.timing = timing
        record.clocks = self.device.clocks()
        record.overheads = Overheads(
            compile_s=setup.compile_s, layout_s=setup.layout_s, upload_s=setup.input_s,
            device_bytes=setup.device_bytes,
        )  # fmt: skip
        self._place(live, timing)
        self.send(("record", record))
        live.release()

    def _metric(self, seconds: float) -> float:
        values = [problem.metric_value(seconds) for problem in self.problems.values()]
        return geometric_mean(values) if len(values) > 1 else values[0]

    def _bound(self, live: Live, taken: Interval, cold: bool) -> None:
        """Fill in the bounds under the ceilings as they are known now."""
        record, unit = live.record, live.cls.unit
        assert record.work
        record.ceilings = self.ceilings
        required = record.work.moved() if live.cls.fewer_operations else record.work
        record.problem_bound = problem_bound(required, self.ceilings, taken, unit, cold)
        record.datasheet_bound = problem_bound(required, self.datasheet, taken, unit, cold)
        if record.traffic:
            merged = self.device.info.kind == "cpu"
            record.variant_bound = variant_bound(record.traffic, self.ceilings, taken, unit, cold, merged)

    def _place(self, live: Live, timing: Timing) -> None:
        """Fill in metric and bounds."""
        record, cold = live.record, timing.cache == "cold"
        chosen = timing.summary[timing.rank]
        taken = Interval(value=chosen.median, low=chosen.ci_low, high=chosen.ci_high)
        values = [self._metric(seconds) for seconds in (taken.value, taken.low, taken.high)]
        metric = self.workload.problem(self.group.problem).metric
        record.metric = MetricValue(
            tag=metric.tag, unit=metric.unit, direction=metric.direction,
            value=values[0], low=min(values), high=max(values),
        )  # fmt: skip
        if record.identity.device_count > 1:  # ceilings are of one device
            record.ceilings = self.ceilings
            return
        self._bound(live, taken, cold)
        if _impossible(record):  # unless the ceilings were taken in a bad moment
            self._at(live.case, "probing ceilings again")
            with contextlib.suppress(DeviceMemoryError):
                self._raise(self._probe("again"))
            self._bound(live, taken, cold)
        if (bound := record.problem_bound) and _impossible(record):
            record.status = Status.IMPOSSIBLE
            record.failure = Failure(
                reason=f"{taken.value:.3g} s is less than the problem bound of {bound.seconds:.3g} s allows "
                f"({bound.share.value:.0%} of the {bound.binding} bound, at least {bound.share.low:.0%}): "
                "the declared work, the clock or the ceiling is wrong"
            )


def _impossible(record: Record) -> bool:
    """Whether a case was faster than its problem bound, whatever the uncertainty of the two."""
    return record.problem_bound is not None and record.problem_bound.share.low > IMPOSSIBLE_SHARE


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def failed_record(
    identity: Identity, key: str, run: str, seed: int, status: Status, reason: str, log: str = ""
) -> Record:
    """Return the record of a case whose worker did not live to send one."""
    failure = Failure(reason=reason, log=log)
    return Record(key=key, run=run, time=_now(), status=status, identity=identity, seed=seed, failure=failure)
