"""Counters of energy: NVML's of an NVIDIA GPU, RAPL's of processor packages as Linux' powercap shows them."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any, Protocol

from ..model.device import DeviceInfo

POWERCAP = Path("/sys/class/powercap")
#: Names of the zones that are whole packages; ``core``, ``uncore`` and ``dram`` are parts or neighbours of them, and
#: ``psys`` is the platform that they are part of.
PACKAGE = re.compile(r"package-\d+(-die-\d+)?")


class CounterError(Exception):
    """A counter is not there, not readable or not to be trusted; the text says why."""


class EnergyCounter(Protocol):
    """A running sum of energy.

    Attributes
    ----------
    domain : str
        What consumes the energy that it counts.
    """

    domain: str

    def joules(self) -> float:
        """Return the energy in J since the counter was opened. Raises `CounterError`."""
        ...


def open_counter(info: DeviceInfo) -> EnergyCounter:
    """Open the counter of a device: all processor packages for a CPU.

    Raises
    ------
    CounterError
        With the reason why there is none.
    """
    if info.kind == "cpu":
        return RaplCounter(POWERCAP)
    if "nvidia" in info.vendor.lower():
        return NvmlCounter(info)
    raise CounterError(f"no energy counter is known for devices of {info.vendor or 'an unknown vendor'}")


class NvmlCounter:
    """NVML's total energy of a GPU, in mJ since its driver was loaded.

    Raises
    ------
    CounterError
        Where there is no NVML, no such GPU or no counter (before Volta), and on a GPU that is split (MIG): the counter
        is of all its parts.
    """

    domain = "whole GPU (NVML)"

    def __init__(self, info: DeviceInfo) -> None:
        try:
            import pynvml
        except ImportError:
            raise CounterError("NVML: the Python package nvidia-ml-py is missing (extra 'cuda')") from None
        self._nvml = pynvml
        self._ask("nvmlInit")
        self._handle = self._find(info)
        try:
            split = pynvml.nvmlDeviceGetMigMode(self._handle)[0]
        except pynvml.NVMLError:  # GPUs that cannot be split do not know the question
            split = False
        if split:
            raise CounterError("NVML: the GPU is split (MIG), and its counter is of all parts")
        self._first = self._ask("nvmlDeviceGetTotalEnergyConsumption", self._handle)

    def _find(self, info: DeviceInfo) -> Any:
        """Return the GPU by its UUID, or where NVML does not know that, by its address on the bus."""
        try:
            return self._ask("nvmlDeviceGetHandleByUUID", f"GPU-{uuid.UUID(hex=info.uuid)}")
        except (CounterError, ValueError):
            if not info.pci:
                raise CounterError(f"NVML: knows no GPU of the UUID {info.uuid or '(none)'} of {info.id}") from None
            return self._ask("nvmlDeviceGetHandleByPciBusId", info.pci)

    def _ask(self, function: str, *args: Any) -> Any:
        try:
            return getattr(self._nvml, function)(*args)
        except Exception as error:  # whatever a broken driver raises is its own affair, and no case's
            raise CounterError(f"NVML: {function}: {error}") from error

    def joules(self) -> float:
        """Return the energy in J since the counter was opened."""
        return float(self._ask("nvmlDeviceGetTotalEnergyConsumption", self._handle) - self._first) * 1e-3


class RaplCounter:
    """The sum of all processor packages, in µJ by package.

    Parameters
    ----------
    root : Path
        Linux' folder of power zones.

    Raises
    ------
    CounterError
        Where there is no package, or one that may not be read.
    """

    def __init__(self, root: Path) -> None:
        folders = _packages(root)
        if not folders:
            raise CounterError(f"RAPL: no processor package is listed in {root}")
        self._packages = [_Package(folder) for folder in folders.values()]
        self.domain = f"processor packages (RAPL: {', '.join(sorted(folders))})"

    def joules(self) -> float:
        """Return the energy in J since the counter was opened."""
        return sum(package.rise() for package in self._packages) * 1e-6


def _packages(root: Path) -> dict[str, Path]:
    """Return the zone of each package by its name; the registers' one where it is listed by memory (mmio), too."""
    zones: dict[str, Path] = {}
    for file in sorted(root.glob("*/name"), key=lambda file: ("mmio" in file.parent.name, file.parent.name)):
        try:
            name = file.read_text().strip()
        except OSError as error:
            raise CounterError(f"RAPL: {file} cannot be read ({error.strerror})") from error
        if PACKAGE.fullmatch(name):
            zones.setdefault(name, file.parent)
    return zones


class _Package:
    """One package: a counter that begins again at 0 when it has reached its range."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range = _number(folder / "max_energy_range_uj")
        self._last = self._read()
        self._risen = 0

    def _read(self) -> int:
        now = _number(self._file)
        if not 0 <= now <= self._range:
            raise CounterError(f"RAPL: {self._file} tells {now} µJ, and its range is {self._range}")
        return now

    def rise(self) -> int:
        """Return the energy in µJ since the counter was opened; asked for once in half of its range at least."""
        now = self._read()
        self._risen += risen(self._last, now, self._range)
        self._last = now
        return self._risen


def risen(last: int, now: int, span: int) -> int:
    """Return how far a counter rose that begins again at 0 when it has reached ``span``.

    Raises
    ------
    CounterError
        Where it went back: a rise by more than half of ``span`` cannot be told from that.
    """
    rise = now - last if now >= last else now - last + span
    if rise > span / 2:
        raise CounterError(f"RAPL: the counter went from {last} to {now} µJ, of {span}: back, or too far to tell")
    return rise


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except OSError as error:
        raise CounterError(f"RAPL: {file} cannot be read ({error.strerror})") from error
    except ValueError:
        raise CounterError(f"RAPL: {file} holds no number") from None
