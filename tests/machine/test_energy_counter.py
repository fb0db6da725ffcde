"""Counters of energy: a fake NVML library under the real bindings, and a fake powercap tree of real files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_powercap import RANGE, server, tell, zone
from hypothesis import given
from hypothesis import strategies as st

from perfport.machine import energy_counter
from perfport.machine.energy_counter import CounterError, NvmlCounter, RaplCounter, open_counter, risen
from perfport.model.device import DeviceInfo

UUID = "0123456789abcdef0123456789abcdef"
ADDRESS = "0000:3b:00.0"


def device(kind: str = "gpu", vendor: str = "NVIDIA Corporation", uuid: str = UUID, pci: str = ADDRESS) -> DeviceInfo:
    sizes = dict.fromkeys(("compute_units", "memory_bytes", "max_alloc_bytes"), 1)
    return DeviceInfo.model_validate({
        "id": "cuda:nvidia:0", "backend": "cuda", "platform": "P", "name": "N", "chip": "N", "vendor": vendor,
        "kind": kind, "uuid": uuid, "pci": pci, "local_memory_bytes": 1, "max_work_group": 1, **sizes,
    })  # fmt: skip


class Library:
    """NVML's functions as `ctypes` would call them: arguments of C, results by reference, a code in return."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.uuids, self.addresses = {f"GPU-{'01234567-89ab-cdef-0123-456789abcdef'}"}, {ADDRESS}
        self.millijoules: int | None = 5_000
        self.split: int | None = None
        self.driver = True
        self.asked: list[str] = []

    def nvmlInitWithFlags(self, flags: int) -> int:
        return int(self._nvml.NVML_SUCCESS if self.driver else self._nvml.NVML_ERROR_DRIVER_NOT_LOADED)

    def _found(self, name: Any, known: set[str]) -> int:
        self.asked.append(name.value.decode())
        return int(self._nvml.NVML_SUCCESS if self.asked[-1] in known else self._nvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetHandleByUUID(self, name: Any, handle: Any) -> int:
        return self._found(name, self.uuids)

    def nvmlDeviceGetHandleByPciBusId_v2(self, name: Any, handle: Any) -> int:
        return self._found(name, self.addresses)

    def nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int:
        if self.split is None:
            return int(self._nvml.NVML_ERROR_NOT_SUPPORTED)
        current._obj.value = self.split
        return int(self._nvml.NVML_SUCCESS)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, energy: Any) -> int:
        if self.millijoules is None:
            return int(self._nvml.NVML_ERROR_NOT_SUPPORTED)
        energy._obj.value = self.millijoules
        return int(self._nvml.NVML_SUCCESS)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """NVML's library, in the place of the one that the bindings would load."""
    nvml = pytest.importorskip("pynvml")
    fake = Library(nvml)
    monkeypatch.setattr(nvml, "nvmlLib", fake)
    monkeypatch.setattr(nvml, "_nvmlGetFunctionPointer_cache", {})
    yield fake


def test_a_gpu_is_known_by_its_uuid_and_counts_from_now_on_in_joules(library: Library) -> None:
    counter = open_counter(device())
    assert library.asked == ["GPU-01234567-89ab-cdef-0123-456789abcdef"] and counter.domain == "whole GPU (NVML)"
    library.millijoules = 7_500
    assert counter.joules() == pytest.approx(2.5)


@pytest.mark.parametrize("uuid", ["", "f" * 32])
def test_or_by_its_address_on_the_bus(library: Library, uuid: str) -> None:
    NvmlCounter(device(uuid=uuid))
    assert library.asked[-1] == ADDRESS
    with pytest.raises(CounterError, match="nvmlDeviceGetHandleByPciBusId"):
        NvmlCounter(device(uuid=uuid, pci="0000:99:00.0"))
    with pytest.raises(CounterError, match=r"knows no GPU of the UUID .* of cuda:nvidia:0"):
        NvmlCounter(device(uuid=uuid, pci=""))


def test_what_nvml_cannot_tell_is_said(library: Library) -> None:
    library.split = 1
    with pytest.raises(CounterError, match="split"):
        NvmlCounter(device())
    library.split = 0
    counter = NvmlCounter(device())
    library.millijoules = None
    with pytest.raises(CounterError, match="nvmlDeviceGetTotalEnergyConsumption: Not Supported"):
        counter.joules()
    with pytest.raises(CounterError, match="Not Supported"):
        NvmlCounter(device())
    library.driver = False
    with pytest.raises(CounterError, match="nvmlInit"):
        NvmlCounter(device())


def test_without_library_or_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = pytest.importorskip("pynvml")
    monkeypatch.setattr(nvml, "nvmlLib", None)
    monkeypatch.setattr(nvml, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(CounterError, match="NVML: nvmlInit: "):
        open_counter(device())
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(CounterError, match="nvidia-ml-py is missing"):
        open_counter(device())


@pytest.mark.parametrize("vendor", ["Advanced Micro Devices, Inc.", ""])
def test_a_device_of_another_vendor(vendor: str) -> None:
    with pytest.raises(CounterError, match=vendor or "an unknown vendor"):
        open_counter(device(vendor=vendor))


def test_packages_add_up_and_nothing_counts_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = server(tmp_path, 1000)
    monkeypatch.setattr(energy_counter, "POWERCAP", tmp_path)
    counter = open_counter(device("cpu", "GenuineIntel"))
    assert counter.domain == "processor packages (RAPL: package-0, package-1)" and counter.joules() == 0
    tell(packages[0], 1000 + 3_000_000)
    tell(packages[1], 1000 + 500_000)
    for folder in ("intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:2", "intel-rapl-mmio:0"):
        tell(tmp_path / folder, 10**10)
    assert counter.joules() == pytest.approx(3.5) and counter.joules() == pytest.approx(3.5)


def test_packages_that_are_listed_by_memory_alone_or_by_die(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl-mmio:0", "package-0-die-0")
    zone(tmp_path, "intel-rapl:1", "package-0-die-1")
    assert RaplCounter(tmp_path).domain.endswith("package-0-die-0, package-0-die-1)")


def test_a_counter_that_begins_again(tmp_path: Path) -> None:
    first, _ = server(tmp_path, RANGE - 10)
    counter = RaplCounter(tmp_path)
    tell(first, 999_990)
    assert counter.joules() == pytest.approx(1.0)
    tell(first, 1_999_990)
    assert counter.joules() == pytest.approx(2.0)


@given(
    span=st.integers(2, 2**40), start=st.floats(0, 1), shares=st.lists(st.floats(0, 0.5), max_size=30)
)  # fmt: skip
def test_rises_are_told_whatever_was_wrapped(span: int, start: float, shares: list[float]) -> None:
    rises = [int(share * span) for share in shares]
    told = [total % span for total in accumulate(rises, initial=int(start * span))]
    assert [risen(last, now, span) for last, now in pairwise(told)] == rises


@given(span=st.integers(4, 2**40), at=st.floats(0, 1), back=st.floats(0, 1, exclude_min=True))
def test_going_back_is_no_rise(span: int, at: float, back: float) -> None:
    last = int(at * span)
    now = last - max(1, int(back * (span // 2 - 1)))
    if now >= 0:
        with pytest.raises(CounterError, match="back"):
            risen(last, now, span)


def test_packages_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CounterError, match="no processor package is listed"):
        RaplCounter(tmp_path / "nowhere")
    zone(tmp_path, "intel-rapl:2", "psys")
    with pytest.raises(CounterError, match="no processor package is listed"):
        RaplCounter(tmp_path)
    path = zone(tmp_path, "intel-rapl:0", "package-0")
    for text, reason in (("none", "holds no number"), ("-1", "tells -1"), (str(RANGE + 1), "its range is")):
        (path / "energy_uj").write_text(text)
        with pytest.raises(CounterError, match=reason):
            RaplCounter(tmp_path)
    tell(path, 0)
    (path / "max_energy_range_uj").unlink()
    with pytest.raises(CounterError, match=r"max_energy_range_uj cannot be read \(No such file or directory\)"):
        RaplCounter(tmp_path)


def test_a_package_that_only_root_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server(tmp_path)
    denied = tmp_path / "intel-rapl:1" / "energy_uj"
    read = Path.read_text

    def refused(path: Path, *args: Any, **named: Any) -> str:
        if path == denied:
            raise PermissionError(13, os.strerror(13), str(path))
        return read(path, *args, **named)

    monkeypatch.setattr(Path, "read_text", refused)  # tests may run as root, who may read all
    with pytest.raises(CounterError, match=r"intel-rapl:1/energy_uj cannot be read \(Permission denied\)"):
        RaplCounter(tmp_path)
