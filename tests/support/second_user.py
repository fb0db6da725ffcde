"""A second user of the machine, for tests of what users may do to each other."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder as `/tmp` is: every user writes into it, and removes what is his own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


def _become(action: Callable[..., None], *given: Any) -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    action(*given)


@contextmanager
def meanwhile(action: Callable[..., None], *given: Any) -> Iterator[None]:
    """Let the user nobody do something in a process of his own."""
    process = multiprocessing.get_context("fork").Process(target=_become, args=(action, *given))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def does(action: Callable[..., None], *given: Any) -> bool:
    """Let the user nobody do something, and return whether it succeeds."""
    process = multiprocessing.get_context("fork").Process(target=_become, args=(action, *given))
    process.start()
    process.join(60)
    process.kill()
    return process.exitcode == 0


def nobody(words: Sequence[str | Path], env: dict[str, str], cwd: Path | str = "/") -> subprocess.CompletedProcess[str]:
    """Run this Python as the user nobody.

    It may lie where he cannot read, as in root's home: he is let through to read, and writes where he may.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    let = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    command = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *let, sys.executable, *words]
    return subprocess.run(
        list(map(str, command)), env=env, cwd=cwd, check=False, capture_output=True, text=True, timeout=240
    )
