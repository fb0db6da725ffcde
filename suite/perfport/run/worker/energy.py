"""The energy of the cases of a group, when the samples of all of them are taken."""

from __future__ import annotations

from collections.abc import Callable

from ...backend import OpenDevice
from ...machine.energy_counter import CounterError, open_counter
from ...measure.contention import Watch
from ...measure.energy import Load, Meter
from ...model.record import Energy
from .live import Live

#: What a record says until its energy is measured: it is stored before, and stays where the worker is lost.
UNMEASURED = Energy(absent="the worker ended before it was measured")


class GroupEnergy:
    """Measures cases of one group. It is made while the device rests.

    Parameters
    ----------
    device : OpenDevice
    """

    def __init__(self, device: OpenDevice) -> None:
        self._device = device
        self._meter: Meter | None = None
        self._absent = ""
        try:
            self._meter = Meter(open_counter(device.info))
        except CounterError as error:
            self._absent = str(error)

    def of(self, live: Live, announce: Callable[[], None]) -> Energy:
        """Execute a case in loops, and compare what the last execution left; ``announce`` as of `Load`.

        Raises
        ------
        Exception
            What an execution raises; a counter that fails makes the energy absent.
        """
        if live.record.identity.device_count > 1:
            return Energy(absent="several devices take part, and a counter is of one")
        if live.cls.host and self._device.info.kind != "cpu":
            return Energy(absent="it works on the host, and the counter is the device's")
        if self._meter is None:
            return Energy(absent=self._absent)
        watch = Watch(self._device)
        loads = {name: Load(built.launch, self._device.finish, announce) for name, built in live.instances.items()}
        for built in live.instances.values():
            built.poison(scratch=True)
        try:
            energy = self._meter.energy(list(loads.values()))
        except CounterError as error:
            energy = Energy(absent=str(error))
        reason = watch.reason()
        for name, audit in live.audits.items():
            if loads[name].executions:  # a counter that fails may have ended it before
                audit.compare()
        return Energy(absent=reason) if reason and not energy.absent else energy
