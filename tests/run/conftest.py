"""Fixtures of the tests of runs: a device that serves, and one run of every planted fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faulty_runs import command, experiment


@pytest.fixture(scope="session")
def selector(opencl_infos: list[Any]) -> str:
    """The device that serves: what is tested is the harness."""
    return str(opencl_infos[0].id)


@pytest.fixture(scope="session")
def faults(selector: str, perfport: Any, no_ceilings: Any, tmp_path_factory: Any) -> tuple[Any, Path]:
    """One run of every variant, all in one group: its completed process and its folder."""
    folder = tmp_path_factory.mktemp("faults")
    file = experiment(folder, {})
    return perfport(*command(file, selector, folder / "out"), env=no_ceilings, cwd=folder), folder / "out"
