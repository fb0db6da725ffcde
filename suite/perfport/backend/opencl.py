"""OpenCL through PyOpenCL: which devices there are, and how code for them is built (the device: `opencl_device`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyopencl as cl

from ..model.device import DeviceInfo
from ..model.errors import UnsupportedError
from . import host_caches, nvrtc
from . import ptx as nvidia_ptx
from .base import Artifact, Macros, architecture, define_flags, digest, feature_flags, with_dialect
from .opencl_device import OpenCLDevice
from .opencl_simulated import SimulatedDevice

HEADER = "dialect_opencl.h"
DIALECT = (files("perfport.backend") / HEADER).read_text()
#: Warnings off: nobody sees them, but PoCL writes how many there were to the terminal.
OPTIONS = ("-cl-std=CL1.2", "-w")
_FAMILIES = {
    "portable computing language": "pocl",
    "pocl": "pocl",
    "intel": "intel",
    "nvidia": "nvidia",
    "amd": "amd",
    "oclgrind": "oclgrind",
}


def _query(device: cl.Device, name: str, default: Any = None) -> Any:
    """Read a device property; runtimes answer unknown ones with errors of several kinds."""
    try:
        return getattr(device, name)
    except (cl.Error, AttributeError):
        return default


def _slug(platform_name: str) -> str:
    lower = platform_name.lower()
    for part, slug in _FAMILIES.items():
        if part in lower:
            return slug
    return re.sub(r"[^a-z0-9]+", "-", lower).strip("-") or "unknown"


def _host_has(flag: str) -> bool:
    """Whether the host's processor has a feature, by the name that Linux gives it."""
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return flag in flags.split()


def _chip(device: cl.Device) -> str:
    """Return the processor's name without the runtime's decoration (``pthread-skylake-avx512-...`` on PoCL)."""
    name = re.sub(r"^(pthread|cpu|basic)-", "", device.name.strip())
    return re.sub(r"^[a-z0-9-]+?-(?=(Intel|AMD|ARM|Neoverse))", "", name)


def _pci(device: cl.Device) -> str:
    """Return the address on the bus, which NVIDIA's runtime tells: its slot is device and function, 5 and 3 bits."""
    bus, slot = _query(device, "pci_bus_id_nv"), _query(device, "pci_slot_id_nv")
    if bus is None or slot is None:
        return ""
    return f"{_query(device, 'pci_domain_id_nv', 0):04x}:{bus:02x}:{slot >> 3:02x}.{slot & 7}"


class OpenCLBackend:
    """Backend over every platform that the OpenCL loader of this process sees."""

    name = "opencl"

    def discover(self) -> list[DeviceInfo]:
        """List devices. Raises nothing: a loader without platforms gives an empty list."""
        return [info for info, _ in self._devices()]

    def _devices(self) -> list[tuple[DeviceInfo, cl.Device]]:
        try:
            platforms = cl.get_platforms()
        except cl.LogicError:  # PLATFORM_NOT_FOUND_KHR
            return []
        devices = []
        counts: dict[str, int] = {}
        for platform in platforms:
            slug = _slug(platform.name)
            if "fpga" in platform.name.lower():
                continue  # an emulator of another kind of device that Intel's wheel registers beside the CPU
            for device in platform.get_devices():
                number = counts.get(slug, 0)
                counts[slug] = number + 1
                devices.append((self._describe(platform, device, f"opencl:{slug}:{number}"), device))
        return devices

    @staticmethod
    def _describe(platform: cl.Platform, device: cl.Device, identifier: str) -> DeviceInfo:
        cpu = bool(device.type & cl.device_type.CPU)
        gpu = bool(device.type & cl.device_type.GPU)
        extensions = device.extensions.split()
        capabilities = ["opencl", "unaligned_vload"]  # OpenCL C: vload needs the alignment of one element
        if device.image_support:
            capabilities.append("images")
        if "cl_khr_fp64" in extensions:
            capabilities.append("fp64")
        if identifier.startswith("opencl:pocl") and cpu and _host_has("avx512_vnni"):
            capabilities.append("vnni")  # PoCL's compiler takes x86 inline assembly; Intel's does not
        uuid = _query(device, "uuid_khr")
        capability = None
        if (major := _query(device, "compute_capability_major_nv")) is not None:
            capability = f"{major}.{_query(device, 'compute_capability_minor_nv', 0)}"
        hardware_thread = _query(device, "warp_size_nv") or _query(device, "wavefront_width_amd")
        return DeviceInfo(
            id=identifier,
            backend="opencl",
            platform=platform.name.strip(),
            platform_version=platform.version.strip(),
            name=device.name.strip(),
            chip=_chip(device),
            vendor=device.vendor.strip(),
            driver=device.driver_version.strip(),
            kind="cpu" if cpu else "gpu" if gpu else "accelerator",
            uuid=bytes(uuid).hex() if uuid else "",
            pci=_pci(device),
            compute_units=device.max_compute_units,
            clock_mhz=device.max_clock_frequency or None,
            memory_bytes=device.global_mem_size,
            max_alloc_bytes=device.max_mem_alloc_size,
            local_memory_bytes=device.local_mem_size,
            max_work_group=device.max_work_group_size,
            hardware_thread=hardware_thread,
            last_level_cache_bytes=(host_caches.largest() if cpu else None) or _query(device, "global_mem_cache_size"),
            cache_sum_bytes=host_caches.last_levels() if cpu else None,
            image2d_max_width=device.image2d_max_width if device.image_support else 0,
            image2d_max_height=device.image2d_max_height if device.image_support else 0,
            compute_capability=capability,
            capabilities=capabilities,
        )

    def build(
        self, name: str, source: str, macros: Macros, target: str | None, options: Sequence[str] = ()
    ) -> Artifact:
        """Return the source with its dialect and options; the runtime compiles when a device loads it.

        CUDA C++ (``.cu``) is compiled to PTX, for a device whose runtime takes it.
        """
        if name.endswith(".cu"):
            return self._from_cuda(name, source, macros, target, options)
        text = with_dialect(HEADER, DIALECT, name, source)
        flags = (*OPTIONS, *options, *feature_flags(target), *define_flags(macros))
        return Artifact("opencl", name, text.encode(), flags, digest(text, *flags), "source", listing={"source": text})

    def _from_cuda(
        self, name: str, source: str, macros: Macros, target: str | None, options: Sequence[str]
    ) -> Artifact:
        """Compile CUDA C++ to PTX, with arenas of fixed size."""
        fixed = {**macros, "PERFPORT_STATIC_ARENA": 1}
        artifact = self.assemble(name, nvrtc.build_ptx(name, source, fixed, architecture(target), options), target)
        flags = (*artifact.options, *nvrtc.OPTIONS, *options, *define_flags(fixed))
        return replace(artifact, options=flags, listing={**artifact.listing, "source": source})

    def assemble(self, name: str, ptx: str, target: str | None, local_bytes: int = 0) -> Artifact:
        """Return the PTX as the runtime takes it, which assembles when a device loads it."""
        text = nvidia_ptx.for_opencl(ptx, local_bytes)
        flags = (f"-arch={architecture(target)}",)
        listing = {"source": ptx, "ptx": text}
        return Artifact("opencl", name, text.encode(), flags, digest(text, *flags), "ptx", listing=listing)

    def open(self, info: DeviceInfo) -> OpenCLDevice:
        """Open a device by the id that discovery gave it."""
        devices = self._devices()
        same = [pair for pair in devices if pair[0].id == info.id]
        # Two runtimes of one family are told apart by a number that only discovery knows.
        alike = [pair for pair in devices if (pair[0].name, pair[0].driver) == (info.name, info.driver)]
        for _, device in [*same, *alike][:1]:
            return (SimulatedDevice if info.id.startswith("opencl:oclgrind") else OpenCLDevice)(info, device)
        raise UnsupportedError(f"device {info.id} is not visible in this process")
