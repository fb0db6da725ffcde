"""A runtime whose child is killed, hangs or dies: whoever asked for its devices is told why there are none."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def hanging(tmp_path: Path, no_ceilings: dict[str, str], opencl_infos: list[Any]) -> dict[str, str]:
    """An environment with one runtime that works and one, `libacme.so`, that hangs when it is loaded."""
    icds = tmp_path / "icds"
    icds.mkdir()
    os.mkfifo(icds / "libacme.so")  # opening it waits for a writer for ever
    (icds / "acme.icd").write_text(str(icds / "libacme.so"))
    (icds / "intel.icd").write_text("/nonexistent/libintelocl.so")  # so that it is not looked for
    (icds / "good.icd").write_text(opencl_infos[0].runtime)
    return {**no_ceilings, "OCL_ICD_VENDORS": str(icds)}


def child_of(process: subprocess.Popen[str], part: str) -> psutil.Process:
    """The child that asks a runtime for its devices, once there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # gone meanwhile
                words = child.cmdline()
                if "perfport.machine.discovery" in words and part in words[-1]:
                    return child
        time.sleep(0.02)
    raise AssertionError(f"no child asks for {part}")


def started(words: list[str], env: dict[str, str], cwd: Path) -> subprocess.Popen[str]:
    """The command in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "perfport.cli", *words], env=env, cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_killed_by_the_system(hanging: dict[str, str], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    process = started(["run", "quick", "-d", "opencl:acme-platform:0", "--out", out], hanging, tmp_path)
    child_of(process, "libacme.so").kill()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4, err
    assert "killed by signal 9, as the kernel does when memory runs out" in err and "libacme.so" in err
    assert "did you mean" not in err and "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_what_works_is_used_still(hanging: dict[str, str], tmp_path: Path, opencl_infos: list[Any]) -> None:
    process = started(["run", "quick", "-d", opencl_infos[0].id, "--dry-run"], hanging, tmp_path)
    child_of(process, "libacme.so").kill()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and "cases in" in out, err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_nobody_waits_for_a_runtime_that_hangs_when_the_command_is_killed(
    hanging: dict[str, str], tmp_path: Path
) -> None:
    process = started(["devices"], hanging, tmp_path)
    child = child_of(process, "libacme.so")
    deadline = time.monotonic() + 60
    folder = Path(hanging["TMPDIR"])
    while not any("libacme" in icd.read_text() for icd in folder.rglob("*.icd")):
        assert time.monotonic() < deadline, "the child does not come to its runtime"
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=60)
    assert psutil.wait_procs([child], timeout=60)[1] == []
