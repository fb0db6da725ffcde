"""What a worker keeps from group to group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ... import backend
from ...backend import OpenDevice
from ...machine import platforms
from ...measure.agreement import Agreement
from ...measure.ceilings import Ceilings
from ...measure.contents import Contents
from ...model.device import DeviceInfo
from ...workload import Workload, discover
from ..messages import Message


@dataclass
class Resources:
    """Workloads, open devices, the last probe of each device; and how to reach the parent.

    Attributes
    ----------
    run : str
        Name of the run, for records.
    workload_paths : list of str
        Further workload folders.
    send : callable
        Sends a message to the parent.
    probes : dict
        By the device's id: when its ceilings were last probed (`time.monotonic`), and what that gave.
    """

    run: str
    workload_paths: list[str]
    send: Callable[[Message], None]
    probes: dict[str, tuple[float, Ceilings]] = field(default_factory=dict)
    _workloads: dict[str, Workload] = field(default_factory=dict)
    _devices: dict[str, OpenDevice] = field(default_factory=dict)
    _contents: dict[str, Contents] = field(default_factory=dict)
    _agreements: dict[str, Agreement] = field(default_factory=dict)

    def workload(self, name: str) -> Workload:
        """Return a workload, imported when it is first asked for. Raises `UsageError` where it does not import."""
        if name not in self._workloads:
            self._workloads |= discover(self.workload_paths, name)
        return self._workloads[name]

    def device(self, info: DeviceInfo) -> OpenDevice:
        """Return a device, opened when it is first asked for."""
        if info.id not in self._devices:
            if info.runtime:
                platforms.use([info.runtime])
            self._devices[info.id] = backend.get(info.backend).open(info)
        return self._devices[info.id]

    def contents(self, info: DeviceInfo) -> Contents:
        """Return what exchanges and compares contents on a device, compiled when it is first asked for."""
        if info.id not in self._contents:
            self._contents[info.id] = Contents(self.device(info))
        return self._contents[info.id]

    def agreement(self, info: DeviceInfo) -> Agreement:
        """Return what compares the clocks of executions on a device, which is measured when it is first asked for."""
        if info.id not in self._agreements:
            self._agreements[info.id] = Agreement(self.device(info))
        return self._agreements[info.id]
