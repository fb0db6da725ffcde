"""The process that builds, verifies and times configurations on one device, for as long as none takes it along.

Between configurations of one variant it keeps inputs, references and what they are measured beside. A configuration is
verified once, on the inputs that are timed; what wins is measured again by the workers of `perfport run`, which verify
more.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from .. import backend
from ..backend import Artifact, Module, OpenDevice
from ..machine import platforms
from ..machine.children import answer, obey_parent
from ..measure.ceilings import load_cached, store, sweep
from ..measure.contention import Watch
from ..measure.contents import Contents
from ..measure.intervals import Ratio
from ..measure.roofline import measured_ceilings, problem_bound, variant_bound
from ..measure.sampling import Execution, Sampler, Targets
from ..model.device import DeviceInfo
from ..model.record import Interval, Status
from ..run.messages import StepStarted
from ..run.worker.serving import BATCH
from ..workload import Built, Session, Variant, Workload, build, digest_of, discover
from ..workload.execution import status_of
from .contest import SAMPLING, Contender, Incumbent, series
from .space import Config, name_of

#: A configuration is not timed where its own bound is above the best time by this factor: times have a spread.
ROOM = 1.05


@dataclass(frozen=True)
class Contest:
    """A configuration of a variant at one size, to be measured beside another (``rival``), or beside itself.

    ``best`` is the time of the best so far in seconds, ``lead`` that over the rival's. ``artifacts`` are kernels that
    were compiled ahead, as of `perfport.workload.Session`.
    """

    workload: str
    problem: str
    variant: str
    preset: str
    parameters: dict[str, Any]
    seed: int
    cache: Literal["cold", "warm"]
    config: Config
    rival: Config | None
    best: float | None = None
    lead: float = 1.0
    artifacts: dict[str, Artifact] = field(default_factory=dict)


@dataclass
class Outcome:
    """How a configuration did; the fields are those of `perfport.tune.log.Trial`.

    ``took`` leaves out the opening of the device, and a sweep of its ceilings; ``None`` where the process died of it.
    """

    status: Status
    reason: str = ""
    log: str = ""
    seconds: float | None = None
    ratio: Ratio | None = None
    times: list[float] = field(default_factory=list)
    share: float | None = None
    hopeless: bool = False
    disturbed: str = ""
    took: float | None = None


def main(connection: Connection, info: DeviceInfo, workload_paths: list[str], output: Path) -> None:
    """Serve contests until the parent closes the connection. What compilers and kernels print goes to ``output``."""
    obey_parent(*BATCH)
    answer(connection, output, lambda: Bench(info, workload_paths, connection.send).serve)


@dataclass
class _Ground:
    """What contests of one problem at one size share; ``rivals``, of which there is one, are those of one variant.

    ``passed``: what was computed in which precision class, and the outputs by name and checksum. ``used``: inputs and
    reference are made, which the first contest does.
    """

    session: Session
    modules: dict[str, Module] = field(default_factory=dict)
    rivals: dict[str, Built] = field(default_factory=dict)
    passed: set[tuple[str, str, tuple[tuple[str, int], ...], bytes]] = field(default_factory=set)
    used: bool = False

    def forget(self) -> None:
        while self.rivals:
            self.rivals.popitem()[1].release()

    def close(self) -> None:
        self.forget()
        self.session.close()


class Bench:
    """Measures configurations on one device."""

    def __init__(self, info: DeviceInfo, workload_paths: list[str], send: Callable[[Any], None]) -> None:
        self._info, self._paths, self._send = info, workload_paths, send
        self._device: OpenDevice | None = None
        self._workloads: dict[str, Workload] = {}
        self._grounds: dict[str, _Ground] = {}
        self._problem = self._variant = ""
        self._sampler: Sampler | None = None
        self._ceilings: dict[str, Interval] = {}

    def serve(self, contest: Contest) -> Outcome:
        """Measure a configuration. Whatever goes wrong with it is in the outcome."""
        started = time.monotonic()
        try:
            self._step(None, "opening the device")
            _ = self.device
            started = time.monotonic()
            outcome = self._contend(contest)
        except Exception as error:
            log = getattr(error, "log", "") or traceback.format_exc()
            outcome = Outcome(status_of(error), str(error) or type(error).__name__, log)
        outcome.took = time.monotonic() - started
        return outcome

    def _contend(self, contest: Contest) -> Outcome:
        cls = self._workload(contest.workload).variant(contest.problem, contest.variant)
        ground = self._ground(contest)
        ground.session.artifacts.update(contest.artifacts)
        rival = self._rival(ground, cls, contest.rival) if contest.rival else None
        key = name_of(contest.config) if ground.used else None
        self._step(key, "building")
        built = build(cls, ground.session, contest.config, {}, ground.modules)
        try:
            self._step(key, "verifying")
            complaint = self._complaint(ground, built)
            ground.used = True
            if complaint:
                return Outcome(Status.WRONG, complaint)
            return self._measure(contest, built, rival or self._rival(ground, cls, contest.config))
        finally:
            built.release()
            ground.modules.clear()

    def _step(self, key: str | None, step: str) -> None:
        self._send(StepStarted(key, step))

    @property
    def device(self) -> OpenDevice:
        """The device, opened when it is first asked for."""
        if self._device is None:
            if self._info.runtime:
                platforms.use([self._info.runtime])
            self._device = backend.get(self._info.backend).open(self._info)
            self._contents = Contents(self._device)
            known = load_cached(self._info)
            if known is None:  # the final measures under them, too
                store(self._info, known := sweep(self._device, progress=lambda step: self._step(None, step)))
            self._ceilings = measured_ceilings(known)
        return self._device

    def _ground(self, contest: Contest) -> _Ground:
        """Return what a contest is measured with; inputs of another problem are given back."""
        problem, variant = f"{contest.workload}/{contest.problem}", f"{contest.problem}/{contest.variant}"
        if problem != self._problem:
            self._close()
        if variant != self._variant:
            for ground in self._grounds.values():
                ground.forget()
        self._problem, self._variant = problem, variant
        if contest.preset not in self._grounds:
            device, workload = self.device, self._workload(contest.workload)
            self._step(None, "making inputs")
            cls = workload.problem(contest.problem)
            made = cls(cls.Parameters.model_validate(contest.parameters), contest.seed)
            self._grounds[contest.preset] = _Ground(Session(device, made, workload.folder))
        return self._grounds[contest.preset]

    def _workload(self, name: str) -> Workload:
        if name not in self._workloads:
            self._workloads |= discover(self._paths, name)
        return self._workloads[name]

    def _close(self) -> None:
        for ground in self._grounds.values():
            ground.close()
        self._grounds.clear()
        self._close_sampler()

    def _rival(self, ground: _Ground, cls: type[Variant], config: Config) -> Built:
        """Return what configurations are measured beside, built when it becomes that."""
        name = name_of(config)
        if name not in ground.rivals:
            while ground.rivals:
                ground.rivals.popitem()[1].release()
            self._step(None, "building what others are measured beside")
            ground.rivals[name] = build(cls, ground.session, config, {})
            self.device.finish()
        return ground.rivals[name]

    def _measure(self, contest: Contest, built: Built, rival: Built) -> Outcome:
        self._step(name_of(contest.config), "sampling")
        return self._hopeless(contest, built) or self._sample(contest, built, rival)

    def _complaint(self, ground: _Ground, built: Built) -> str:
        """Execute once and return what is wrong with the outputs; bit for bit those that passed before are right."""
        built.poison(scratch=True)
        built.launch()
        self.device.finish()
        sums = zip(built.setup.outputs, self._contents.checksums(built.buffers), strict=True)
        handed = built.handed()
        seen = (built.variant.computes, built.variant.precision, tuple(sums), digest_of(handed))
        if seen in ground.passed:
            return ""
        verified = built.verify({**built.left(), **handed})
        if not verified.passed:
            return verified.complaint or "a result is outside its tolerance"
        ground.passed.add(seen)
        return ""

    def _sample(self, contest: Contest, built: Built, rival: Built) -> Outcome:
        """Time a configuration beside its rival."""
        theirs = self._subject_of(Incumbent, "rival", rival)
        own = self._subject_of(Contender, "new", built)
        own.rival = theirs
        # Beside itself nothing is slow: what the place in a round does is asked for, and shall not be cut short.
        own.lead = contest.lead if contest.rival else math.inf
        targets = SAMPLING.model_copy(update={"cache": contest.cache})
        sampler = self._sampling(targets, "wall" in (own.rank, theirs.rank))
        watch = Watch(self.device)
        for each in (theirs, own):
            sampler.warm_up(each, lambda subject: None)
        next(sampler.run([theirs, own], lambda subject: None))
        summary = series(own).summary()
        cannot = len(own.rounds) < targets.min_samples
        return Outcome(
            Status.OK, "slower from its first samples on" if cannot else "", seconds=summary.median, ratio=own.ratio(),
            times=own.samples(own.rank), share=self._share(contest, built, summary.median), disturbed=watch.reason(),
        )  # fmt: skip

    def _sampling(self, targets: Targets, need_wall: bool) -> Sampler:
        """Return what takes samples. It stays: filling its buffer, four times a CPU's caches, takes time."""
        if self._sampler is None or self._sampler.targets != targets:
            self._close_sampler()
            self._sampler = Sampler(self.device, targets, need_wall)
        self._sampler.need_wall = need_wall
        return self._sampler

    def _close_sampler(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler:
            sampler.close()

    @staticmethod
    def _subject_of(form: type[Any], key: str, built: Built) -> Any:
        execution = Execution(built.launch, built.poison)
        return form(key, {"a": execution}, built.variant.host, built.variant.host_driven)

    def _hopeless(self, contest: Contest, built: Built) -> Outcome | None:
        """Return the outcome of a configuration that is not worth timing; it has been executed once.

        Its own bound, at the best ends of the ceilings, is above the time of the best so far.
        """
        traffic, best = built.variant.traffic(), (contest.best or 0.0) * ROOM
        if traffic is None or not best or not self._ceilings:
            return None
        time_ = Interval(value=best, low=best, high=best)
        merged, cold = self._info.kind == "cpu", contest.cache == "cold"
        bound = variant_bound(traffic, self._ceilings, time_, built.variant.unit, cold, merged=merged)
        if bound is None or bound.low <= best:
            return None
        reason = f"its {bound.binding} bound of {bound.low:.3g} s is above the best time of {best:.3g} s"
        return Outcome(Status.OK, reason, seconds=bound.low, hopeless=True)

    def _share(self, contest: Contest, built: Built, seconds: float) -> float | None:
        variant, problem = built.variant, built.setup.problem
        work = problem.work(variant.computes, variant.precision).on(self._info.kind)
        time_ = Interval(value=seconds, low=seconds, high=seconds)
        bound = problem_bound(work, self._ceilings, time_, contest.cache == "cold") if self._ceilings else None
        return bound.share.value if bound else None
