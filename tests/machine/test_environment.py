"""Where a run took place: commit and versions, and nothing that identifies anybody."""

from __future__ import annotations

import getpass
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from perfport.machine import environment


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the package in it."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.delenv("PERFPORT_COMMIT", raising=False)
    (tmp_path / "__init__.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m")
    monkeypatch.setattr(environment, "files", lambda name: tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    """Run git there."""
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout


def test_the_commit_and_whether_it_is_all(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    assert environment.commit() == {"hash": head, "dirty": False}
    (repository / "new.py").write_text("")
    assert environment.commit() == {"hash": head, "dirty": False}, "what git does not know is not of the package"
    (repository / "__init__.py").write_text("# changed")
    assert environment.commit() == {"hash": head, "dirty": True}


def test_a_wheel_is_in_no_repository_even_beside_one(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = repository / "site-packages"
    installed.mkdir()
    monkeypatch.setattr(environment, "files", lambda name: installed)
    assert environment.commit() is None


@pytest.mark.parametrize(("named", "dirty"), [("abc123", False), ("abc123-dirty", True)])
def test_a_copy_without_history_names_its_commit(monkeypatch: pytest.MonkeyPatch, named: str, dirty: bool) -> None:
    monkeypatch.setenv("PERFPORT_COMMIT", named)
    assert environment.commit() == {"hash": "abc123", "dirty": dirty}


def test_versions_of_what_is_installed() -> None:
    versions = environment.versions()
    assert versions["numpy"] == np.__version__ and set(versions) <= set(environment.PACKAGES)


def test_the_host_says_what_it_is_and_not_whose() -> None:
    host = environment.host()
    assert set(host) == {"cpu", "cores", "memory_bytes", "os", "python"} and host["cores"] >= 1
    assert platform.node() not in str(host) or platform.node() in platform.platform()
    assert getpass.getuser() not in {str(value) for value in host.values()}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not pin processes")
def test_cores_are_those_that_the_process_may_use() -> None:
    program = (
        "import os; from perfport.machine.environment import usable_cores; before = usable_cores();"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(before, usable_cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(environment.usable_cores()), "1"]


@pytest.mark.parametrize("named", ["abc123", "abc123-dirty"])
def test_the_name_of_a_commit_says_whether_it_is_all(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("PERFPORT_COMMIT", named)
    assert environment.commit_name() == named
    monkeypatch.setattr(environment, "commit", lambda: None)
    assert environment.commit_name() == "unknown"
