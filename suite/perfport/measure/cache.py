"""Cold caches: displace what earlier executions left behind, outside the timed window."""

from __future__ import annotations

import numpy as np

from ..backend import OpenDevice
from ..model.device import DeviceInfo
from . import kernels

#: Least size of the buffer that is streamed on a GPU, and its largest.
LEAST_ON_GPU, MOST_ON_GPU = 64 << 20, 512 << 20
#: Least size of it on a CPU: virtual machines tell of one cache where their processors have several, or larger ones.
LEAST_ON_CPU = 256 << 20


def flush_bytes(info: DeviceInfo) -> int:
    """Return the size of the buffer whose reading displaces the caches of a device.

    On a CPU a work-group runs on whichever socket or core complex the runtime chooses, and those of the flush do so,
    too: four times as much is read as all last-level caches hold together. Of twice as much, whose part for a core may
    just fit its cache, so much stays from one flush to the next that what it should displace stays, too: after 64 MiB
    two cores of an EPYC that told of 32 MiB read 8 MiB at 75 GB/s, after 256 MiB at 26, and DRAM gives 34.
    """
    if info.kind == "cpu":
        wanted = max(4 * (info.cache_sum_bytes or info.last_level_cache_bytes or 0), LEAST_ON_CPU)
    else:
        wanted = int(np.clip(1.25 * (info.last_level_cache_bytes or 0), LEAST_ON_GPU, MOST_ON_GPU))
    return min(wanted, info.max_alloc_bytes) // 4096 * 4096


class CacheFlush:
    """Reads a buffer larger than the last-level caches: what a timed execution finds is then in DRAM.

    Parameters
    ----------
    device : OpenDevice
        The device whose caches to displace.

    Attributes
    ----------
    nbytes : int
        The size of the buffer (`flush_bytes`).
    """

    def __init__(self, device: OpenDevice) -> None:
        self.nbytes = nbytes = flush_bytes(device.info)
        self._device = device
        self._kernel = kernels.load(device, "flush.cl").kernel("flush")
        self._buffer = device.empty(nbytes)
        device.fill(self._buffer, 1)
        cpu = device.info.kind == "cpu"
        self._groups = device.info.compute_units * (1 if cpu else 16)
        self._group = 1 if cpu else 256
        self._out = device.empty(4 * self._groups * self._group)
        self._args = (self._buffer, np.uint32(nbytes // 16), self._out)

    def __call__(self) -> None:
        """Enqueue the flush."""
        self._device.launch(self._kernel, self._groups, self._group, *self._args)

    def close(self) -> None:
        """Give the memory back."""
        self._buffer.free()
        self._out.free()
