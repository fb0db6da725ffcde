"""Cold caches: displace what earlier executions left behind, outside the timed window."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from .. import backend
from ..backend import OpenDevice


class CacheFlush:
    """Reads a buffer of 1.25 times the last-level cache: what a timed execution finds is then in DRAM.

    Parameters
    ----------
    device : OpenDevice
        The device whose cache to displace. At least 64 MiB are streamed, at most 512 MiB.
    """

    def __init__(self, device: OpenDevice) -> None:
        cache = device.info.last_level_cache_bytes or 0
        nbytes = int(np.clip(1.25 * cache, 64 << 20, min(512 << 20, device.info.max_alloc_bytes))) // 4096 * 4096
        source = (files("perfport.measure.kernels") / "flush.cl").read_text()
        artifact = backend.get(device.info.backend).build("flush.cl", source, {}, device.target)
        self._device = device
        self._kernel = device.load(artifact).kernel("flush")
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
