"""The contents of device buffers: exchanged in place, mixed, and told apart by checksums and byte by byte."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backend import Buffer, OpenDevice
from . import kernels


class Contents:
    """Exchanges and mixes what buffers of a device hold, compares it and forms checksums of it, on the device.

    Parameters
    ----------
    device : OpenDevice
    """

    def __init__(self, device: OpenDevice) -> None:
        module = kernels.load(device, "contents.cl")
        self._device = device
        self._exchange, self._checksum = module.kernel("exchange"), module.kernel("checksum")
        self._blend, self._strangers = module.kernel("blend"), module.kernel("strangers")
        cpu = device.info.kind == "cpu"
        self._shape = device.info.compute_units * (1 if cpu else 4), 1 if cpu else 256
        self._items = self._shape[0] * self._shape[1]
        self._sums: list[Buffer] = []
        self._key = np.uint32(secrets.randbits(32))

    def exchange(self, one: Buffer, other: Buffer) -> None:
        """Enqueue that two buffers of one size take each other's contents; nothing is allocated."""
        self._launch(self._exchange, one, other, np.uint64(one.nbytes))

    def checksums(self, buffers: Sequence[Buffer]) -> list[int]:
        """Return a checksum of each buffer (waits).

        It is of this object's own: a key that is drawn when it is made enters every term.
        """
        own = self._sums_of(len(buffers))
        for buffer, sums in zip(buffers, own, strict=True):
            self._launch(self._checksum, buffer, np.uint64(buffer.nbytes), self._key, sums)
        return [self._total(sums) for sums in own]

    def blend(self, one: Buffer, other: Buffer, out: Buffer) -> None:
        """Enqueue that ``out`` has each run of 16 bytes by chance from one or the other of two buffers of its size."""
        self._launch(self._blend, one, other, out, np.uint64(out.nbytes), np.uint32(secrets.randbits(32)))

    def strangers(self, mixed: Buffer, one: Buffer, other: Buffer) -> int:
        """Return how many bytes of a buffer neither of two others of its size has at the same place (waits)."""
        (sums,) = self._sums_of(1)
        self._launch(self._strangers, mixed, one, other, np.uint64(mixed.nbytes), sums)
        return self._total(sums)

    def _sums_of(self, count: int) -> list[Buffer]:
        while len(self._sums) < count:
            self._sums.append(self._device.empty(8 * self._items))
        return self._sums[:count]

    def _total(self, sums: Buffer) -> int:
        return int(self._device.read(sums, np.uint64, (self._items,)).sum(dtype=np.uint64))

    def close(self) -> None:
        """Give the memory back."""
        while self._sums:
            self._sums.pop().free()

    def _launch(self, kernel: Any, *args: Any) -> None:
        self._device.launch(kernel, *self._shape, *args)
