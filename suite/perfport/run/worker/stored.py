"""The stored ceilings of a device: swept where there are none, swept again where they are not to be trusted."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from ...backend import OpenDevice
from ...measure.ceilings import Ceilings, Renewal, load_cached, outdated, raise_to, renewed, store, sweep
from ...measure.contention import wait_until_quiet
from ..messages import CeilingsInUse, StepStarted
from .resources import Resources


class StoredCeilings:
    """The ceilings of a device as the user's cache keeps them.

    They are swept again at most once per run and device, and only if nothing foreign uses the device at that moment:
    a run is no place to wait for a quiet machine. Only a verdict that rests on them is worth that each time.

    Attributes
    ----------
    known : Ceilings
    """

    known: Ceilings

    def __init__(self, device: OpenDevice, resources: Resources) -> None:
        self._device, self._resources = device, resources
        cached = load_cached(device.info)
        if cached is None:
            self._keep(sweep(device, progress=self._step))
            return
        self.known = cached
        reason, names = outdated(cached, datetime.now(UTC))
        if reason:
            self.renew(reason, names)

    def untrusted(self, names: Collection[str]) -> str:
        """Return why ceilings of these names are not to be trusted, or an empty string."""
        reason, of = outdated(self.known, datetime.now(UTC))
        if not (listed := ", ".join(sorted({*of} & {*names}))):
            return ""
        how = "; ".join(sorted(set(self.known.contended.values())))
        return f"the ceilings {listed} are not to be trusted: {reason}" + (f" ({how})" if how else "")

    def renew(
        self, reason: str, names: Collection[str], exceeded: Collection[str] = (), *, verdict: bool = False
    ) -> bool:
        """Sweep ceilings again, and keep, tell and note it; return whether any was replaced.

        Parameters
        ----------
        reason : str
            Why they are not to be trusted.
        names : collection of str
        exceeded : collection of str
            Those of them that a time exceeds: they are replaced by what is better alone.
        verdict : bool
            Whether a result is impossible unless they were too low: then once in a run is not enough, and foreign load
            no reason to leave it at what is stored, because it makes nothing better than it is.
        """
        run = self._resources.run
        earlier = [renewal for renewal in self.known.renewals if renewal.run == run and not renewal.verdict]
        if not names or (earlier and not verdict):
            return False
        self._step(f"sweeping ceilings again: {reason}")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        renewal = Renewal(run=run, date=now, reason=reason, names=sorted(names), verdict=verdict)
        if not verdict and (busy := wait_until_quiet(self._device, 0.0)):
            noted = renewal.model_copy(update={"outcome": f"all are as they were: {busy}"})
            after = self.known.model_copy(update={"renewals": [*self.known.renewals, noted]})
        else:
            fresh = sweep(self._device, False, self._step, names, self.known.entries)
            after = renewed(self.known, fresh, renewal, exceeded)
        changed = after.entries != self.known.entries
        self._keep(after)
        self._resources.send(CeilingsInUse(self._device.info.id, after.model_dump()))
        return changed

    def raise_by(self, probe: Ceilings) -> None:
        """Keep what a probe gave, where that is more than the sweep's interval allows."""
        raised = raise_to(self.known, probe)
        if raised is not self.known:
            self._keep(raised)

    def _keep(self, ceilings: Ceilings) -> None:
        self.known = ceilings
        store(self._device.info, ceilings)

    def _step(self, step: str) -> None:
        self._resources.send(StepStarted(None, step))
