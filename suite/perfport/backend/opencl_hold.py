"""Keeps a GPU busy while its runtime submits what a timed execution has queued.

Commands behind a user event are queued, but need not be with the device: NVIDIA's runtime submits them once the event
is set, one after the other, 4 µs each, and a launch that is over sooner waits for the next. Behind a kernel that takes
longer than that, all of them are there before the first begins. How long it takes is known only when the last is
queued: the kernel reads it from a buffer, which is written before the event is set.
"""

from __future__ import annotations

import math

import numpy as np
import pyopencl as cl

from .opencl_launch import program_of

#: A chain of operations that no compiler shortens.
_SOURCE = """
__kernel void hold(__global const uint *turns, __global uint *out) {
    uint value = 1;
    for (uint left = *turns; left; --left) {
        value ^= value << 13;
        value ^= value >> 17;
        value ^= value << 5;
    }
    *out = value;
}
__kernel void empty(__global uint *out) {}
"""
#: Turns and launches whose times tell how long one takes; of each the least of so many trials.
TURNS, LAUNCHES, TRIALS = 1 << 14, 32, 5
#: Turns from which on the time of a hold, in which the beginning of a kernel has a part, is worth learning from.
TELLING = 64
#: Times what submitting takes when nothing disturbs it, and commands besides launches: the hold's own and markers.
MARGIN, OTHERS = 2, 4


class Hold:
    """The kernel, with what a turn of it and submitting a launch take on a device.

    Attributes
    ----------
    per_turn, per_launch : float
        Seconds, the least seen: a clock that is low at first makes a turn seem long. What a launch takes to be
        submitted is at most the time from one empty launch to the next, behind an event.
    """

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._beside = cl.CommandQueue(context)
        program = program_of(context, _SOURCE)
        self._kernel, self._empty = cl.Kernel(program, "hold"), cl.Kernel(program, "empty")
        self._buffer = cl.Buffer(context, cl.mem_flags.READ_ONLY, 4)
        self._out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
        self._kernel.set_args(self._buffer, self._out)
        self._empty.set_args(self._out)
        self.per_turn = math.inf
        self._write(TURNS)
        for _ in range(TRIALS):
            self.enqueue().wait()
            self.over()
        self.per_launch = min(self._time_of_launches() for _ in range(TRIALS)) / LAUNCHES

    def enqueue(self) -> cl.Event:
        """Hold what is queued from now on, for as long as `last` will say."""
        self._event = cl.enqueue_nd_range_kernel(self._queue, self._kernel, (1,), (1,))
        return self._event

    def last(self, launches: int) -> None:
        """Say how many launches are queued behind it; before the event that all of it waits for is set."""
        self._write(round(MARGIN * (launches + OTHERS) * self.per_launch / self.per_turn))

    def over(self) -> None:
        """Learn from how long it took, once everything is done."""
        if self._turns >= TELLING:
            profile = self._event.profile
            self.per_turn = min(self.per_turn, (profile.end - profile.start) * 1e-9 / self._turns)

    def _write(self, turns: int) -> None:
        self._turns = min(turns, 0xFFFFFFFF)
        cl.enqueue_copy(self._beside, self._buffer, np.uint32(self._turns), is_blocking=True)

    def _time_of_launches(self) -> float:
        opened = cl.UserEvent(self._queue.context)
        cl.enqueue_barrier(self._queue, wait_for=[opened])
        events = [cl.enqueue_nd_range_kernel(self._queue, self._empty, (1,), (1,)) for _ in range(LAUNCHES + 1)]
        self._queue.flush()
        opened.set_status(cl.command_execution_status.COMPLETE)
        events[-1].wait()
        return (events[-1].profile.start - events[0].profile.start) * 1e-9
