"""What a device takes beyond what its runtime states, found by trials in child processes.

A trial that goes wrong can take its process, or the device in it, along: the others go on in a fresh one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from .. import backend
from ..backend.opencl_trials import trials, with_outcomes
from ..model.device import DeviceInfo
from ..model.errors import CompileError, UnsupportedError
from . import platforms
from .children import die_with_parent

TIMEOUT_S = 60.0


def tried(info: DeviceInfo, environment: Mapping[str, str] | None = None) -> DeviceInfo:
    """Return a device with the capabilities and limits that trials show; as it is where there is nothing to try.

    Parameters
    ----------
    info : DeviceInfo
        A healthy device.
    environment : mapping, optional
        Variables of the child processes, beside this one's.
    """
    left = [f"{trial.name}={trial.value}" for trial in trials(info)]
    right: dict[str, int] = {}
    while left:
        answers = _ask(info, left, environment)
        for trial in (trial for trial, works in answers.items() if works):
            name, value = trial.split("=")
            right[name] = int(value)
        # What ended its process does not work; a process that tried nothing will not do better again.
        left = [trial for trial in left if trial not in answers and trial.split("=")[0] not in right] if answers else []
    return with_outcomes(info, right)


def _ask(info: DeviceInfo, names: list[str], environment: Mapping[str, str] | None) -> dict[str, bool]:
    """Return what a child process tried, and whether it worked."""
    command = [sys.executable, "-m", "perfport.machine.trials", info.model_dump_json(), *names]
    env = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=env)
        lines = done.stdout.splitlines()
    except subprocess.TimeoutExpired as error:
        lines = (error.stdout or b"").decode(errors="replace").splitlines()
    said = [line.split(" ", 1) for line in lines if line.startswith(("TRY ", "RIGHT "))]
    return {trial: ["RIGHT", trial] in said for word, trial in said if word == "TRY" and trial in names}


def main(info: DeviceInfo, names: list[str]) -> None:
    """Child: try what is named, and say so before and after; the first success of a name is enough."""
    die_with_parent()  # a runtime may hang: nobody would be left to end it
    if info.runtime:
        platforms.use([info.runtime])
    device: Any = backend.get(info.backend).open(info)
    right = set()
    for trial in trials(info):
        name = f"{trial.name}={trial.value}"
        if name not in names or trial.name in right:
            continue
        print(f"TRY {name}", flush=True)
        with contextlib.suppress(CompileError, UnsupportedError):  # of anything else the device may not recover
            if trial.works(device):
                right.add(trial.name)
                print(f"RIGHT {name}", flush=True)


if __name__ == "__main__":
    main(DeviceInfo.model_validate_json(sys.argv[1]), sys.argv[2:])
