"""Where no cache can be written, a command works, says so once, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_runs import FAULTY, experiment
from second_user import as_root, nobody, shared_folder

WARNING = "perfport: caches are kept for this run alone ("


def without_caches(known: dict[str, str], top: Path, **more: str) -> dict[str, str]:
    """The environment of a user who has no home."""
    kept = {name: known[name] for name in ("PATH", "OCL_ICD_VENDORS", "LD_LIBRARY_PATH") if name in known}
    return {**kept, "TMPDIR": str(top), "PYTHONDONTWRITEBYTECODE": "1", **more}


def assert_well(done: Any, top: Path) -> None:
    """It worked, warned once, and left nothing."""
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(WARNING) == 1 and "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if "arning" in line] == []
    assert [path.name for path in top.glob("perfport-*") if path.suffix != ".lock"] == []


HOMES = {"nowhere": {"HOME": "/nonexistent"}, "unset": {}}


@as_root
@pytest.mark.parametrize("home", HOMES)
def test_devices_without_a_home(no_ceilings: dict[str, str], opencl_infos: list[Any], home: str) -> None:
    with shared_folder() as top:
        done = nobody(["-m", "perfport.cli", "devices", "--json"], without_caches(no_ceilings, top, **HOMES[home]))
        assert_well(done, top)
        works = {info["id"] for info in json.loads(done.stdout) if info["healthy"]}
        assert {info.id for info in opencl_infos} <= works


def test_devices_without_a_cache(
    no_ceilings: dict[str, str], opencl_infos: list[Any], perfport: Any, tmp_path: Path
) -> None:
    done = perfport("devices", "--json", env=without_caches(no_ceilings, tmp_path, HOME="/dev/null"))
    assert_well(done, tmp_path)
    works = {info["id"] for info in json.loads(done.stdout) if info["healthy"]}
    assert {info.id for info in opencl_infos} <= works


@pytest.fixture(params=["full", "read-only"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk that takes nothing."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", folder], check=False).returncode:
        pytest.skip("mounting a disk needs root")
    try:
        if request.param == "full":
            with pytest.raises(OSError, match="No space left"):
                (folder / "all").write_bytes(bytes(1 << 17))
        else:
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_devices_with_a_cache_on_a_disk_that_takes_nothing(
    no_ceilings: dict[str, str], opencl_infos: list[Any], perfport: Any, tmp_path: Path, disk: Path
) -> None:
    (tmp_path / "tmp").mkdir()
    env = without_caches(no_ceilings, tmp_path / "tmp", HOME=str(tmp_path), XDG_CACHE_HOME=str(disk))
    done = perfport("devices", "--json", env=env)
    assert_well(done, tmp_path / "tmp")
    works = {info["id"] for info in json.loads(done.stdout) if info["healthy"]}
    assert {info.id for info in opencl_infos} <= works


@as_root
@pytest.mark.minutes
def test_a_run_without_a_home(no_ceilings: dict[str, str], opencl: Any) -> None:
    """On each device: without a cache all its ceilings are swept, and PoCL would keep kernels at home."""
    with shared_folder() as top:
        file = experiment(top, {"variants": ["good"]}, report={"path": "report.md"})
        file.chmod(0o644)
        words = ["-m", "perfport.cli", "run", file, "--workloads", FAULTY, "--out", "out", "-d", opencl.info.id]
        done = nobody(words, without_caches(no_ceilings, top, HOME="/nonexistent"), cwd=top)
        assert_well(done, top)
        assert (top / "out" / "report.md").exists()


def test_a_cache_that_serves_is_not_spoken_of(
    perfport: Any, no_ceilings: dict[str, str], opencl_infos: list[Any], tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    done = perfport(
        "devices", env=without_caches(no_ceilings, tmp_path, HOME="/dev/null", XDG_CACHE_HOME=str(tmp_path / "cache"))
    )
    assert done.returncode == 0 and done.stderr == ""
