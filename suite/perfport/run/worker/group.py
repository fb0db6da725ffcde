"""One group: each case built and verified, all of them sampled in turn, each record sent when its case is done."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Iterable
from functools import partial

from ...backend import Artifact, Module
from ...measure.agreement import Agreed
from ...measure.contention import Watch
from ...measure.roofline import required
from ...measure.sampling import Sampler, Subject
from ...model.record import Failure, Status
from ...model.work import mean_of
from ...workload import Peer, Problem, Session, build
from ...workload.execution import status_of
from ..cases import Case, Group, now
from ..messages import CaseFinished, StepStarted
from .audit import Audit
from .energy import UNMEASURED, GroupEnergy
from .inputs import SharedInputs
from .integrity import Integrity
from .layouts import Layouts
from .live import Live
from .placement import Placement
from .probing import GroupCeilings
from .resources import Resources


class DeviceLostError(Exception):
    """The device is in a state that no further case may meet."""


class GroupRun:
    """Runs one group.

    Raises
    ------
    PerfportError
        If the problem cannot be made: no case of it can run.
    """

    def __init__(self, group: Group, resources: Resources) -> None:
        self.group, self.resources = group, resources
        self.workload = resources.workload(group.workload)
        resources.send(StepStarted(None, "opening the device"))
        self.device = resources.device(group.device)
        resources.send(StepStarted(None, "making inputs and references"))
        self.problems = {name: self._problem(seed) for name, seed in group.inputs.items()}
        kind, problems = group.device.kind, self.problems.values()
        results = {self._result(case) for case in group.cases}
        self.work = {which: mean_of([problem.work(*which).on(kind) for problem in problems]) for which in results}
        artifacts: dict[str, Artifact] = {}
        folder = self.workload.folder
        self.sessions = {
            name: Session(self.device, problem, folder, artifacts=artifacts) for name, problem in self.problems.items()
        }
        # Inputs that nothing is tuned for or timed on: each run draws others.
        drawn = secrets.randbelow(2**31) if group.verify_seed is None else group.verify_seed
        self.drawn = Session(self.device, self._problem(drawn), folder, timed=False, artifacts=artifacts)
        self.contents, self.agreement = resources.contents(group.device), resources.agreement(group.device)
        self.others = {name: self._others(session) for name, session in self.sessions.items()}
        self.inputs = {
            name: SharedInputs(session, self.others[name], self.contents) for name, session in self.sessions.items()
        }
        self.drawn_inputs = SharedInputs(self.drawn, None, self.contents)
        first, session = next(iter(self.sessions.items()))
        self.layouts = Layouts(session, self.others[first], self.contents)
        sessions = *self.sessions.values(), self.drawn, *self._redrawn
        harness = self.device, self.contents, self.agreement, self.layouts, self.drawn_inputs, *self.inputs.values()
        self.integrity = Integrity(*harness, *sessions, *(session.problem for session in sessions))

    def _result(self, case: Case) -> tuple[str, str]:
        """What a case computes, and its precision class."""
        return self.workload.variant(self.group.problem, case.identity.variant).computes, case.identity.precision

    def _problem(self, seed: int) -> Problem:
        cls = self.workload.problem(self.group.problem)
        return cls(cls.Parameters.model_validate(self.group.parameters), seed)

    def _others(self, session: Session) -> Session | None:
        """The session whose inputs executions that were built on another one are verified on, too."""
        if session.problem.inputs_by_buffers:
            return self.drawn
        first = session is next(iter(self.sessions.values()))  # of several instances one, to spare memory
        problem = session.problem.redrawn(self.drawn.problem.seed) if first else None
        if problem is None:
            return None
        return Session(self.device, problem, session.folder, timed=False, artifacts=session.artifacts)

    @property
    def _redrawn(self) -> list[Session]:
        """Sessions that are there for their inputs alone."""
        return [session for session in self.others.values() if session and session is not self.drawn]

    def run(self) -> None:
        """Measure every case, with a probe of the ceilings before and after."""
        cold = self.group.targets.cache == "cold"
        wanted = set().union(*(required(work, cold) for work in self.work.values()))
        ceilings = GroupCeilings(self.device, wanted, self.resources)
        self.placement = Placement(self.device, list(self.problems.values()), ceilings)
        cases = [live for case in self.group.cases if (live := self._prepare(case))]
        self._sample(cases)
        if self.group.targets.energy:
            self._energy([live for live in cases if live.record.status.measured])
        self.contents.close()
        for session in (*self.sessions.values(), self.drawn, *self._redrawn):  # the probe needs room for its arrays
            session.close()
        replaced = ceilings.end([live.record for live in cases])
        for live in cases:
            self._conclude(live, replaced)

    def _conclude(self, live: Live, replaced: bool) -> None:
        """Judge a case once more where ceilings were replaced; send what that changes, and what was held back."""
        status = live.record.status
        if not self.placement.contend(live.record):
            if status is not Status.IMPOSSIBLE and not (replaced and status is Status.OK):
                return
            self._judge(live)
        self.resources.send(CaseFinished(live.record))  # which replaces what was sent before

    def _judge(self, live: Live) -> None:
        """Give a case that was measured its status, metric and bounds, under the ceilings as they are known now."""
        record = live.record
        record.status = Status.CONTENDED if live.contended else Status.OK
        record.failure = Failure(reason=live.contended) if live.contended else None
        self.placement.place(record)

    def _sample(self, cases: Iterable[Live]) -> None:
        """Warm all cases up, then sample them in turn; each is finished when its stopping rule is met."""
        by_key = {live.case.key: live for live in cases}
        need_wall = any(live.cls.host or live.cls.host_driven for live in by_key.values())
        sampler = Sampler(self.device, self.group.targets, need_wall)
        subjects = []
        for live in by_key.values():
            subject = live.subject()
            sampler.warm_up(subject, lambda subject: self._at(subject.key, "warm-up"))
            live.watch = Watch(self.device)
            subjects.append(subject)
        sampled = sampler.run(subjects, lambda subject: self._at(subject.key, "sampling"), self.group.first_round)
        try:
            for subject in sampled:
                self._finish(by_key[subject.key], subject)
        finally:
            sampler.close()

    def _at(self, key: str, step: str) -> None:
        self.resources.send(StepStarted(key, step))

    def _prepare(self, case: Case) -> Live | None:
        """Build and verify; send a record and return nothing if that ends the case."""
        cls = self.workload.variant(self.group.problem, case.identity.variant)
        record = case.record(
            self.resources.run, self.group.seed, Status.CRASHED, title=cls.title, unit=cls.unit, source=cls.source,
            work=self.work[self._result(case)], verification=case.earlier.verification if case.earlier else None,
        )  # fmt: skip
        live = Live(case, cls, record)
        modules: dict[str, Module] = {}
        try:
            for name, session in self.sessions.items():
                self._at(case.key, "compile")
                built = build(cls, session, case.identity.tunables, case.macros, modules)
                live.add(name, built, self.inputs[name], self.integrity.restore)
                live.audits[name].untouched()
            live.describe()
            for audit in live.audits.values():
                self._at(case.key, "verify")
                audit.execute()
            self._verify_drawn(live, modules)
            self._exchange(live, modules)
            self._at(case.key, "verify layouts")
            anew = partial(build, cls, tunables=case.identity.tunables, macros=case.macros, modules=modules)
            self.layouts.check(live.first, anew)
        except Exception as error:
            self._fail(live, error)
            return None
        return None if self._wrong(live) else live

    def _verify_drawn(self, live: Live, modules: dict[str, Module]) -> None:
        """Verify the variant built anew on inputs of its own; what fails there names their seed."""
        step = f"verify on inputs drawn from seed {self.drawn.problem.seed}"
        self._at(live.case.key, step)
        try:
            built = build(live.cls, self.drawn, live.case.identity.tunables, live.case.macros, modules)
            try:
                audit = Audit(built, self.drawn_inputs, live.verified, self.integrity.restore)
                audit.untouched()
                audit.execute()
            finally:
                built.release()
        except Exception as error:
            error.add_note(step)
            raise

    def _exchange(self, live: Live, modules: dict[str, Module]) -> None:
        """Verify the variant as it is built on the drawn inputs; it keeps getting them, where times are comparable."""
        timed = len(live.audits) == 1 and not self.drawn.problem.data_decide_time(self.drawn.problem.parameters)
        for name, audit in live.audits.items():
            audit.exchange(timed)
            if audit.exchanges:
                self._at(live.case.key, f"verify again on inputs drawn from seed {self.drawn.problem.seed}")
                if (others := self.others[name]) in self._redrawn:  # nothing else makes the variant's inputs there
                    build(live.cls, others, live.case.identity.tunables, live.case.macros, modules).release()
                audit.execute()
            audit.built.poison()  # no rival may take what it has left

    def _finish(self, live: Live, subject: Subject) -> None:
        """Verify again, and complete the record."""
        record = live.record
        try:
            timing = live.timing(subject, self.group.targets)
            live.contended = live.contention()
            agreed = self._compare_clocks(live, subject)
            live.contended = live.contended or agreed.disturbed
            overheads = live.overheads(agreed.wall)
            for audit in live.audits.values():
                self._at(live.case.key, "verify again")
                audit.complete(self.group.targets.time_budget / 4)
            live.account()
        except Exception as error:
            self._fail(live, error)
            return
        if self._wrong(live):
            return
        record.time = now()
        record.timing = timing
        record.clocks = self.device.clocks()
        record.overheads = overheads
        self._judge(live)
        self._finished(live)

    def _finished(self, live: Live) -> None:
        """Send the record, and keep the case where its energy is to be measured.

        That a time is impossible is not said yet: the ceilings are swept again first, for which the buffers of the
        group leave no room.
        """
        earlier, record = live.case.earlier, live.record
        if self.group.targets.energy and record.status.measured:
            known = earlier.energy if earlier else None
            record.energy = known if known and known.joules else UNMEASURED
        if record.status is Status.IMPOSSIBLE:
            live.release()
        elif record.energy is UNMEASURED:
            self.resources.send(CaseFinished(record))
        else:
            self._end(live)

    def _energy(self, cases: Iterable[Live]) -> None:
        """Measure the energy of the cases with a result, beside whose samples that would have warmed the device.

        That of a worker before stays. A case that fails now has no result.
        """
        left = [live for live in cases if live.record.energy is UNMEASURED]
        if not left:
            return
        self.resources.send(StepStarted(None, "measuring power at rest"))
        energy = GroupEnergy(self.device)
        for live in left:
            try:
                live.record.energy = energy.of(live, partial(self._at, live.case.key, "energy"))
            except Exception as error:
                self._fail(live, error)
                continue
            if not self._wrong(live):
                self._end(live)

    def _compare_clocks(self, live: Live, subject: Subject) -> Agreed:
        """Compare the clocks of a case that is ranked by its span; the host's time is that on the first instance."""
        if subject.rank == "wall":
            return Agreed(None)
        self._at(live.case.key, "comparing clocks")
        library = issubclass(live.cls, Peer)
        agreed = [self.agreement.check(execution, library) for execution in subject.instances.values()]
        return Agreed(agreed[0].wall, next((each.disturbed for each in agreed if each.disturbed), ""))

    def _end(self, live: Live) -> None:
        """Send the record and give the case's buffers back."""
        self.resources.send(CaseFinished(live.record))
        live.release()

    def _wrong(self, live: Live) -> bool:
        """Whether an output does not pass: that ends the case."""
        verification = live.record.verification
        if verification is None or verification.passed:
            return False
        live.withdraw()
        live.record.status = Status.WRONG
        live.record.failure = Failure(reason=verification.complaint)
        self._end(live)
        return True

    def _fail(self, live: Live, error: Exception) -> None:
        """End a case with an error. Raises `DeviceLostError` where the device does not survive it."""
        live.withdraw()
        record = live.record
        record.status = status_of(error)
        crashed = record.status is Status.CRASHED
        reason = ", ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])
        record.failure = Failure(reason=reason, log=traceback.format_exc() if crashed else getattr(error, "log", ""))
        self.resources.send(CaseFinished(record))
        if crashed:
            try:
                self.device.finish()
            except Exception as sticky:
                raise DeviceLostError from sticky
        live.release()
