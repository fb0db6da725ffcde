"""The lock of a chip: one run of this suite at a time measures on it."""

from __future__ import annotations

import contextlib
import fcntl
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def chip_lock(chip: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a chip alone among runs of this suite on this machine; waits for a run that holds it."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", chip)
    path = Path(tempfile.gettempdir()) / f"perfport-{name}.lock"
    with contextlib.suppress(PermissionError):  # another user's: reading is enough for a lock
        path.touch(0o644)
    try:
        file = path.open()
    except PermissionError:
        say(f"cannot lock {chip}: runs of other users may disturb this one")
        yield
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"waiting for another run on {chip}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        file.close()
