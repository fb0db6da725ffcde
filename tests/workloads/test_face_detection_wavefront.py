"""face_detection on AMD's wavefronts, compiled by Clang for the HD 7970: no barrier in groups of one wavefront."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from perfport import workload
from perfport.backend.offline import OfflineDevice, opencl_info
from perfport.machine.device_profile import load_profile, parameters_for
from perfport.workload import Session, Setup

FOUND = workload.discover()["face_detection"]
HD7970 = parameters_for(load_profile("hd7970"), "face_detection")


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(("work_group", "waits"), [(64, False), (128, True)])
@pytest.mark.parametrize("variant", ["dynamic_mapping", "local_queue", "tuned"])
def test_a_group_of_one_wavefront_has_no_barrier(variant: str, work_group: int, waits: bool) -> None:
    cls, problem = FOUND.variant("windows", variant), FOUND.problem("windows")
    info = opencl_info("gpu")
    tunables = {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}
    tunables |= {name: value for name, value in HD7970.items() if name in tunables} | {"work_group": work_group}
    device: Any = OfflineDevice(info)
    setup = Setup(
        Session(device, problem(problem.Parameters(**problem.presets["tiny"]), 1), FOUND.folder), tunables, {}
    )
    cls(setup)
    (made,) = {each.code: each for each in setup.artifacts if "detect" in each.name}.values()
    command = [
        "clang", "-x", "cl", "-cl-std=CL1.2", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx600", "-nogpulib", "-O2", "-w",
        "-Xclang", "-finclude-default-header", "-S", "-emit-llvm", "-o", "-", "-",
        *(option for option in made.options if option.startswith("-D")),
    ]  # fmt: skip
    done = subprocess.run(command, input=made.code, capture_output=True, timeout=120, check=True)
    code = done.stdout.decode()
    assert ("call void @_Z7barrierj" in code) is waits
    assert ("call void @_Z9mem_fencej" in code) is not waits
    assert ("reqd_work_group_size" in code) is not waits
