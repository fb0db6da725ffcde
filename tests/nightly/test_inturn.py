"""Suspects measured in turn with the base's code: seen where the code is slower, cleared where the machine was."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from check_data import case, finding, store

from perfport import cli
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError
from perfport.model.record import Record
from perfport.nightly import check, checkout, inturn
from perfport.nightly.base import AgainstNights, AgainstRun
from perfport.nightly.check import check_run
from perfport.nightly.checkout import Checkout
from perfport.nightly.finding import Judgement, Outcome
from perfport.nightly.history import History
from perfport.nightly.inturn import ROUNDS, TURNS, measure_in_turn
from perfport.store.results import ENVIRONMENT, EXPERIMENT, RECORDS, Run

ROOT = Path(__file__).parents[2]
CODE = ("suite", "workloads", "device_profiles", "experiments", "results/published")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    """Run git there."""
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with this code and a workload of clocks in one commit; other load of the machine is no matter."""
    folder = tmp_path / "repository"
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


@pytest.mark.timeout(600)
@needs_git
def test_code_that_is_slower_is_seen_beside_the_code_of_the_base(
    repository: Path, tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str]
) -> None:
    """Really measured: one clock sleeps twenty times as long in the second commit, and the other does not."""
    file = tmp_path / EXPERIMENT
    file.write_text(yaml.safe_dump({
        "name": "clocks", "workers": 3, "check": {"threshold": 0.5}, "devices": [opencl_infos[0].id],
        "measurement": {"cache": "warm", "min_samples": 3, "max_samples": 3, "time_budget": 0.2},
        "experiments": [{
            "workload": "nightly", "problem": "double", "variants": ["clock_a", "clock_b"],
            "parameters": {"n": 64, "rounds": 1, "seconds": 0.01},
        }],
    }))  # fmt: skip

    def perfport(*words: object) -> subprocess.CompletedProcess[str]:
        variables = {"PYTHONPATH": str(repository / "suite"), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-m", "perfport.cli", *map(str, words), "--workloads", str(repository / "clocks")]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**no_ceilings, **variables}, cwd=tmp_path
        )

    before, after = tmp_path / "before", tmp_path / "after"
    assert (done := perfport("run", file, "--out", before)).returncode == 0, done.stderr
    first = git(repository, "rev-parse", "HEAD")
    sleep = "time.sleep(self.seconds * self.factor"
    replaced(repository / "clocks/nightly/variants.py", sleep, f"{sleep} * (20 if self.name == 'clock_b' else 1)")
    git(repository, "commit", "-qam", "second")
    assert (done := perfport("run", file, "--out", after)).returncode == 0, done.stderr
    checked = perfport("check", after, "--baseline", before, "--remeasure", "--format", "json")
    assert checked.returncode == 5, checked.stderr
    (found,) = (row for row in json.loads(checked.stdout) if " clock_b " in row["case"])
    assert found["outcome"] == "slower" and found["measured again"] == ROUNDS
    assert found["why"].startswith(f"compared with run before by its code (commit {first[:12]}), 5 times in turn")
    assert found["ratio"] < 0.2 and found["seconds before"] < 0.2 < found["seconds"] + 0.1
    ran = [json.loads((side / ENVIRONMENT).read_text()) for side in sorted(after.glob(f"{TURNS}/*/*/base"))]
    assert [each["commit"]["hash"] for each in ran] == [first] * ROUNDS
    assert not list(Path(no_ceilings["TMPDIR"]).glob("perfport-base-*")), "the code of the base is removed"
