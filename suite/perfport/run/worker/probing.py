"""The ceilings that bound a group: probed beside it, corrected by the probes, swept again where these say so."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from ...backend import OpenDevice
from ...measure.ceilings import MOVED, Ceilings, probe_again
from ...measure.roofline import BARRIERS, CHAIN, DRAM, EMPTY, impossible, measured_ceilings, moved
from ...model.record import Interval, Record
from ..messages import CeilingsInUse, CeilingsProbed, StepStarted
from .resources import Resources
from .stored import StoredCeilings

PROBE_AGE_S = 10.0
#: How often a ceiling is probed, at most, until its probe is quiet.
ATTEMPTS = 4
#: Terms of a bound that are named after no ceiling, with the ceilings that they are made of.
TERMS = {DRAM: ("dram_read", "dram_copy"), CHAIN: (EMPTY, *BARRIERS)}
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
    anew : str
        What a new sweep gave beside what was stored, after a group with an impossible time; empty before.
    """

    values: dict[str, Interval]

    def __init__(self, device: OpenDevice, wanted: set[str], resources: Resources) -> None:
        self._device = device
        self._resources = resources
        self._stored = StoredCeilings(device, resources)
        self._wanted = wanted & set(self._stored.known.entries)
        self._untrusted = self._stored.untrusted(self._wanted)
        self.anew = ""
        self._moved: dict[str, tuple[str, float]] = {}  # of ceilings whose probe stayed off: how, and `_matters_until`
        self.take(self._recent() or self.probe("before"))

    def _recent(self) -> Ceilings | None:
        """The quiet probe that ended the group before, if that was just now and of all that this group needs."""
        taken, probe = self._resources.probes.get(self._device.info.id, (0.0, None))
        fresh = probe is not None and time.monotonic() - taken < PROBE_AGE_S
        serves = probe and fresh and self._wanted <= set(probe.entries) and not self._disturbances(probe)
        return probe if serves else None

    def _disturbances(self, probe: Ceilings) -> dict[str, str]:
        """Return how a probe differs from what is stored, by ceiling."""
        off = {
            name: f"{name} at {share:.0%} of what is stored" for name, share in moved(self._stored.known, probe).items()
        }
        return off | {name: f"{name}: {reason}" for name, reason in probe.absent.items()}

    def take(self, probe: Ceilings) -> None:
        """Take what a probe gave into account: where it gave more than the sweep, the sweep was disturbed."""
        self._stored.raise_by(probe)
        self.values = measured_ceilings(self._stored.known, probe)
        for name, text in self._disturbances(probe).items():
            now = text, self._matters_until(name, probe)
            self._moved[name] = max(now, self._moved.get(name, now), key=lambda one: one[1])
        self._resources.send(CeilingsInUse(self._device.info.id, self._stored.known.model_dump()))

    def _matters_until(self, name: str, probe: Ceilings) -> float:
        """Return the seconds from which on a result does not depend on how far a ceiling is off, by more than `MOVED`.

        An empty execution enters a bound once: what it is late by is nothing to a case that takes much longer.
        (NVIDIA's OpenCL launches more slowly where a group has large buffers.) All others enter in proportion.
        """
        if name != EMPTY or name in probe.absent:
            return math.inf
        return abs(probe.entries[name].value - self._stored.known.entries[name].value) / MOVED

    def disturbed_for(self, seconds: float) -> str:
        """Return why a result of the group that took so long is not to be trusted; empty if nothing says so.

        By the ceilings' sweep, or by probes that stayed off.
        """
        off = [text for _, (text, until) in sorted(self._moved.items()) if seconds < until]
        if not off:
            return self._untrusted
        return (
            f"ceilings were probed {ATTEMPTS} times beside it, and stayed more than {MOVED:.0%} off: "
            f"{', '.join(off)} (where the device is quiet, sweep again: perfport ceilings)"
        )

    def end(self, records: Iterable[Record]) -> bool:
        """Probe after the group, and sweep again what stayed off or was exceeded.

        A probe that stayed off leaves the group's results disturbed: nobody knows what the device gave meanwhile.

        Parameters
        ----------
        records : iterable of Record
            Of the group's cases. A time below a bound's, by the whole of its interval, says that the ceilings which
            give that bound are too low. Where it is impossible under them, they are swept again in any case.

        Returns
        -------
        bool
            Whether ceilings were replaced: bounds are to be formed again.
        """
        probe = self.probe("after")
        self.take(probe)
        known = self._stored.known.entries
        exceeded, verdict = set[str](), False
        for record in records:
            names = _exceeded(record) & known.keys()
            exceeded |= names
            verdict = verdict or (bool(names) and impossible(record.problem_bound))
        reasons = [f"probes of {', '.join(sorted(self._moved))} stayed off"] if self._moved else []
        reasons += [f"times exceed {', '.join(sorted(exceeded))}"] if exceeded else []
        replaced = self._stored.renew(" and ".join(reasons), self._moved.keys() | exceeded, exceeded, verdict=verdict)
        if verdict:
            self.anew = self._stored.known.renewals[-1].told
        if not replaced:
            return False
        self._resources.probes.pop(self._device.info.id, None)  # it was compared with what is replaced
        self.values = measured_ceilings(self._stored.known)
        return True

    def probe(self, when: str) -> Ceilings:
        """Measure the wanted ceilings again, briefly, and those that moved some more times; the last of each counts.

        ``when`` is told to the parent.
        """
        now = self._probe_once(when, self._wanted)
        for number in range(ATTEMPTS - 1):
            self._stored.raise_by(now)
            if not (off := self._disturbances(now)):
                break
            time.sleep(PAUSE_S * 2**number)
            again = self._probe_once(when, set(off))
            failed = {name: reason for name, reason in now.absent.items() if name not in off}
            update = {"entries": {**now.entries, **again.entries}, "absent": {**failed, **again.absent}}
            now = now.model_copy(update={"date": again.date, **update})
        self._resources.probes[self._device.info.id] = (time.monotonic(), now)
        return now

    def _probe_once(self, when: str, names: set[str]) -> Ceilings:
        self._resources.send(StepStarted(None, f"probing ceilings {when}"))
        now = probe_again(self._device, self._stored.known, names)
        entries = {name: {"value": e.value, "low": e.low, "high": e.high} for name, e in now.entries.items()}
        entry = {"device": self._stored.known.device, "when": when, "date": now.date, "entries": entries}
        self._resources.send(CeilingsProbed(entry))
        return now


def _exceeded(record: Record) -> set[str]:
    """Return the ceilings that a record's time exceeds: its share is above 100 %, and all of the interval with it."""
    bound = record.problem_bound
    if bound is None or bound.share.low * bound.low <= bound.seconds:
        return set()
    longest = bound.seconds / bound.share.low  # the upper end of its time
    terms = [term for term, seconds in bound.terms.items() if seconds > longest]
    return {name for term in terms for name in TERMS.get(term, (term,))}
