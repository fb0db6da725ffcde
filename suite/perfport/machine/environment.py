"""Where a run took place: host, versions, commit. Nothing that identifies a person or a network."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import psutil

PACKAGES = (
    "perfport", "numpy", "pyopencl", "cupy-cuda13x", "cupy-cuda12x", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12",
    "intel-opencl-rt", "scikit-learn", "torch", "pydantic",
)  # fmt: skip


def usable() -> set[int]:
    """Return the numbers of the cores that this process may use: all, unless it is pinned to some."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(usable())


def host() -> dict[str, Any]:
    """Processor, usable cores, memory in bytes, operating system, Python."""
    return {
        "cpu": _cpu_name(),
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "os": platform.platform(),
        "python": platform.python_version(),
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of the packages that take part in a measurement, where installed."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def commit() -> dict[str, Any] | None:
    """Commit of the source tree that this package runs from, and whether it has uncommitted changes.

    ``None`` for an installed wheel. A copy of the tree without its history names its commit in the environment
    variable ``PERFPORT_COMMIT`` (``HASH`` or ``HASH-dirty``).
    """
    if named := os.environ.get("PERFPORT_COMMIT"):
        return {"hash": named.removesuffix("-dirty"), "dirty": named.endswith("-dirty")}
    folder = Path(str(files("perfport"))).resolve()
    git = ["git", "-C", str(folder)]
    try:
        tracked = subprocess.run(
            [*git, "ls-files", "__init__.py"], capture_output=True, text=True, check=True, timeout=10
        )
        if not tracked.stdout.strip():
            return None
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        dirty = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {"hash": head.stdout.strip(), "dirty": bool(dirty.stdout.strip())}


def commit_name() -> str:
    """Return the commit as ``PERFPORT_COMMIT`` would name it, ``unknown`` where there is none."""
    known = commit()
    return f"{known['hash']}{'-dirty' if known['dirty'] else ''}" if known else "unknown"
