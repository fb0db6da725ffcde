"""Gates: what holds an OpenCL queue until a timed execution is queued whole.

NVIDIA's runtime keeps commands behind a user event to itself and, after it, hands them to the device one at a time. A
kernel that spins on a word of the host's memory holds the device, which has by then all that is behind it.
"""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from .base import GATE_LIMIT_NS

SOURCE = """
ulong now_ns(void) {
    ulong now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__kernel void gate(volatile __global const uint *open, ulong limit) {
    ulong start = now_ns();
    while (*open == 0 && now_ns() - start < limit) {}
}
"""


class EventGate:
    """A user event that the queue waits for."""

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        self._context = context

    def close(self, queue: cl.CommandQueue) -> None:
        """Hold what is enqueued from now on."""
        self._event = cl.UserEvent(self._context)
        cl.enqueue_barrier(queue, wait_for=[self._event])

    def open(self) -> None:
        """Let it go."""
        self._event.set_status(cl.command_execution_status.COMPLETE)


class SpinGate:
    """A kernel of NVIDIA's that spins on a mapped word until the host writes it, or a time is over.

    Parameters
    ----------
    context : pyopencl.Context
    queue : pyopencl.CommandQueue
        Any of the context's.
    limit_ns : int
        The gate opens by itself after that.
    source : str
        Of the kernel.
    """

    def __init__(
        self, context: cl.Context, queue: cl.CommandQueue, limit_ns: int = GATE_LIMIT_NS, source: str = SOURCE
    ) -> None:
        flags = cl.mem_flags.ALLOC_HOST_PTR | cl.mem_flags.READ_ONLY
        self._buffer = cl.Buffer(context, flags, size=4)
        access = cl.map_flags.READ | cl.map_flags.WRITE
        self._word, _ = cl.enqueue_map_buffer(queue, self._buffer, access, 0, (1,), np.uint32)
        self._kernel = cl.Kernel(cl.Program(context, source).build(cache_dir=False), "gate")
        self._kernel.set_args(self._buffer, np.uint64(limit_ns))

    def close(self, queue: cl.CommandQueue) -> None:
        """Hold what is enqueued from now on."""
        self._word[0] = 0
        cl.enqueue_nd_range_kernel(queue, self._kernel, (1,), (1,))

    def open(self) -> None:
        """Let it go."""
        self._word[0] = 1
