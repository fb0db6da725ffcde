"""Which OpenCL runtimes are found, by folders of .icd files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfport.machine import platforms


@pytest.fixture
def icds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that stands for the system's, on a machine without pip-installed runtimes."""
    monkeypatch.delenv("PERFPORT_ICD_VENDORS", raising=False)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    monkeypatch.setattr(platforms, "_installed_file", lambda distribution, name: None)
    monkeypatch.setattr(platforms, "_nvidia", lambda: None)
    return tmp_path


def test_no_runtime_at_all(icds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert platforms.runtimes() == {}
    monkeypatch.setenv("OCL_ICD_VENDORS", str(icds / "absent"))
    assert platforms.runtimes() == {}


def test_icd_files_name_libraries(icds: Path) -> None:
    (icds / "one.icd").write_text("libone.so.1\n")
    (icds / "two.icd").write_text("  /opt/two/libtwo.so  \nmore\n")
    (icds / "empty.icd").write_text("\n")
    (icds / "readme.txt").write_text("libthree.so")
    (icds / "odd.icd").write_bytes(b"lib\xff.so")
    assert list(platforms.runtimes()) == ["odd", "one", "two"]
    assert platforms.runtimes()["one"] == "libone.so.1" and platforms.runtimes()["two"] == "/opt/two/libtwo.so"


def test_the_suites_own_variable_comes_first(icds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (icds / "own").mkdir()
    (icds / "own" / "mine.icd").write_text("libmine.so")
    monkeypatch.setenv("PERFPORT_ICD_VENDORS", str(icds / "own"))
    assert platforms.runtimes() == {"mine": "libmine.so"}


def test_installed_runtimes_are_added_unless_an_icd_names_them(icds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "_installed_file", lambda distribution, name: Path("/env/lib") / name)
    monkeypatch.setattr(platforms, "_nvidia", lambda: "/lib/libnvidia-opencl.so.1")
    found = {"intel-pip": "/env/lib/libintelocl.so", "nvidia-driver": "/lib/libnvidia-opencl.so.1"}
    assert platforms.runtimes() == found
    (icds / "intel.icd").write_text("/system/libintelocl.so")
    (icds / "nvidia.icd").write_text("libnvidia-opencl.so.1")
    assert platforms.runtimes() == {"intel": "/system/libintelocl.so", "nvidia": "libnvidia-opencl.so.1"}


def test_use_shows_the_loader_exactly_these(icds: Path) -> None:
    (icds / "one.icd").write_text("libone.so")
    platforms.use(["libb.so", "liba.so"])
    folder = Path(os.environ["OCL_ICD_VENDORS"])
    assert sorted(file.read_text() for file in folder.iterdir()) == ["liba.so", "libb.so"]
    platforms.use(["liba.so"])
    assert [file.read_text() for file in Path(os.environ["OCL_ICD_VENDORS"]).iterdir()] == ["liba.so"]
    assert platforms.runtimes() == {"one": "libone.so"}, "what was chosen does not change what is found"


def test_use_without_the_variable_still_finds_the_systems(icds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (icds / "system").mkdir()
    (icds / "system" / "s.icd").write_text("libsystem.so")
    monkeypatch.setattr(platforms, "SYSTEM_VENDORS", icds / "system")
    monkeypatch.delenv("OCL_ICD_VENDORS")
    platforms.use(["libother.so"])
    assert platforms.runtimes() == {"s": "libsystem.so"}


def test_a_driver_without_an_icd_is_found_on_the_library_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "NVIDIA_FOLDERS", ())
    monkeypatch.setattr(platforms.ctypes.util, "find_library", lambda name: None)
    monkeypatch.setenv("LD_LIBRARY_PATH", f":/nonexistent:{tmp_path}")
    assert platforms._nvidia() is None
    (tmp_path / platforms.NVIDIA_LIBRARY).write_text("")
    assert platforms._nvidia() == str(tmp_path / platforms.NVIDIA_LIBRARY)


@pytest.mark.parametrize(
    ("library", "usable", "asked", "threads"),
    [
        ("libpocl.so.2", 3, {}, {"POCL_CPU_MAX_CU_COUNT": "3", "POCL_MAX_PTHREAD_COUNT": "3"}),
        ("libpocl.so.2", 8, {}, {}),
        ("libother.so", 3, {}, {}),
        ("libpocl.so.2", 3, {"POCL_MAX_PTHREAD_COUNT": "2"}, {"POCL_MAX_PTHREAD_COUNT": "2"}),
    ],
)
def test_pocl_gets_the_cores_of_the_process_unless_asked_otherwise(
    icds: Path,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    usable: int,
    asked: dict[str, str],
    threads: dict[str, str],
) -> None:
    for name in platforms.POCL_THREADS:
        monkeypatch.setenv(name, "")  # so that what is set below is undone
        monkeypatch.delenv(name)
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(platforms, "usable_cores", lambda: usable)
    monkeypatch.setattr(platforms.os, "cpu_count", lambda: 8)
    platforms.use([f"/lib/{library}"])
    assert {name: os.environ[name] for name in platforms.POCL_THREADS if name in os.environ} == threads
