"""One run at a time measures on a chip, whoever's it is."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

from perfport.machine.chip_lock import chip_lock


def test_a_chip_is_held_by_one_run_at_a_time() -> None:
    said: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with chip_lock("A test's own chip", said.append):
            entered.set()

    with chip_lock("A test's own chip", said.append):
        thread = threading.Thread(target=second)
        thread.start()
        deadline = time.monotonic() + 30
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert said == ["waiting for another run on A test's own chip"] and not entered.is_set()
    thread.join(30)
    assert entered.is_set()


def test_a_chip_is_locked_among_users_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that keeps the lock belongs to whoever came first."""
    said: list[str] = []
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", shared)
        with chip_lock("A chip of all users", said.append):
            pass
        if root:
            os.seteuid(65534)
        else:
            (Path(shared) / "perfport-A-chip-of-all-users.lock").chmod(0o444)
        try:
            with chip_lock("A chip of all users", said.append):
                assert not said
        finally:
            if root:
                os.seteuid(0)
