"""The lock of a chip in a folder that every user writes into."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from faulty_runs import command, experiment
from second_user import NOBODY, as_root, nobody, shared_folder

from perfport.machine.chip_lock import chip_lock
from perfport.model.errors import InfrastructureError

LOCK = "perfport-A-chip.lock"


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def plant(path: Path, kind: str) -> None:
    """Put something else in a lock's place."""
    if kind == "a symbolic link":
        path.symlink_to(path.with_name("victim"))
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "a device":
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        victim = path.with_name("victim")
        victim.write_text("what is his")
        path.hardlink_to(victim)


KINDS = ["a symbolic link", "a named pipe", "a folder", "a socket", "a device", "a file with further names"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_lock_is_refused(top: Path, kind: str) -> None:
    if kind == "a device" and os.geteuid():
        pytest.skip("making a device needs root")
    try:
        plant(top / LOCK, kind)
    except PermissionError as error:
        pytest.skip(f"{kind} cannot be made here: {error}")
    with pytest.raises(InfrastructureError, match=f"{LOCK}: the lock of a chip is expected here, and this is {kind} "):
        with chip_lock("A chip", pytest.fail):
            pytest.fail("was held")
    victim = top / "victim"
    assert not victim.exists() or victim.read_text() == "what is his", "made or changed through a link"


def test_a_run_says_what_is_wrong_instead_of_waiting(
    opencl_infos: list[Any], perfport: Any, no_ceilings: dict[str, str], tmp_path: Path
) -> None:
    info = opencl_infos[0]
    os.mkfifo(tmp_path / f"perfport-{re.sub('[^A-Za-z0-9]+', '-', info.chip)}.lock")
    arguments = command(experiment(tmp_path, {"variants": ["good"]}), info.id, tmp_path / "out")
    done = perfport(*arguments, env={**no_ceilings, "TMPDIR": str(tmp_path)}, cwd=tmp_path, timeout=120)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert ".lock: the lock of a chip is expected here, and this is a named pipe" in done.stderr
    assert "remove it, or let TMPDIR name another folder" in done.stderr


def test_a_lock_is_made_for_all_users_whatever_the_umask(top: Path) -> None:
    before = os.umask(0o077)
    try:
        with chip_lock("A chip", pytest.fail):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((top / LOCK).stat().st_mode) == 0o666
    assert (top / LOCK).read_bytes() == b""


def test_another_user_s_lock_is_never_opened_as_if_to_make_it(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In folders of all users kernels refuse that (fs.protected_regular), even to root."""
    (top / LOCK).touch()
    opened = os.open

    def protected(path: Any, flags: int, mode: int = 0o777, **given: Any) -> int:
        if flags & os.O_CREAT and os.path.lexists(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, mode, **given)

    monkeypatch.setattr(os, "open", protected)
    with chip_lock("A chip", pytest.fail):
        with (top / LOCK).open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


HOLD = """
import sys, time
from perfport.machine.chip_lock import chip_lock
with chip_lock("A chip", lambda text: print(text, flush=True)):
    print("held", flush=True)
    time.sleep(float(sys.argv[1]))
"""


@as_root
def test_users_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_folder() as shared:
        monkeypatch.setattr(tempfile, "tempdir", str(shared))
        env = {"TMPDIR": str(shared), "PATH": os.environ["PATH"]}
        before = os.umask(0o077)
        try:
            with chip_lock("A chip", pytest.fail):
                pass
        finally:
            os.umask(before)
        done = nobody([sys.executable, "-c", HOLD, "0"], env)
        assert done.stdout == "held\n", f"a lock of root's cannot be held: {done.stdout}{done.stderr}"

        said: list[str] = []
        other = subprocess.Popen(
            [sys.executable, "-c", HOLD, "3"], user=NOBODY, group=NOBODY, extra_groups=[], env=env, cwd="/", text=True,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        with other:
            assert other.stdout and other.stdout.readline() == "held\n"
            begun = time.monotonic()
            with chip_lock("A chip", said.append):
                assert other.wait(30) == 0 and time.monotonic() > begun
        assert said == ["waiting for another run on A chip"]
