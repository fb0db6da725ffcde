"""Timing: cold or warm cache, warm-up until stable, interleaved sampling until the interval is tight enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from pydantic import Field, model_validator

from ..backend import OpenDevice, Times
from ..model.arithmetic import geometric_mean
from ..model.record import Instance, Summary, Timing
from ..model.schema import Model
from .cache import CacheFlush
from .intervals import summarise

WARM_UP_LIMIT = 5
STABLE_WITHIN = 0.05


class Targets(Model):
    """When sampling of a case ends; the ``measurement`` block of an experiment file.

    Attributes
    ----------
    cache : str
        ``cold``: a buffer larger than the last-level cache is streamed before every sample, outside the timed
        window; ``warm``: nothing in between.
    max_noise : float
        Target for half the 95 % confidence interval of the median, relative to the median; autocorrelated samples
        widen it, and fewer than 6 samples never meet it.
    min_samples, max_samples : int
        Bounds on the number of samples.
    time_budget : float
        Seconds of sampling per case after which it ends with the target unmet.
    energy : bool
        Measure the energy of each case, too, after the samples of all (`perfport.measure.energy`).
    """

    cache: Literal["cold", "warm"] = "cold"
    max_noise: float = Field(0.02, gt=0, le=1)
    min_samples: int = Field(7, ge=3)
    max_samples: int = Field(200, ge=3)
    time_budget: float = Field(3.0, gt=0)
    energy: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> Targets:
        if self.max_samples < self.min_samples:
            raise ValueError(f"max_samples ({self.max_samples}) is below min_samples ({self.min_samples})")
        return self


def _nothing() -> None:
    """Stand in where there is nothing to do."""


@dataclass
class Execution:
    """One way to execute a case, on one instance of its inputs, and what was measured of it so far.

    Attributes
    ----------
    execute : callable
        Enqueues one execution (device variants) or performs it (host peers).
    prepare, inspect : callable
        Called before each timed execution and before the warm-up, outside the timed window, to make outputs unusable,
        and after it.
    around : list of float
        For each entry of ``busy`` the span of the same execution, in seconds: where events between kernels take time,
        longer than those of samples.
    """

    execute: Callable[[], None]
    prepare: Callable[[], None] = _nothing
    inspect: Callable[[], None] = _nothing
    span: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    around: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    launches: int = 0
    kernels: dict[str, float] = field(default_factory=dict)


@dataclass
class Subject:
    """One case being sampled.

    A sample of a case with several instances is the geometric mean over them, executed one after the other in one
    round: a factor in time counts the same on whichever instance it is.

    Attributes
    ----------
    key : str
        The case's key.
    instances : dict of Execution
        By the name of the instance; one or several.
    host : bool
        No device events: only ``wall`` is measured.
    host_driven : bool
        The variant reads back within an execution: it is ranked by ``wall`` and never gated.
    flushed : int, optional
        Bytes that were streamed before each sample; ``None`` from a warm cache.
    """

    key: str
    instances: dict[str, Execution]
    host: bool = False
    host_driven: bool = False
    rounds: list[int] = field(default_factory=list)
    spent: float = 0.0
    flushed: int | None = None

    @property
    def rank(self) -> Literal["span", "wall"]:
        """The clock that rankings use."""
        return "wall" if self.host or self.host_driven else "span"

    def samples(self, clock: str) -> list[float]:
        """The case's samples on a clock, one for each round."""
        return _means([getattr(instance, clock) for instance in self.instances.values()])

    def done(self, targets: Targets) -> bool:
        """Whether the stopping rule is met."""
        if len(self.rounds) < targets.min_samples:
            return False
        if len(self.rounds) >= targets.max_samples or self.spent >= targets.time_budget:
            return True
        return summarise(self.samples(self.rank)).within(targets.max_noise)

    def timing(self, targets: Targets) -> Timing:
        """Return what was measured, as the record holds it."""
        clocks: dict[Literal["span", "busy", "wall"], list[float]]
        clocks = {"span": self.samples("span"), "busy": self.samples("busy"), "wall": self.samples("wall")}
        summary: dict[Literal["span", "busy", "wall"], Summary]
        summary = {name: summarise(samples) for name, samples in clocks.items() if samples}
        every = list(self.instances.values())
        common = [name for name in every[0].kernels if all(name in instance.kernels for instance in every)]
        kernels = {name: geometric_mean([instance.kernels[name] for instance in every]) for name in common}
        apart = {name: getattr(each, self.rank) for name, each in self.instances.items()} if len(every) > 1 else {}
        return Timing(
            rank=self.rank, cache=targets.cache, launches=round(fmean(instance.launches for instance in every)),
            rounds=self.rounds, **clocks, kernels=kernels, summary=summary, flushed_bytes=self.flushed,
            instances={name: Instance(samples=taken, summary=summarise(taken)) for name, taken in apart.items()},
            target=targets.max_noise, target_met=summary[self.rank].within(targets.max_noise),
        )  # fmt: skip


def _means(columns: Sequence[Sequence[float]]) -> list[float]:
    if len(columns) == 1:
        return list(columns[0])
    return [geometric_mean(taken) for taken in zip(*columns, strict=True)]


class Sampler:
    """Takes samples on one device.

    Parameters
    ----------
    device : OpenDevice
    targets : Targets
    need_wall : bool
        Also time each execution by the host's clock, ungated: wanted beside peers without device events.
    """

    def __init__(self, device: OpenDevice, targets: Targets, need_wall: bool) -> None:
        self.device = device
        self.targets = targets
        self.need_wall = need_wall
        self._flush = CacheFlush(device) if targets.cache == "cold" else None

    def close(self) -> None:
        """Give the flush buffer back."""
        if self._flush:
            self._flush.close()

    def warm_up(self, subject: Subject, announce: Callable[[Subject], None]) -> None:
        """Execute each instance until two successive times agree within 5 %, at most 5 times; announced as in `run`."""
        for execution in subject.instances.values():
            announce(subject)
            execution.prepare()
            previous = 0.0
            for _ in range(WARM_UP_LIMIT):
                elapsed = self._wall(subject, execution)
                if abs(elapsed - previous) <= STABLE_WITHIN * elapsed or elapsed > self.targets.time_budget / 4:
                    break
                previous = elapsed
            execution.inspect()

    def run(
        self, subjects: list[Subject], announce: Callable[[Subject], None], first_round: int = 0
    ) -> Iterator[Subject]:
        """Sample all subjects in turn, A B A B, and yield each when its stopping rule is met.

        ``announce`` is called before a subject executes an instance, so that a crash or a hang can be attributed.
        Rounds are numbered from ``first_round``.
        """
        waiting = list(subjects)
        number = first_round
        while waiting:
            for subject in list(waiting):
                self._sample(subject, number, announce)
                if subject.done(self.targets):
                    self._split(subject)
                    waiting.remove(subject)
                    yield subject
            number += 1

    def _sample(self, subject: Subject, number: int, announce: Callable[[Subject], None]) -> None:
        subject.rounds.append(number)
        subject.flushed = self._flush.nbytes if self._flush else None
        for execution in subject.instances.values():
            announce(subject)
            started = time.perf_counter()
            if self._flush is None and len(subject.instances) > 1:
                execution.execute()  # warm means that this instance's data are, not those of the one before
            if subject.rank == "span":
                execution.prepare()
                times = self.device.timed(execution.execute, self._flush)
                execution.span.append(times.span)
                execution.outside.append(times.outside)
                self._note(execution, times)
            if subject.rank == "wall" or self.need_wall:
                execution.prepare()
                execution.wall.append(self._wall(subject, execution))
            subject.spent += time.perf_counter() - started
            execution.inspect()

    def _split(self, subject: Subject) -> None:
        """Where busy time lengthens the span it is read in executions of their own."""
        for execution in subject.instances.values():
            if subject.rank == "span" and not execution.busy:
                for _ in range(3):
                    self._note(execution, self.device.timed(execution.execute, self._flush, split=True))

    @staticmethod
    def _note(execution: Execution, times: Times) -> None:
        execution.launches = times.launches
        if times.busy is not None:
            execution.busy.append(times.busy)
            execution.around.append(times.span)
            execution.kernels = times.kernels

    def _wall(self, subject: Subject, execution: Execution) -> float:
        if self._flush:
            self._flush()
        self.device.finish()
        started = time.perf_counter()
        execution.execute()
        if not subject.host:
            self.device.finish()
        return time.perf_counter() - started
