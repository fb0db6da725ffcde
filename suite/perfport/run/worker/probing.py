"""The ceilings that bound a group: swept once per device, probed beside the group, corrected by the probes."""

from __future__ import annotations

import time

from ...backend import OpenDevice
from ...measure.ceilings import Ceilings, load_cached, probe_again, raise_to, store, sweep
from ...measure.roofline import MOVED, measured_ceilings, moved
from ...model.record import Interval
from ..messages import CeilingsInUse, CeilingsProbed, StepStarted
from .resources import Resources

PROBE_AGE_S = 10.0
#: How often a ceiling is probed, at most, until its probe is quiet.
ATTEMPTS = 4
PAUSE_S = 0.05  # ahead of the second; twice as long ahead of each further one: what disturbed may be over by then


class GroupCeilings:
    """The ceilings in use for a group.

    Parameters
    ----------
    device : OpenDevice
    wanted : set of str
        Those to probe, as far as the device has them.
    resources : Resources

    Attributes
    ----------
    values : dict of Interval
        By name, as records hold them.
    disturbed : str
        Why results of the group are not to be trusted, by the last probe that stayed disturbed; empty if none did.
    """

    values: dict[str, Interval]
    disturbed: str = ""

    def __init__(self, device: OpenDevice, wanted: set[str], resources: Resources) -> None:
        self._device = device
        self._resources = resources
        self._known = self._swept()
        self._wanted = wanted & set(self._known.entries)
        self.take(self._recent() or self.probe("before"))

    def _swept(self) -> Ceilings:
        info = self._device.info
        known = load_cached(info)
        if known is None:
            send = self._resources.send
            known = sweep(self._device, progress=lambda name: send(StepStarted(None, f"measuring ceiling {name}")))
            store(info, known)
        return known

    def _recent(self) -> Ceilings | None:
        """The quiet probe that ended the group before, if that was just now and of all that this group needs."""
        taken, probe = self._resources.probes.get(self._device.info.id, (0.0, None))
        fresh = probe is not None and time.monotonic() - taken < PROBE_AGE_S
        serves = probe and fresh and self._wanted <= set(probe.entries) and not moved(self._known, probe)
        return probe if serves else None

    def take(self, probe: Ceilings) -> None:
        """Take what a probe gave into account: where it gave more than the sweep, the sweep was disturbed."""
        self._raise(probe)
        self.values = measured_ceilings(self._known, probe)
        off = ", ".join(f"{name} at {share:.0%}" for name, share in sorted(moved(self._known, probe).items()))
        if off:
            self.disturbed = (
                f"ceilings were probed {ATTEMPTS} times beside it, and stayed more than {MOVED:.0%} off: {off} of what "
                "is stored (where the device is quiet, sweep again: perfport ceilings)"
            )
        self._resources.send(CeilingsInUse(self._device.info.id, self._known.model_dump()))

    def _raise(self, probe: Ceilings) -> None:
        raised = raise_to(self._known, probe)
        if raised is not self._known:
            store(self._device.info, raised)
        self._known = raised

    def probe(self, when: str) -> Ceilings:
        """Measure the wanted ceilings again, briefly, and those that moved some more times; the last of each counts.

        ``when`` is told to the parent.
        """
        now = self._probe_once(when, self._wanted)
        for number in range(ATTEMPTS - 1):
            self._raise(now)
            if not (off := moved(self._known, now)):
                break
            time.sleep(PAUSE_S * 2**number)
            again = self._probe_once(when, set(off))
            now = now.model_copy(update={"date": again.date, "entries": {**now.entries, **again.entries}})
        self._resources.probes[self._device.info.id] = (time.monotonic(), now)
        return now

    def _probe_once(self, when: str, names: set[str]) -> Ceilings:
        self._resources.send(StepStarted(None, f"probing ceilings {when}"))
        now = probe_again(self._device, self._known, names)
        entries = {name: {"value": e.value, "low": e.low, "high": e.high} for name, e in now.entries.items()}
        entry = {"device": self._known.device, "when": when, "date": now.date, "entries": entries}
        self._resources.send(CeilingsProbed(entry))
        return now
