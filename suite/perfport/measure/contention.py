"""Foreign load while a case was sampled, and waiting until there is none."""

from __future__ import annotations

import time

import psutil

from ..backend import OpenDevice
from ..machine.environment import usable

FOREIGN_LIMIT = 0.15  # share of the cores that this process may use
LEAST_S = 0.5  # what is shorter says nothing: the system counts processor time in hundredths of a second
LOOK_S = 1.0


class Watch:
    """Measures from its creation on how busy others keep the cores that a CPU device needs.

    Of a pinned process these are its own; what others on the rest do to memory and caches the probes of ceilings tell.
    """

    def __init__(self, device: OpenDevice) -> None:
        self._device = device
        self._process = psutil.Process()
        every = {*range(len(psutil.cpu_times(percpu=True)))}
        self._cores = usable() & every or every  # numbers have gaps where cores are offline
        self._started = time.perf_counter()
        self._before = self._read()

    def _read(self) -> tuple[float, float]:
        times = psutil.cpu_times(percpu=True)
        busy = 0.0
        for core in self._cores:
            every = times[core]
            busy += sum(every) - every.idle - getattr(every, "iowait", 0.0) - getattr(every, "guest", 0.0)
        own = self._process.cpu_times()
        return busy, own.user + own.system

    def elapsed(self) -> float:
        """Return the seconds since its creation."""
        return time.perf_counter() - self._started

    def reason(self) -> str:
        """Return why the samples are not to be trusted, or an empty string; also within the first `LEAST_S`."""
        throttled = self._device.clocks().get("throttled")
        if throttled:
            return f"the device throttled ({', '.join(throttled)})"
        elapsed = self.elapsed()
        if self._device.info.kind != "cpu" or elapsed < LEAST_S:
            return ""
        busy, own = (after - before for after, before in zip(self._read(), self._before, strict=True))
        foreign = (busy - own) / elapsed / max(1, len(self._cores))
        if foreign > FOREIGN_LIMIT:
            return f"other processes used {foreign:.0%} of the processor meanwhile"
        return ""


def wait_until_quiet(device: OpenDevice, limit: float) -> str:
    """Wait until nothing foreign uses what a device needs.

    Parameters
    ----------
    device : OpenDevice
    limit : float
        Seconds after which no further look is taken; with 0 there is one, of `LOOK_S`.

    Returns
    -------
    str
        Why the last look was not quiet; empty if it was.
    """
    since = time.monotonic()
    while True:
        watch = Watch(device)
        time.sleep(LOOK_S)
        if not (reason := watch.reason()) or time.monotonic() - since >= limit:
            return reason
