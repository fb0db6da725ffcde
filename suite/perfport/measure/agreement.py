"""Clocks that have to agree: the span of an execution, the sum of its kernels, the host's time for the same work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from statistics import median
from typing import TypeVar

import numpy as np

from ..backend import OpenDevice
from ..model.errors import RefusedError
from . import kernels
from .sampling import Execution

#: Kernels of one queue do not overlap: how far their sum may exceed the span, by the resolution of clocks.
BUSY_LIMIT = 1.05
#: The device's time from the gate to the first traced activity and behind the last one, as a share of the span.
OUTSIDE_LIMIT = 0.05
#: The host's time, not gated, over the span beside it; of a library over the span and the time to enqueue.
WALL_LIMIT = 2.0
#: Beyond these shares: so many times the host's time for an empty kernel; of the host's own time, for each launch.
LAUNCHES = 10
#: How often an execution that does not agree is timed by both clocks again, and for how many seconds at least; then as
#: many empty kernels are.
PAIRS, PATIENCE = 8, 2.0
#: How long the device rests ahead of either, in times of the execution: what is hidden from the queue would delay them.
REST = 20
#: So many short executions are timed in a row, with one wait for the device, which takes the host longer than they do.
ROW = 32
#: How many times the host's time for the least kernel in a row a short execution may take for each launch, beyond
#: `WALL_LIMIT` of the span. Beyond both a row may take `LAUNCHES` times the host's time for an empty kernel alone, and
#: where there are no rows an execution this many times that.
SHORT_LAUNCHES = 3
#: The least kernel: its work-items in a group, and as many groups as occupy each compute unit twice; its arguments.
LEAST_GROUP, LEAST_ARGUMENTS = 64, 11


@dataclass(frozen=True)
class Row:
    """The host's time for `ROW` executions without a gate, each prepared, and for as many preparations; in seconds."""

    executed: float
    prepared: float

    @property
    def each(self) -> float:
        """The host's time for one execution."""
        return (self.executed - self.prepared) / ROW


@dataclass(frozen=True)
class Pair:
    """One execution behind the gate and one without, in seconds: ``enqueue`` and ``wall`` are the host's."""

    span: float
    outside: float
    enqueue: float
    wall: float
    launches: float = 1

    @property
    def each(self) -> float:
        """The host's time for one execution."""
        return self.wall


@dataclass(frozen=True)
class Agreed:
    """What clocks that agree tell.

    Attributes
    ----------
    wall : float, optional
        The host's time for one execution that is not gated, in seconds; none where clocks were not compared.
    disturbed : str
        Why they would not agree if empty kernels were as quick as in a quiet moment; empty where they do.
    """

    wall: float | None
    disturbed: str = ""


Taken = TypeVar("Taken", bound=Pair | Row)


def _quiet(taken: Sequence[Taken]) -> Taken:
    """Return the least of each time: what is hidden is in all of them."""
    return type(taken[0])(*np.min([astuple(each) for each in taken], axis=0))


def _again(take: Callable[[], Taken], disagrees: Callable[[Taken], bool]) -> Taken:
    """Take times again while these disagree, `PAIRS` times at least, and for `PATIENCE`; return the least of each."""
    quiet, tried, until = take(), 1, time.perf_counter() + PATIENCE
    while disagrees(quiet) and (tried < PAIRS or time.perf_counter() < until):
        quiet, tried = _quiet([quiet, take()]), tried + 1
    return quiet


class Agreement:
    """Compares the clocks of executions on one device.

    On a disturbed machine executions are late by any time, those of a quiet moment are not: what does not agree is
    tried again before it is refused, and all executions of an honest variant would have to be late, by more than empty
    kernels right after. What is late by less than these has no trustworthy time: as much could hide there.

    Parameters
    ----------
    device : OpenDevice
    """

    def __init__(self, device: OpenDevice) -> None:
        self._device = device
        empty, least = (kernels.load(device, f"{name}.cl").kernel(name) for name in ("empty", "least"))
        groups = 2 * device.info.compute_units
        words = device.upload(np.zeros(groups * LEAST_GROUP, np.uint32))
        self._empty = Execution(lambda: device.launch(empty, 1, 1))
        self._least = Execution(lambda: device.launch(least, groups, LEAST_GROUP, *[words] * LEAST_ARGUMENTS))
        self._launch = _quiet([self._pair(self._empty) for _ in range(PAIRS)]).wall
        self._launch_in_row = _quiet([self._row(self._least) for _ in range(PAIRS)]).each

    def check(self, execution: Execution, library: bool) -> Agreed:
        """Compare the clocks of executions that are ranked by their span.

        Parameters
        ----------
        execution : Execution
        library : bool
            Launches are not the device's: what they take of the host cannot be told from other work.

        Raises
        ------
        RefusedError
            Where the work is not where the clock is.
        """
        pairs = zip(execution.busy, execution.around, strict=True)
        busy, span = min(pairs, key=lambda pair: pair[0] - BUSY_LIMIT * pair[1], default=(0.0, 0.0))
        if busy > BUSY_LIMIT * span:
            raise RefusedError(f"refused: kernels take {busy:.3g} s, more than the span of {span:.3g} s around them")
        quiet, launch, disturbed = self._pair(execution), self._launch, ""
        if _hides(quiet, library, launch) or _untraced(median(execution.span), median(execution.outside), launch):
            time.sleep(REST * quiet.wall)
            quiet = _again(lambda: self._pair(execution), lambda pair: _hides(pair, library, launch))
        if _hides(quiet, library, launch):
            found = (
                f"{quiet.outside:.3g} s of the device's time and {quiet.wall:.3g} s of the host's do not agree with a "
                f"span of {quiet.span:.3g} s and {quiet.launches:g} launches"
            )
            launch = max(launch, self._now(self._pair, self._empty, quiet.wall))
            disturbed = _judged(found, _hides(quiet, library, launch), f"an empty kernel takes {launch:.3g} s")
        if not library and quiet.span < LAUNCHES * max(1.0, quiet.launches) * launch:
            disturbed = self._check_short(execution, quiet) or disturbed
        return Agreed(quiet.wall, disturbed)

    def _check_short(self, execution: Execution, pair: Pair) -> str:
        """Refuse a short execution that takes the host more than its span, its launches and some waiting.

        On GPUs the waiting is shared by a row of executions. On CPUs a thread that enqueues a row takes a core from the
        device's own, and executions of 0.13 ms were seen to take 0.6: each is waited for there. Returns ``disturbed``
        of `Agreed`.
        """
        pair = _quiet([pair, self._pair(execution), self._pair(execution)])  # the first is often late
        alone = self._device.info.kind == "cpu"

        def take() -> Pair | Row:
            return self._pair(execution) if alone else self._row(execution)

        def span_beside(taken: Pair | Row) -> float:
            return taken.span if isinstance(taken, Pair) else pair.span

        def disagrees(taken: Pair | Row, launch: float, in_row: float) -> bool:
            launches = SHORT_LAUNCHES * max(1.0, pair.launches) * in_row
            waiting = SHORT_LAUNCHES * launch if alone else LAUNCHES * launch / ROW
            return taken.each > WALL_LIMIT * span_beside(taken) + launches + waiting

        known = self._launch, self._launch_in_row
        taken = pair if alone else take()
        if disagrees(taken, *known):
            taken = _again(take, lambda taken: disagrees(taken, *known))
        if not disagrees(taken, *known):
            return ""
        how = "a short execution" if alone else f"one of {ROW} executions in a row"
        found = (
            f"{how} takes {taken.each:.3g} s of the host's time, which does not agree with a span of "
            f"{span_beside(taken):.3g} s and {pair.launches:g} launches"
        )
        now = self._now(self._pair, self._empty, taken.each), self._now(self._row, self._least, taken.each)
        widened = max(known[0], now[0]), max(known[1], now[1])
        late = f"an empty kernel takes {widened[0]:.3g} s and one in a row {widened[1]:.3g}"
        return _judged(found, disagrees(taken, *widened), late)

    def _now(self, take: Callable[[Execution], Pair | Row], execution: Execution, after: float) -> float:
        """Return the host's time for one execution as it is now: the upper quartile of eight.

        ``after``: that of the suspect execution before, in seconds.
        """
        time.sleep(REST * after)
        return float(np.quantile([take(execution).each for _ in range(PAIRS)], 0.75))

    def _row(self, execution: Execution) -> Row:
        def took(execute: Callable[[], None]) -> float:
            self._device.finish()
            started = time.perf_counter()
            for _ in range(ROW):
                execution.prepare()
                execute()
            self._device.finish()
            return time.perf_counter() - started

        prepared = took(lambda: None)
        row = Row(took(execution.execute), prepared)
        execution.inspect()
        return row

    def _pair(self, execution: Execution) -> Pair:
        took = []

        def enqueue() -> None:
            started = time.perf_counter()
            execution.execute()
            took.append(time.perf_counter() - started)

        execution.prepare()
        times = self._device.timed(enqueue)
        execution.inspect()
        execution.prepare()
        self._device.finish()
        started = time.perf_counter()
        execution.execute()
        self._device.finish()
        wall = time.perf_counter() - started
        execution.inspect()
        return Pair(times.span, times.outside, took[0], wall, times.launches)


def _judged(found: str, disagrees: bool, late: str) -> str:
    """Refuse what disagrees with empty kernels as they are now, too; of what does not return why it has no good time.

    Raises
    ------
    RefusedError
    """
    if disagrees:
        raise RefusedError(f"refused: {found}: work where no clock is")
    return f"{found}, but would where {late}, as now: the machine is disturbed"


def _untraced(span: float, outside: float, launch: float) -> bool:
    return outside > OUTSIDE_LIMIT * span + LAUNCHES * launch


def _hides(pair: Pair, library: bool, launch: float) -> bool:
    """Whether a pair has work where no clock is; ``launch``: the host's time for an empty kernel, in seconds."""
    host = pair.enqueue if library else 0.0
    limit = WALL_LIMIT * (pair.span + host) + LAUNCHES * max(1.0, pair.launches) * launch
    return _untraced(pair.span, pair.outside, launch) or pair.wall > limit
