"""Foreign load while a case was sampled."""

from __future__ import annotations

import time

import psutil

from ..backend import OpenDevice

FOREIGN_LIMIT = 0.15  # share of the machine's cores


class Watch:
    """Measures from its creation on how busy others keep the processor that a CPU device needs."""

    def __init__(self, device: OpenDevice) -> None:
        self._device = device
        self._process = psutil.Process()
        self._started = time.perf_counter()
        self._before = self._read()

    def _read(self) -> tuple[float, float]:
        every = psutil.cpu_times()
        busy = sum(every) - every.idle - getattr(every, "iowait", 0.0) - getattr(every, "guest", 0.0)
        own = self._process.cpu_times()
        return busy, own.user + own.system

    def reason(self) -> str:
        """Return why the samples are not to be trusted, or an empty string."""
        throttled = self._device.clocks().get("throttled")
        if throttled:
            return f"the device throttled ({', '.join(throttled)})"
        elapsed = time.perf_counter() - self._started
        if self._device.info.kind != "cpu" or elapsed < 0.5:
            return ""
        busy, own = (after - before for after, before in zip(self._read(), self._before, strict=True))
        foreign = (busy - own) / elapsed / (psutil.cpu_count() or 1)
        if foreign > FOREIGN_LIMIT:
            return f"other processes used {foreign:.0%} of the processor meanwhile"
        return ""
