"""CUDA through CuPy: which devices there are, and how code for them is built (the device itself: `cuda_device`)."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.device import DeviceInfo
from . import assembler, nvrtc
from .base import Artifact, Macros, digest
from .cuda_device import CudaDevice


class CudaBackend:
    """Backend over the CUDA devices of this machine."""

    name = "cuda"

    def discover(self) -> list[DeviceInfo]:
        """List devices; empty where CuPy or a driver is missing."""
        try:
            import cupy

            count = cupy.cuda.runtime.getDeviceCount()
        except Exception:
            return []
        return [self._describe(number) for number in range(count)]

    @staticmethod
    def _describe(number: int) -> DeviceInfo:
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(number)
        driver = cupy.cuda.runtime.driverGetVersion()
        capability = (properties["major"], properties["minor"])
        capabilities = ["cuda", "ptx", "images", "fp64"]
        if capability >= (6, 1):
            capabilities.append("dp4a")
        capabilities += matrix_capabilities(capability)
        name = properties["name"].decode()
        attributes = cupy.cuda.Device(number).attributes
        return DeviceInfo(
            id=f"cuda:nvidia:{number}",
            backend="cuda",
            platform="NVIDIA CUDA",
            platform_version=f"CUDA {driver // 1000}.{driver % 1000 // 10}",
            name=name,
            chip=name,
            vendor="NVIDIA Corporation",
            driver=_driver_version() or f"CUDA {driver}",
            kind="gpu",
            uuid=bytes(properties["uuid"]).hex() if "uuid" in properties else "",
            pci=cupy.cuda.runtime.deviceGetPCIBusId(number),
            compute_units=properties["multiProcessorCount"],
            clock_mhz=attributes.get("ClockRate", 0) // 1000 or None,
            memory_bytes=properties["totalGlobalMem"],
            max_alloc_bytes=properties["totalGlobalMem"],
            local_memory_bytes=properties["sharedMemPerBlockOptin"],
            max_work_group=properties["maxThreadsPerBlock"],
            hardware_thread=properties["warpSize"],
            last_level_cache_bytes=properties["l2CacheSize"],
            image2d_max_width=attributes["MaxTexture2DWidth"],
            image2d_max_height=attributes["MaxTexture2DHeight"],
            compute_capability=f"{capability[0]}.{capability[1]}",
            capabilities=capabilities,
        )

    def build(
        self, name: str, source: str, macros: Macros, target: str | None = None, options: Sequence[str] = ()
    ) -> Artifact:
        """Compile to a cubin for ``target`` (``sm_90``). Raises `CompileError` with the log."""
        return nvrtc.build(name, source, macros, target, options)

    @property
    def compiler(self) -> str:
        """Version of NVRTC, for keys of what it has compiled."""
        return nvrtc.version()

    def ptx(self, name: str, source: str, macros: Macros, target: str | None = None) -> str:
        """Compile to PTX alone, which takes a fraction of the time of a cubin. Raises `CompileError` with the log."""
        return nvrtc.build_ptx(name, source, macros, target)

    def assemble(self, name: str, ptx: str, target: str | None = None, local_bytes: int = 0) -> Artifact:
        """Turn PTX that was generated, not compiled, into a cubin; each launch says its local memory by itself."""
        flags = (f"-arch={target or nvrtc.TARGETS[-1]}",)
        cubin, log = assembler.assemble(name, ptx, flags)
        return Artifact(
            "cuda", name, cubin + b"\0", flags, digest(ptx, *flags), "cubin", log, {"source": ptx, "ptx": ptx}
        )

    def open(self, info: DeviceInfo) -> CudaDevice:
        """Open a device by the number in its id."""
        return CudaDevice(info, int(info.id.rsplit(":", 1)[1]))


def matrix_capabilities(capability: tuple[int, int]) -> list[str]:
    """Return which instructions for matrix units a compute capability has, for TF32, BF16 and 8-bit integers."""
    return ["mma"] * (capability >= (8, 0)) + ["wgmma"] * (capability == (9, 0))


def _driver_version() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)
    except Exception:
        return ""
