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
from ..model.device import DeviceInfo
from ..model.errors import CompileError, UnsupportedError
from . import platforms
from .children import die_with_parent

TIMEOUT_S = 60.0


def tried(info: DeviceInfo, environment: Mapping[str, str] | None = None) -> DeviceInfo:
    """Return a device with the capabilities and limits that trials show; as it is where it is none of NVIDIA's OpenCL.

    Parameters
    ----------
    info : DeviceInfo
        A healthy device.
    environment : mapping, optional
        Variables of the child processes, beside this one's.
    """
    if "opencl" not in info.capabilities or info.compute_capability is None:
        return info
    answers: dict[str, bool] = {}
    while True:
        further, complete = _ask(info, answers, environment)
        news = further.keys() - answers.keys()
        answers = {**further, **answers}
        # What ended its process does not work; a process that tried nothing new will not do better again.
        if complete or not news:
            break
    return with_outcomes(info, dict(_named(trial) for trial, works in answers.items() if works))


def _named(trial: str) -> tuple[str, int]:
    name, value = trial.split("=")
    return name, int(value)


def with_outcomes(info: DeviceInfo, right: Mapping[str, int]) -> DeviceInfo:
    """Return a device with what trials have shown: a value for each name that was right."""
    shown = [name for name in right if name != "local_memory_bytes"]
    kept = [name for name in info.capabilities if not (name == "unaligned_vload" and "wide_loads" in right)]
    return info.model_copy(
        update={
            "capabilities": [*kept, *shown],
            "max_work_group": right.get("full_groups", info.max_work_group),
            "local_memory_bytes": right.get("local_memory_bytes", info.local_memory_bytes),
        }
    )


def _ask(
    info: DeviceInfo, answers: Mapping[str, bool], environment: Mapping[str, str] | None
) -> tuple[dict[str, bool], bool]:
    """Return what a child process tries beyond some answers, and whether it came to the end."""
    command = [sys.executable, "-m", "perfport.machine.trials", info.model_dump_json()]
    command += [f"{trial}={int(works)}" for trial, works in answers.items()]
    env = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=env)
        lines = done.stdout.splitlines()
    except subprocess.TimeoutExpired as error:
        lines = (error.stdout or b"").decode(errors="replace").splitlines()
    begun = [line.removeprefix("TRY ") for line in lines if line.startswith("TRY ")]
    return {trial: f"RIGHT {trial}" in lines for trial in begun}, "END" in lines


def main(info: DeviceInfo, answers: list[str]) -> None:
    """Child: try what has no answer, and say so before and after; of a name the first success is enough."""
    from ..backend.opencl_trials import trials  # here alone: it imports PyOpenCL

    die_with_parent()  # a runtime may hang: nobody would be left to end it
    if info.runtime:
        platforms.use([info.runtime])
    device: Any = backend.get(info.backend).open(info)
    known = dict(answer.rsplit("=", 1) for answer in answers)
    right = {trial.split("=")[0] for trial, works in known.items() if works == "1"}
    for trial in trials(info):
        name = f"{trial.name}={trial.value}"
        if name in known or trial.name in right:
            continue
        print(f"TRY {name}", flush=True)
        with contextlib.suppress(CompileError, UnsupportedError):  # of anything else the device may not recover
            if trial.works(device):
                right.add(trial.name)
                print(f"RIGHT {name}", flush=True)
    print("END", flush=True)


if __name__ == "__main__":
    main(DeviceInfo.model_validate_json(sys.argv[1]), sys.argv[2:])
