"""Energy of one execution: a counter read around loops of executions, and what a counter may not do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from ..machine.energy_counter import CounterError, EnergyCounter
from ..model.record import Energy, Interval
from .intervals import student_interval

LOOPS = 5
#: A loop lasts so many seconds and so many updates of the counter, at least; so does the rest before.
LEAST_S = 1.0
UPDATES = 20
#: Ahead of what is counted: clocks and power settle.
SETTLE_S = 0.5
#: The counter is read after executions of about so many seconds: within a loop, and where its end is near.
BATCH_S, EDGE_S = 0.05, 0.005
#: Executions that are enqueued at a time, at most.
MOST_ENQUEUED = 10_000
#: How long the counter may stand still: so many seconds at rest, so many times what lies between updates in a loop.
REST_LIMIT_S, STILL = 10.0, 10
POLL_S = 0.001
#: One update with more than the first share of a loop's energy, in less than the second of its time, is no execution's.
JUMP_ENERGY, JUMP_TIME = 0.5, 0.25


class Load:
    """Executions back to back, in batches that are waited for.

    Parameters
    ----------
    execute, finish : callable
        Enqueues one execution; waits for all that is enqueued.
    announce : callable
        Called ahead of each batch, so that a hang can be attributed.
    """

    def __init__(self, execute: Callable[[], None], finish: Callable[[], None], announce: Callable[[], None]) -> None:
        self._execute, self._finish, self._announce = execute, finish, announce
        self._each = math.inf
        self.executions = 0

    def run(self, seconds: float, clock: Callable[[], float]) -> None:
        """Execute for about so many seconds, as the batch before has told; once at least."""
        self._announce()
        count = min(max(1, int(seconds / self._each)), MOST_ENQUEUED) if self._each else MOST_ENQUEUED
        started = clock()
        for _ in range(count):
            self._execute()
        self._finish()
        self._each = (clock() - started) / count
        self.executions += count


@dataclass(frozen=True)
class Edge:
    """An update of the counter under load: when it was seen, ``within`` so many seconds of when it happened."""

    seconds: float
    joules: float
    executions: int
    within: float


class Meter:
    """Measures executions with one counter. It is made while the device rests, and takes the power of that first.

    Parameters
    ----------
    counter : EnergyCounter
    clock, sleep : callable
        Seconds.

    Attributes
    ----------
    update_s : float
        Median time between updates of the counter, at rest.
    idle_watts : float
        Power at rest.

    Raises
    ------
    CounterError
        Where the counter does not count.
    """

    def __init__(
        self,
        counter: EnergyCounter,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._counter, self._clock, self._sleep = counter, clock, sleep
        sleep(SETTLE_S)
        self.update_s, self.idle_watts = self._rest()

    def _rest(self) -> tuple[float, float]:
        """Return the time between updates in seconds, and the power in W, of a device that nothing is enqueued on."""
        began, last = self._clock(), self._counter.joules()
        seen: list[tuple[float, float]] = []
        while len(seen) <= UPDATES or seen[-1][0] - seen[0][0] < LEAST_S:
            self._sleep(POLL_S)
            now, at = self._counter.joules(), self._clock()
            if now != last:
                _rising(last, now)
                seen.append((at, now))
            elif at - began > REST_LIMIT_S:
                raise CounterError(f"the counter was updated {len(seen)} times in {REST_LIMIT_S:g} s at rest")
            last = now
        (first_at, first), (last_at, final) = seen[0], seen[-1]
        return median(b[0] - a[0] for a, b in pairwise(seen)), (final - first) / (last_at - first_at)

    def energy(self, loads: Sequence[Load]) -> Energy:
        """Return the energy of one execution, the geometric mean over loads that stand for one case.

        Raises
        ------
        CounterError
            Where the counter goes back, stands still, jumps, or tells less than half the power of rest.
        """
        edges = [self._edges(load) for load in loads]
        loops = [pair for each in edges for pair in pairwise(each)]
        logs = np.log([
            [(b.joules - a.joules) / (b.executions - a.executions) for a, b in pairwise(each)] for each in edges
        ])  # fmt: skip
        mean = student_interval(logs.mean(axis=0))
        # Both updates were seen late, by at most `within`: so far off is the time between them, and no further.
        reading = 1 + max(max(a.within, b.within) / (b.seconds - a.seconds) for a, b in loops)
        return Energy(
            joules=Interval(
                value=math.exp(mean.value), low=math.exp(mean.low) / reading, high=math.exp(mean.high) * reading
            ),
            domain=self._counter.domain, seconds=sum(b.seconds - a.seconds for a, b in loops),
            executions=sum(b.executions - a.executions for a, b in loops), loops=LOOPS,
            update_s=self.update_s, idle_watts=self.idle_watts,
        )  # fmt: skip

    def _edges(self, load: Load) -> list[Edge]:
        """Return the updates that the loops lie between: each begins where the one before ends."""
        until = self._clock() + SETTLE_S
        while self._clock() < until:
            load.run(BATCH_S, self._clock)
        start = Edge(self._clock(), self._counter.joules(), load.executions, 0.0)
        edges = [self._loop(load, start, 0.0)]
        for _ in range(LOOPS):
            edges.append(self._loop(load, edges[-1], max(LEAST_S, UPDATES * self.update_s)))
            self._plausible(edges[-2], edges[-1])
        return edges

    def _loop(self, load: Load, start: Edge, least: float) -> Edge:
        """Execute for ``least`` seconds and until the counter is updated then; return that update."""
        read, last, largest = start.seconds, start, (0.0, 0.0)
        while True:
            left = start.seconds + least - self._clock()
            load.run(BATCH_S if left > BATCH_S else EDGE_S, self._clock)
            at, joules = self._clock(), self._counter.joules()
            if joules != last.joules:
                _rising(last.joules, joules)
                largest = max(largest, (joules - last.joules, at - last.seconds))
                last = Edge(at, joules, load.executions, min(at - read, self.update_s))
                if at - start.seconds >= least:
                    break
            elif at - last.seconds > max(STILL * self.update_s, LEAST_S):
                raise CounterError(f"the counter stood still for {at - last.seconds:.3g} s under load")
            read = at
        energy, seconds = last.joules - start.joules, last.seconds - start.seconds
        if least and largest[0] > JUMP_ENERGY * energy and largest[1] < JUMP_TIME * seconds:
            raise CounterError(f"the counter jumped: {largest[0]:.3g} of the {energy:.3g} J of a loop in one update")
        return last

    def _plausible(self, start: Edge, end: Edge) -> None:
        watts = (end.joules - start.joules) / (end.seconds - start.seconds)
        if watts < self.idle_watts / 2:
            raise CounterError(f"the counter tells {watts:.3g} W of a loop, and {self.idle_watts:.3g} W of rest")


def _rising(last: float, now: float) -> None:
    if now < last:
        raise CounterError(f"the counter went back by {last - now:.3g} J")
