"""The contents of device buffers: exchanged in place, and told apart by checksums."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backend import Buffer, OpenDevice
from . import kernels


class Contents:
    """Exchanges what buffers of a device hold, and forms checksums of it, on the device.

    Parameters
    ----------
    device : OpenDevice
    """

    def __init__(self, device: OpenDevice) -> None:
        module = kernels.load(device, "contents.cl")
        self._device = device
        self._exchange, self._checksum = module.kernel("exchange"), module.kernel("checksum")
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
        while len(self._sums) < len(buffers):
            self._sums.append(self._device.empty(8 * self._items))
        for buffer, sums in zip(buffers, self._sums, strict=False):
            self._launch(self._checksum, buffer, np.uint64(buffer.nbytes), self._key, sums)
        read = [self._device.read(sums, np.uint64, (self._items,)) for sums in self._sums[: len(buffers)]]
        return [int(sums.sum(dtype=np.uint64)) for sums in read]

    def close(self) -> None:
        """Give the memory back."""
        while self._sums:
            self._sums.pop().free()

    def _launch(self, kernel: Any, *args: Any) -> None:
        self._device.launch(kernel, *self._shape, *args)
