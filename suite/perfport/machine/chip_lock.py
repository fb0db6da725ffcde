"""The lock of a chip: one run of this suite at a time measures on it, whoever's it is.

The file lies in the temporary folder, where every user can put anything under its name. It is opened for reading,
never written, and only if it is an ordinary file with no other name: a lock on a linked file would be one on what it
links to.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ..model.errors import InfrastructureError

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


@contextlib.contextmanager
def chip_lock(chip: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a chip alone among runs of this suite on this machine; waits for a run that holds it.

    Parameters
    ----------
    chip : str
        `DeviceInfo.processor` of each of its devices.
    say : callable
        Told what is waited for, or cannot be had.

    Raises
    ------
    InfrastructureError
        If something else than a lock has its name.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", chip)
    path = Path(tempfile.gettempdir()) / f"perfport-{name}.lock"
    with contextlib.ExitStack() as stack:
        try:
            handle = _open(path)
            stack.callback(os.close, handle)
            _hold(handle, lambda: say(f"waiting for another run on {chip}"))
        except OSError as error:
            say(f"cannot lock {chip}: runs of other users may disturb this one ({path}: {error.strerror})")
        yield


def _hold(handle: int, waiting: Callable[[], None]) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(handle, fcntl.LOCK_EX)


def _open(path: Path) -> int:
    """Open a lock for reading, which is all that locking needs, and make it where there is none."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            _check(path, path.lstat())  # before it is opened: that alone may do something to a device
            handle = os.open(path, _OPEN)
            break
        # Only a file that is missing is made: kernels refuse O_CREAT on another user's (fs.protected_regular).
        with contextlib.suppress(FileExistsError):
            handle = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(handle, 0o666)  # whatever the umask: other users lock it, too
            break
    try:
        _check(path, os.fstat(handle))
    except InfrastructureError:
        os.close(handle)
        raise
    return handle


def _check(path: Path, status: os.stat_result) -> None:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "")
    if status.st_nlink > 1 and not kind:
        kind = "a file with further names"
    if kind:
        raise InfrastructureError(
            f"{path}: the lock of a chip is expected here, and this is {kind} of user number {status.st_uid}; "
            "remove it, or let TMPDIR name another folder"
        )
