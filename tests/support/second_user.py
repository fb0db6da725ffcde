"""A second user of the machine, for tests of what users may do to each other."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
CAN_BE_NOBODY = (
    os.geteuid() == 0
    and subprocess.run(
        [sys.executable, "-c", "import perfport"], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=False,
        capture_output=True,
    ).returncode == 0
)  # fmt: skip
#: Nobody has to be able to read the suite, too.
as_root = pytest.mark.skipif(not CAN_BE_NOBODY, reason="needs root, and a tree that the user nobody can read")


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder as `/tmp` is: every user writes into it, and removes what is his own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


def nobody(
    words: Sequence[str | Path], env: dict[str, str], cwd: Path | str = "/"
) -> subprocess.CompletedProcess[str]:
    """Run a command as the user nobody."""
    return subprocess.run(
        list(map(str, words)), user=NOBODY, group=NOBODY, extra_groups=[], env=env, cwd=cwd, check=False,
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
