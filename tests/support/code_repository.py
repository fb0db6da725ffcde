"""Repositories for tests: git, and one with the code of this suite."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perfport.nightly import checkout

ROOT = Path(__file__).parents[2]
CODE = ("suite", "workloads", "device_profiles", "experiments", "results/published")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    """Run git there."""
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def of_this_code(folder: Path) -> Path:
    """Make a repository with this code and a workload of clocks in one commit; to it, other load is no matter."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in CODE:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "tests" / "data" / "nightly", folder / "clocks" / "nightly", ignore=ignored)
    replaced(folder / "suite/perfport/measure/contention.py", "FOREIGN_LIMIT = 0.15", "FOREIGN_LIMIT = math.inf")
    replaced(folder / "suite/perfport/measure/contention.py", "import time\n", "import math\nimport time\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    checkout._link_packages(folder)
    return folder


def replaced(file: Path, old: str, new: str) -> None:
    """Put a text in the place of another."""
    held = file.read_text()
    assert old in held
    file.write_text(held.replace(old, new))
