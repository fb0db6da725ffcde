"""What a ceiling could be at most: by the device's data sheet, or by clock, units and rate per clock."""

from __future__ import annotations

from pathlib import Path

from ...machine.device_profile import match_profile
from ...model.device import DeviceInfo

#: Results per clock and multiprocessor: NVIDIA, CUDA C++ Programming Guide, throughput of native arithmetic
#: instructions (lanes for FMA, 32-bit multiply-add, special functions), by compute capability.
LANES = {"7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128}
INTEGER_LANES, SPECIAL_LANES, BANK_BYTES, L1_BYTES = 64, 16, 128, 128
#: Dense operations per clock and multiprocessor: NVIDIA, A100 and H100 Tensor Core GPU Architecture (white papers).
MATRIX = {
    "8.0": {"tf32_mma": 1024, "bf16_mma": 2048, "int8_mma": 4096},
    "9.0": {"tf32_mma": 2048, "bf16_mma": 4096, "int8_mma": 8192},
}
FMA_UNITS = 2  # of a CPU core: assumed, true of most server cores since 2013


def theory(name: str, info: DeviceInfo) -> tuple[float | None, str]:
    """Return the most that a ceiling can be and how that was computed; ``(None, "")`` where nobody knows.

    Parameters
    ----------
    name : str
        The ceiling.
    info : DeviceInfo
    """
    if info.kind == "cpu":
        return _of_cpu(name, info)
    profile = match_profile(info.name, info.kind)
    if profile:
        sheet = {
            **dict.fromkeys(("dram_read", "dram_copy", "dram_triad"), profile.bandwidth),
            "fp32_fma": profile.fp32,
            "l2_read": profile.ceilings["l2_bandwidth"].value,
        }
        if (link := profile.ceilings.get("host_bandwidth")) and link.value:
            sheet |= dict.fromkeys(("h2d_pageable", "h2d_pinned", "d2h_pageable", "d2h_pinned"), link.value)
        if known := sheet.get(name):
            return known, f"profile {profile.name}"
    rate = _per_clock(name, info.compute_capability or "")
    if rate and info.clock_mhz:
        value = rate * info.compute_units * info.clock_mhz * 1e6
        return value, f"{rate:g} per clock x {info.compute_units} units x {info.clock_mhz} MHz"
    return None, ""


def _per_clock(name: str, capability: str) -> float | None:
    """What one multiprocessor does per clock, in the ceiling's unit."""
    if name in MATRIX.get(capability, {}):
        return MATRIX[capability][name]
    if capability not in LANES:
        return None
    return {
        "fp32_fma": 2 * LANES[capability],
        "int32_mad": 2 * INTEGER_LANES,
        "exp": SPECIAL_LANES,
        "rsqrt": SPECIAL_LANES,
        "l1_read": L1_BYTES,
        "local_read": BANK_BYTES,
        "local_conflict": BANK_BYTES / 32,
        "gather_local": BANK_BYTES / 4,  # if no two lanes met in a bank
        "gather_l1": L1_BYTES / 4,  # if all lanes met in a line
    }.get(name)


def _of_cpu(name: str, info: DeviceInfo) -> tuple[float | None, str]:
    clock, lanes = _cpu_clock(), _cpu_lanes()
    if name != "fp32_fma" or not clock or not lanes:
        return None, ""
    basis = f"{info.compute_units} cores x {FMA_UNITS} FMA units (assumed) x {lanes} lanes x {clock / 1e6:.0f} MHz"
    return 2.0 * info.compute_units * FMA_UNITS * lanes * clock, basis


def _cpu_clock() -> float | None:
    """The highest clock that the operating system tells, in Hz."""
    try:
        return 1e3 * float(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").read_text())
    except (OSError, ValueError):
        return max((1e6 * float(value) for value in _cpuinfo("cpu MHz")), default=None)


def _cpu_lanes() -> int | None:
    flags = set(next(iter(_cpuinfo("flags")), "").split())
    return 16 if "avx512f" in flags else 8 if {"avx2", "fma"} <= flags else None


def _cpuinfo(key: str) -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    return [value.strip() for line in lines for name, _, value in [line.partition(":")] if name.strip() == key]
