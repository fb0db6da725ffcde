"""Folders that no other user can write, and caches that cannot be used."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfport.machine import private
from perfport.model.errors import InfrastructureError

MAKE = "from perfport.machine import private; print(private.folder(), flush=True); input()"


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of its own, and a process that has made nothing in it yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for function in (private.folder, private.settle_caches, private.prepare):
        function.cache_clear()
    for variable in ("XDG_CACHE_HOME", private.AROUND, *private.ELSEWHERE):
        monkeypatch.setenv(variable, "")  # so that it is put back, whatever the test sets
        monkeypatch.delenv(variable)
    yield tmp_path
    for function in (private.folder, private.settle_caches, private.prepare):
        function.cache_clear()


def holder(top: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that has made its folder, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE], env={**os.environ, "TMPDIR": str(top)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_this_process_s_alone_and_goes_with_it(top: Path) -> None:
    process, made = holder(top)
    status = made.lstat()
    assert made.parent == top and status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700
    process.communicate("\n")
    assert not made.exists()
    assert private.folder() == private.folder()


def test_a_child_s_folder_lies_within_and_goes_even_if_it_is_killed(top: Path) -> None:
    own = private.folder()
    child, made = holder(top)
    assert made.parent == own and stat.S_IMODE(made.lstat().st_mode) == 0o700
    child.kill()
    child.communicate()
    private._remove(own, os.getpid())
    assert list(top.iterdir()) == []


@pytest.mark.parametrize("kind", ["open", "gone", "link"])
def test_a_folder_around_is_used_only_if_it_is_private(top: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    around, victim = top / "around", top / "victim"
    victim.mkdir(mode=0o700)
    if kind == "open":
        around.mkdir()
        around.chmod(0o755)
    elif kind == "link":
        around.symlink_to(victim)
    monkeypatch.setenv(private.AROUND, str(around))
    assert private.folder().parent == top and list(victim.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_another_holds_is_not(top: Path) -> None:
    killed, left = holder(top)
    assert left.parent == top
    killed.kill()
    killed.communicate()
    alive, held = holder(top)
    try:
        assert not left.exists() and held.exists(), "the second process removed what the first one left"
        own = private.folder()
        assert held.exists() and own.exists() and own != held
    finally:
        alive.communicate("\n")


def test_only_own_folders_are_taken_for_left_over(top: Path) -> None:
    prefix = f"perfport-{os.geteuid()}-"
    victim = top / "victim"
    victim.mkdir()
    (victim / "file").write_text("")
    (top / f"{prefix}link").symlink_to(victim)
    (top / f"{prefix}file").write_text("")
    os.mkfifo(top / f"{prefix}fifo")
    (top / "perfport-other").mkdir()
    before = set(top.rglob("*"))
    private.folder()
    assert before <= set(top.rglob("*"))


def test_a_file_system_without_modes_is_refused(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tempfile.mkdtemp

    def without_modes(**given: str) -> str:
        path = Path(made(**given))
        path.chmod(0o777)
        return str(path)

    monkeypatch.setattr(tempfile, "mkdtemp", without_modes)
    with pytest.raises(InfrastructureError, match=r"others can enter folders that are made here .* mode 777"):
        private.folder()
    assert list(top.iterdir()) == []


def test_without_any_temporary_folder(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(top / "absent"))
    with pytest.raises(InfrastructureError, match="let TMPDIR name one"):
        private.folder()


def test_caches_that_serve_stay(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = top / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert private.settle_caches() == ""
    assert "XDG_CACHE_HOME" not in os.environ and "CUPY_CACHE_DIR" not in os.environ
    assert stat.S_IMODE((home / ".cache").stat().st_mode) == 0o700


@pytest.mark.parametrize("hindrance", ["file", "relative", "foreign part"])
def test_caches_that_do_not_serve_go_to_the_private_folder(
    top: Path, monkeypatch: pytest.MonkeyPatch, hindrance: str
) -> None:
    home = top / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    if hindrance == "file":
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    elif hindrance == "relative":
        monkeypatch.setattr(private.platformdirs, "user_cache_path", lambda: Path("~/.cache"))
    else:
        (home / ".cache").mkdir(mode=0o700)
        (home / ".cache" / "pytools").write_text("")
    said = private.settle_caches()
    assert said.startswith("caches are kept for this run alone (") and "XDG_CACHE_HOME" in said
    assert Path(os.environ["XDG_CACHE_HOME"]).parent == private.folder()
    assert Path(os.environ["POCL_CACHE_DIR"]).parent == Path(os.environ["XDG_CACHE_HOME"])


def test_a_cache_that_a_variable_names_is_moved_beside_the_others(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(top))
    monkeypatch.setenv("POCL_CACHE_DIR", "/dev/null/pocl")
    assert "POCL_CACHE_DIR: /dev/null is no folder" in private.settle_caches()
    assert os.environ["POCL_CACHE_DIR"] == str(top / ".cache" / "pocl")


def test_what_makes_a_folder_unfit(top: Path) -> None:
    top.chmod(0o755)
    folder = top / "cache"
    assert private.fault(folder) == "", "it can be made"
    folder.mkdir(mode=0o700)
    assert private.fault(folder) == ""
    folder.chmod(0o1777)
    closed = any(not part.stat().st_mode & 0o077 for part in folder.parents)
    assert private.fault(folder) == ("" if closed else f"others can write into {folder}")
    top.chmod(0o700)
    assert private.fault(folder) == "", "nobody else comes so far"
    (top / "link").symlink_to("/dev/null")
    assert private.fault(top / "link") == "/dev/null is no folder"
    assert private.fault(Path("cache")) == "cache is no absolute path"


def test_a_warning_is_said_once(top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    for _ in range(2):
        private.prepare()
    assert capsys.readouterr().err.count("perfport: caches are kept for this run alone (/dev/null is no folder)") == 1
