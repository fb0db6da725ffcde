"""The lock of a chip in a folder that every user writes into."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import re
import socket
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from faulty_runs import command, experiment
from second_user import as_root, does, meanwhile, shared_folder

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
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:  # the address has room for 107 bytes
            made.bind(path.name)
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
    expected = f"{LOCK}: the lock of a chip is expected here, and this is {kind} "
    with pytest.raises(InfrastructureError, match=expected), chip_lock("A chip", pytest.fail):
        pytest.fail("was held")
    victim = top / "victim"
    assert not victim.exists() or victim.read_text() == "what is his", "made or changed through a link"


def test_a_run_says_what_is_wrong_instead_of_waiting(
    opencl_infos: list[Any], perfport: Any, no_ceilings: dict[str, str], tmp_path: Path
) -> None:
    info = opencl_infos[0]
    os.mkfifo(tmp_path / f"perfport-{re.sub('[^A-Za-z0-9]+', '-', info.processor)}.lock")
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
    with chip_lock("A chip", pytest.fail), (top / LOCK).open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def hold(begun: Any, chip: str, seconds: float) -> None:
    """Hold a chip for a while; a lock that cannot be had, or has to be waited for, is an error."""

    def refuse(text: str) -> None:
        raise AssertionError(text)

    with chip_lock(chip, refuse):
        begun.set()
        time.sleep(seconds)


@as_root
def test_users_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_folder() as shared:
        monkeypatch.setattr(tempfile, "tempdir", str(shared))
        begun = multiprocessing.get_context("fork").Event()
        before = os.umask(0o077)
        try:
            with chip_lock("A chip", pytest.fail):
                assert not does(hold, begun, "A chip", 0), "two at once"
        finally:
            os.umask(before)
        assert does(hold, begun, "A chip", 0), "a lock that root made cannot be held by another user"

        begun.clear()
        said: list[str] = []
        with meanwhile(hold, begun, "A chip", 2):
            assert begun.wait(60)
            with chip_lock("A chip", said.append):
                pass
        assert said == ["waiting for another run on A chip"]
