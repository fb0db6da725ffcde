"""Cheats, through the command as users have it: none may be ranked, and the honest variants beside them are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cheat_runs import ADVERSARY, HONEST, cheats, experiment, verdict

from perfport.model.device import DeviceInfo
from perfport.model.record import Record, Status
from perfport.store.results import Run

Verdicts = dict[tuple[str, str, str], Record]

REFUSED = {Status.WRONG, Status.IMPOSSIBLE, Status.UNSUPPORTED, Status.CRASHED, Status.COMPILE_ERROR}
NAMES = list(cheats())
PASSES = {}


@pytest.fixture(scope="module")
def verdicts(
    opencl_infos: list[DeviceInfo], perfport: Any, no_ceilings: dict[str, str], tmp_path_factory: Any
) -> Verdicts:
    """The record of each cheat, by device, problem and name: those that can share a run do."""
    records: Verdicts = {}
    together = [name for name in NAMES if not cheats()[name].alone]
    for names in (together, *([name] for name in NAMES if cheats()[name].alone)):
        folder: Path = tmp_path_factory.mktemp("cheats")
        file, out = experiment(folder, names), folder / "out"
        done = perfport("run", file, "--out", out, "--workloads", ADVERSARY, env=no_ceilings, cwd=folder)
        assert done.returncode in (0, 3, 4), done.stderr
        for record in Run(out).records:
            identity = record.identity
            records[record.identity.device_id if hasattr(identity, "device_id") else identity.device, identity.problem, identity.variant] = record
    return records
