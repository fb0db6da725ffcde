"""What a device is: identity, limits and health, as one plain serialisable object."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .schema import Model

DeviceKind = Literal["cpu", "gpu", "accelerator"]


class DeviceInfo(Model):
    """One device as one backend reports it. Sizes are in bytes; ``None`` means the driver does not say.

    Attributes
    ----------
    id : str
        Stable name within a machine, ``backend:platform:index`` (``opencl:pocl:0``, ``cuda:nvidia:0``).
    chip : str
        The physical processor; two platforms over one CPU have the same chip.
    runtime : str
        Library of the OpenCL runtime, so that a worker loads only the runtimes it needs.
    uuid, pci : str
        Universal identifier as hexadecimal digits, and address on the bus (``0000:3b:00.0``); empty where the driver
        does not say.
    capabilities : list of str
        What variants may ask for: ``images``, ``fp64``, ``dp4a``, ``ptx``, ``mma``, ``wgmma``,
        ``unaligned_vload``, ``vnni``, ``cuda``, ``opencl``. On NVIDIA's OpenCL some of them are found by trial, and
        so are ``warp_sync``, ``wide_loads`` (the dialect uses them) and ``full_groups``: work-groups up to
        ``max_work_group`` run, whatever the runtime states of a kernel.
    cache_sum_bytes : int, optional
        Of a CPU: the last-level caches of all its sockets and core complexes together, where ``last_level_cache_bytes``
        is one of them.
    healthy, reason
        Outcome of the health check (a trivial kernel built and run in a child process).
    lost : bool
        Stands for a runtime whose child died or hung before it listed its devices. Not stored.
    """

    id: str
    backend: str
    platform: str
    platform_version: str = ""
    name: str
    chip: str
    vendor: str = ""
    driver: str = ""
    runtime: str = ""
    kind: DeviceKind
    uuid: str = ""
    pci: str = ""
    compute_units: int
    clock_mhz: int | None = None
    memory_bytes: int
    max_alloc_bytes: int
    local_memory_bytes: int
    max_work_group: int
    hardware_thread: int | None = None
    last_level_cache_bytes: int | None = None
    cache_sum_bytes: int | None = None
    image2d_max_width: int = 0
    image2d_max_height: int = 0
    compute_capability: str | None = None
    capabilities: list[str] = Field(default_factory=list)
    profile: str | None = None
    healthy: bool = True
    reason: str = ""
    lost: bool = Field(False, exclude=True)

    @property
    def processor(self) -> str:
        """The chip, with its address on the bus where the driver tells it: equal chips of one machine differ by that.

        Platforms over one processor agree on it.
        """
        return f"{self.chip} {self.pci.lower()}".strip()

    def matches(self, selector: str) -> bool:
        """Whether a user's selector (``all``, ``cpu``, ``gpu``, or a part of the id, platform or name) names it."""
        selector = selector.lower()
        if selector in ("all", self.kind, self.backend, self.id):
            return True
        if selector == "cuda":  # NVIDIA calls its OpenCL platform so, too
            return False
        if ":" in selector:
            return self.id.startswith(selector + ":")
        if selector in self.id or selector in self.platform.lower():
            return True
        return self.kind != "cpu" and selector in self.name.lower()  # a CPU's name is not its platform's

    def may_have(self, selector: str) -> bool:
        """Whether this stands for a runtime that did not list its devices, and a selector may name one of them.

        Of a runtime that was lost nobody knows what it has; one that cannot be loaded is asked for by its own name.
        """
        if self.compute_units:
            return False
        backend, colon, rest = selector.lower().partition(":")
        platform = rest.partition(":")[0] if colon else backend
        named = platform in self.platform.lower() or platform in self.runtime.lower().rsplit("/", 1)[-1]
        return (not colon or backend == self.backend) and (self.lost or named)
