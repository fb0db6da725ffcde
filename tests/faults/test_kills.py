"""Some seeded kills of everything that writes results; `tests/benchmarks/kill_runs.py` kills as often as is wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.any_device, pytest.mark.minutes]

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "kill_runs.py"


@pytest.mark.timeout(600)  # on a machine that is busy with other tests
def test_nothing_that_was_stored_is_lost_changed_or_doubled(no_ceilings: dict[str, str]) -> None:
    """In a process of its own: what it kills are forks of it, and a runtime that others have loaded does not fork."""
    command = [sys.executable, str(SCRIPT), "8", "--seed", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=no_ceilings)
    assert done.returncode == 0, done.stderr
    assert "8 kills of runs" in done.stdout and "600 records merged" in done.stdout, done.stdout
