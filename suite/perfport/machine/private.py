"""Folders that no other user can write: what a process keeps for itself and its children, and caches.

On a shared machine others write into the temporary folder, too. Whatever is loaded or run from a name there that can be
guessed may be theirs, so nothing is: a process makes a folder of its own under a random name, and reads nothing that it
has not written. Caches hold code as well (of kernels, and pickles of PyOpenCL), and are used where they are the user's.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import platformdirs

from ..model.errors import InfrastructureError

#: Folders in a user's cache that this suite and what it loads make: each may be another's, as after a run as root.
USED = ("perfport", "pocl", "pyopencl", "pytools")
#: Caches with a variable of their own, and where each lies without it; nothing: in the temporary folder (PyTorch's, and
#: PoCL's where there is no home), under a name that can be guessed, so that the variable is always set.
ELSEWHERE = {
    "CUPY_CACHE_DIR": "~/.cupy", "CUDA_CACHE_PATH": "~/.nv", "TRITON_CACHE_DIR": "~/.triton",
    "MPLCONFIGDIR": "~/.config", "POCL_CACHE_DIR": "", "TORCHINDUCTOR_CACHE_DIR": "",
}  # fmt: skip
#: Environment variable: the folder of the process that started this one, within which this one makes its own.
AROUND = "PERFPORT_PRIVATE_FOLDER"


@functools.cache
def folder() -> Path:
    """Return a temporary folder of this process, which no other user can enter. Those of its children lie within.

    It is removed when the process ends; that of a killed process is removed by the next one that makes its own.

    Raises
    ------
    InfrastructureError
        If there is no folder for temporary files, or others can enter what is made there.
    """
    prefix = f"perfport-{os.geteuid()}-"
    around = Path(os.environ.get(AROUND, ""))
    try:
        if around.is_absolute() and around.exists() and not _entered_by_others(around):
            made = Path(tempfile.mkdtemp(dir=around))
        else:
            top = Path(tempfile.gettempdir())
            _remove_left_over(top, prefix)
            made = _make(top, prefix)
    except OSError as error:
        raise InfrastructureError(
            f"no temporary folder can be made ({error.strerror}); let TMPDIR name one that can be written"
        ) from None
    os.environ[AROUND] = str(made)
    atexit.register(_remove, made, os.getpid())
    return made


def _make(top: Path, prefix: str) -> Path:
    """Make a folder and hold a lock on it as long as this process lives, so that no other one removes it."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=top))
        if others := _entered_by_others(made):
            made.rmdir()
            raise InfrastructureError(
                f"{top}: others can enter folders that are made here ({others}); let TMPDIR name a folder on a file "
                "system that has owners and modes"
            )
        held = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)  # closed by the end of the process
        with suppress(OSError):  # where nothing can be locked, nobody removes what is left over either
            fcntl.flock(held, fcntl.LOCK_SH)
        if made.exists():
            return made
        os.close(held)  # taken for left over before it was locked


def _entered_by_others(path: Path) -> str:
    """Return owner and mode of what is no folder of this user alone; nothing for one that is."""
    status = path.lstat()
    alone = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
    return "" if alone else f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}"


def _remove_left_over(top: Path, prefix: str) -> None:
    """Remove this user's folders that no process holds any more."""
    for path in top.glob(f"{prefix}*"):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # not a folder, not ours, or gone
            continue
        try:
            if os.fstat(handle).st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # held
            continue
        finally:
            os.close(handle)


def _remove(made: Path, process: int) -> None:
    if os.getpid() == process:  # not a fork of it
        shutil.rmtree(made, ignore_errors=True)


@functools.cache
def settle_caches() -> str:
    """Move caches that cannot be written, or that others can write, for this process and its children.

    Where the user's cache folder does not serve, caches go to the private temporary folder; where it does, so do those
    that lie elsewhere by default and cannot be written there.

    Returns
    -------
    str
        What to tell the user, once; empty where every cache is where it was asked for.

    Raises
    ------
    InfrastructureError
        If no temporary folder can be made either.
    """
    base = platformdirs.user_cache_path()
    if base.is_absolute() and _existing(base).stat().st_uid in (0, os.geteuid()):  # in nobody else's home
        with suppress(OSError):
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if reason := next(filter(None, map(fault, (base, *(base / name for name in USED)))), "") or _full(base):
        base = folder() / "cache"
        base.mkdir(mode=0o700, exist_ok=True)
        os.environ["XDG_CACHE_HOME"] = str(base)
    reasons = [reason] if reason else []
    for variable, default in ELSEWHERE.items():
        chosen = os.environ.get(variable)
        if why := fault(Path(chosen or os.path.expanduser(default))):  # noqa: PTH111 (no error without a home)
            os.environ[variable] = str(base / variable.partition("_")[0].lower())
            reasons += [f"{variable}: {why}"] if chosen else []
    if not reasons:
        return ""
    return (
        f"caches are kept for this run alone ({'; '.join(reasons)}): kernels are compiled and ceilings measured anew "
        "each time; let XDG_CACHE_HOME name a folder that you alone can write"
    )


def fault(path: Path) -> str:
    """Return why a folder does not serve as a cache; empty if it does, or can be made.

    It has to be this user's, and nobody else may write into it, unless a folder around it lets nobody else in.
    """
    if not path.is_absolute():
        return f"{path} is no absolute path"
    there = _existing(path)
    if not there.is_dir():
        return f"{there} is no folder"
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return f"{there} cannot be written"
    status = there.stat()
    if status.st_uid != os.geteuid():
        return f"{there} belongs to another user (number {status.st_uid})"
    closed = any(not part.stat().st_mode & 0o077 for part in (there, *there.parents))
    if status.st_mode & 0o022 and not closed:
        return f"others can write into {there}"
    return ""


def _full(base: Path) -> str:
    """Return why nothing more can be written into a folder that may be written; empty if something can."""
    try:
        with tempfile.TemporaryFile(dir=base) as file:
            file.write(bytes(4096))
    except OSError as error:
        return f"{base} cannot be written: {error.strerror}"
    return ""


def _existing(path: Path) -> Path:
    """Return the folder itself, or the nearest around it that exists; links are followed."""
    path = Path(os.path.realpath(path))
    return next(part for part in (path, *path.parents) if os.path.lexists(part))


@functools.cache
def prepare() -> None:
    """Do what has to be done, once, before runtimes are loaded in children; say where caches had to be moved.

    Raises
    ------
    InfrastructureError
        If no private folder can be made.
    """
    folder()
    if text := settle_caches():
        say(f"perfport: {text}", error=True)
