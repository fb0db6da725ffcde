"""A small run that commands on stored results share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from commands import experiment

FAULTY = Path(__file__).parents[1] / "data" / "faulty"


@pytest.fixture(scope="package")
def stored(perfport: Any, no_ceilings: Any, opencl_infos: list[Any], tmp_path_factory: Any) -> Path:
    """A folder with a small run below ``results``: one good case, one that does not compile."""
    folder = tmp_path_factory.mktemp("stored")
    study = {"workload": "faulty", "problem": "double", "variants": ["good", "no_compile"], "tunables": {"shade": [2]}}
    path = experiment(folder, study=study, devices=[opencl_infos[0].id], report={"path": "reports/test.md"}, seed=3)
    done = perfport("run", path, "--workloads", FAULTY, env=no_ceilings, cwd=folder)
    assert done.returncode == 4, done.stderr
    assert re.search(r"^faulty +[01]/2 ok, 1 failed(, 1 contended)? +double ", done.stdout, re.MULTILINE)
    return Path(folder)
