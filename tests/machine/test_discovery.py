"""A runtime that fails in whatever way is listed with its reason, and the others work on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfport.backend import OpenDevice
from perfport.machine import discovery, platforms
from perfport.model.device import DeviceInfo


@pytest.fixture
def icds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the system's; no pip-installed runtime is added."""
    folder = tmp_path / "icds"
    folder.mkdir()
    monkeypatch.delenv("PERFPORT_ICD_VENDORS", raising=False)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(folder))
    monkeypatch.setattr(platforms, "_installed_file", lambda distribution, name: None)
    monkeypatch.setattr(platforms, "_nvidia", lambda: None)
    return folder


def opencl_found() -> list[DeviceInfo]:
    """What discovery finds, GPUs of the CUDA backend aside."""
    return [info for info in discovery.discover() if info.backend == "opencl"]


def test_what_is_healthy_says_who_it_is(opencl_infos: list[DeviceInfo]) -> None:
    assert len({info.id for info in opencl_infos}) == len(opencl_infos)
    for info in opencl_infos:
        assert info.id.startswith("opencl:") and info.healthy and not info.reason and info.runtime
        assert info.name and info.driver and info.compute_units > 0 and info.max_work_group > 0
        assert 0 < info.max_alloc_bytes <= info.memory_bytes and info.local_memory_bytes >= 16 << 10
        assert ("images" in info.capabilities) == (info.image2d_max_width > 0)


def test_no_runtime_no_device(icds: Path) -> None:
    assert opencl_found() == []


@pytest.mark.parametrize(
    "content", [None, b"", b"this is no library", b"\x7fELF" + bytes(60)], ids=["absent", "empty", "text", "elf"]
)
def test_a_runtime_that_cannot_be_loaded(icds: Path, content: bytes | None, opencl_infos: list[DeviceInfo]) -> None:
    library = icds / "libplanted.so"
    if content is not None:
        library.write_bytes(content)
    (icds / "planted.icd").write_text(str(library))
    (icds / "good.icd").write_text(opencl_infos[0].runtime)
    broken, *good = sorted(opencl_found(), key=lambda info: info.healthy)
    assert (broken.healthy, broken.platform) == (False, "planted") and str(library) in broken.reason
    assert good and all(info.healthy for info in good)


def test_a_runtime_that_crashes_its_process(icds: Path, opencl_infos: list[DeviceInfo]) -> None:
    # A library cut after its headers: the loader maps it and touches pages that have no file behind them.
    import pyopencl._cl

    whole = Path(pyopencl._cl.__file__).read_bytes()
    library = icds / "libcrash.so"
    library.write_bytes(whole[:4096])
    (icds / "crash.icd").write_text(str(library))
    (icds / "good.icd").write_text(opencl_infos[0].runtime)
    broken, *good = sorted(opencl_found(), key=lambda info: info.healthy)
    assert not broken.healthy and "killed by signal" in broken.reason and str(library) in broken.reason
    assert good and all(info.healthy for info in good)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_runtime_that_hangs(icds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "CHECK_TIMEOUT_S", 4.0)
    library = icds / "libhang.so"
    os.mkfifo(library)  # opening it waits for a writer for ever
    (icds / "hang.icd").write_text(str(library))
    (broken,) = opencl_found()
    assert not broken.healthy and broken.reason == "did not answer within 4 s"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import os; os.kill(os.getpid(), 11)", "killed by signal 11"),
        ("import sys; sys.exit('planted words')", "fails to load: planted words"),
        ("raise SystemExit(9)", "exit code 9"),
        ("print('chatter')", "fails to load"),
    ],
)
def test_a_child_that_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    child = tmp_path / "child.sh"
    child.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{script}"\n')
    child.chmod(0o755)
    monkeypatch.setattr(discovery.sys, "executable", str(child))
    (broken,) = discovery.ask_child("opencl", "planted", "libplanted.so")
    assert not broken.healthy and expected in broken.reason and broken.id == "opencl:planted:0"


def test_two_runtimes_of_one_family_get_ids_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    one = discovery._broken("pocl", "opencl", "x")
    monkeypatch.setattr(platforms, "runtimes", lambda: {"a": "liba.so", "b": "libb.so"})
    monkeypatch.setattr(discovery, "ask_child", lambda backend, name, library: [one] if backend == "opencl" else [])
    assert [info.id for info in discovery.discover()] == ["opencl:pocl:0", "opencl:pocl:1"]


def test_the_check_fails_where_a_kernel_gives_wrong_results_or_does_not_build(
    device: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert discovery.check(device.info.backend, device.info).healthy
    source = discovery._PROBE
    monkeypatch.setattr(discovery, "_PROBE", source.replace("* 2.0f", "* 3.0f"))
    assert discovery.check(device.info.backend, device.info).reason == "a trivial kernel gives wrong results"
    monkeypatch.setattr(discovery, "_PROBE", source.replace("x[i] *", "planted *"))
    found = discovery.check(device.info.backend, device.info)
    assert not found.healthy and found.reason.startswith("a trivial kernel fails: ") and len(found.reason) > 30


def test_selectors(opencl_infos: list[DeviceInfo]) -> None:
    named = {"id": "opencl:pocl:1", "backend": "opencl", "platform": "Portable", "name": "Chip X"}
    cpu, gpu = (opencl_infos[0].model_copy(update={**named, "kind": kind}) for kind in ("cpu", "gpu"))
    for text in ("all", "opencl", "opencl:pocl:1", "opencl:pocl", "POCL", "portable"):
        assert cpu.matches(text) and gpu.matches(text)
    assert cpu.matches("cpu") and gpu.matches("gpu") and gpu.matches("chip x")
    for text in ("cuda", "opencl:pocl:0", "opencl:poc", "intel"):
        assert not cpu.matches(text) and not gpu.matches(text)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_pinned_process_has_its_cores_alone(opencl_infos: list[DeviceInfo]) -> None:
    """As under taskset, Slurm or a container's cpuset: no runtime starts a thread for each of the machine's cores."""
    script = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from perfport.machine import discovery, environment;"
        "found = [info for info in discovery.discover() if info.kind == 'cpu' and info.healthy];"
        "print(environment.host()['cores'], *{info.compute_units for info in found}, len(found))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    pinned = [info for info in opencl_infos if info.kind == "cpu"]
    assert done.stdout.split() == ["1", *(["1"] if pinned else []), str(len(pinned))]
