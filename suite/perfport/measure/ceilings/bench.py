"""The bench that ceilings are measured on: an open device with the arrays and kernels that they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import numpy as np

from ... import backend
from ...backend import Artifact, Module, OpenDevice
from ..cache import CacheFlush

FILL = 0x3C  # 0x3c3c3c3c is 0.0115 as a float


class Bench:
    """Builds kernels and allocates arrays at first use, and keeps them until it is closed.

    Attributes
    ----------
    nbytes : int
        Size of an array in DRAM: long enough on a GPU that ramp-up and tail do not count; a CPU is slow enough for
        less.
    keeps : bool
        Whether what is sampled is kept as a value, and not only compared with other shapes' (see `keeping`).
    """

    def __init__(self, device: OpenDevice) -> None:
        self.device = device
        self.info = device.info
        self.cpu = device.info.kind == "cpu"
        cache = device.info.last_level_cache_bytes or 0
        wanted = (256 << 20) if self.cpu else max(4 * cache, 4 << 30)
        limit = min(device.info.max_alloc_bytes, device.info.memory_bytes // 8)
        self.nbytes = int(min(wanted, limit)) // 4096 * 4096
        self.keeps = False
        self._buffers: dict[str, Any] = {}
        self._kernels: dict[str, Any] = {}
        self._host: dict[tuple[bool, int], np.ndarray] = {}
        self._flush: CacheFlush | None = None

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Sample what is kept: for longer, where the device needs that for a steady rate."""
        self.keeps = True
        try:
            yield
        finally:
            self.keeps = False

    def array(self, number: int) -> Any:
        """Return one of the arrays in DRAM, filled with equal numbers."""
        return self.buffer(f"array {number}", self.nbytes)

    def buffer(self, name: str, nbytes: int) -> Any:
        """Return the buffer of a name, at least so large; where it has to be made, it is filled with `FILL`."""
        kept = self._buffers.get(name)
        if kept is None or kept.nbytes < nbytes:
            if kept is not None:
                self._buffers.pop(name).free()
            self._buffers[name] = self.device.empty(nbytes)
            self.device.fill(self._buffers[name], FILL)
        return self._buffers[name]

    def has(self, name: str) -> bool:
        """Whether the buffer of a name exists."""
        return name in self._buffers

    def out(self, items: int) -> Any:
        """Return a buffer for one word of each work-item."""
        return self.buffer("out", 4 * items)

    def host(self, pinned: bool, nbytes: int) -> np.ndarray:
        """Return host memory, page-locked or not, whose pages exist."""
        key = (pinned, nbytes)
        if key not in self._host:
            array = self.device.pinned(nbytes) if pinned else np.empty(nbytes, np.uint8)
            array[:] = FILL
            self._host[key] = array
        return self._host[key]

    def kernel(self, file: str, name: str, macros: dict[str, int | str], suffix: str = "") -> Any:
        """Return a kernel of the harness, built with its name in capitals and ``macros`` defined.

        ``suffix`` narrows the target (``a``: sm_90a, which has instructions that no later device keeps).
        """
        macros = {**macros, name.upper(): 1}
        key = f"{file} {sorted(macros.items())}"
        if key not in self._kernels:
            folder = files("perfport.measure.kernels")
            source = (folder / file).read_text()
            if "WIDTH" in macros:
                source = f'{(folder / "vectors.h").read_text()}\n#line 1 "{file}"\n{source}'
            target = self.device.target and self.device.target + suffix
            artifact = backend.get(self.info.backend).build(file, source, macros, target)
            self._kernels[key] = _load_once(self.device, artifact).kernel(name)
        return self._kernels[key]

    def flush(self) -> None:
        """Enqueue a read that displaces the caches."""
        if self._flush is None:
            self._flush = CacheFlush(self.device)
        self._flush()

    def close(self) -> None:
        """Give the memory back."""
        if self._flush is not None:
            self._flush.close()
        for buffer in self._buffers.values():
            buffer.free()
        self._buffers.clear()
        self._host.clear()


def _load_once(device: OpenDevice, artifact: Artifact) -> Module:
    """Load an artifact unless an earlier bench on the device has: every group of cases is probed before and after."""
    loaded: dict[str, Module] = vars(device).setdefault("_ceiling_modules", {})
    if artifact.source_hash not in loaded:
        loaded[artifact.source_hash] = device.load(artifact)
    return loaded[artifact.source_hash]
