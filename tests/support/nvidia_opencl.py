"""A device of NVIDIA's OpenCL that is not here, and what stands for its compiler: Clang, whose OpenCL C it takes."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from perfport.backend.offline import opencl_info
from perfport.backend.opencl_trials import TRIALS
from perfport.machine.trials import with_outcomes
from perfport.model.device import DeviceInfo

LIBRARY = Path("/usr/lib/clc/nvptx64--nvidiacl.bc")  # of Debian's libclc-14: OpenCL's functions
MISSING = "" if shutil.which("clang") and LIBRARY.is_file() else "needs clang and libclc-14"


def untried(capability: str = "9.0") -> DeviceInfo:
    """Describe the device as its runtime does."""
    return opencl_info("gpu").model_copy(update={"compute_capability": capability})


def tried(capability: str = "9.0") -> DeviceInfo:
    """Describe the device as trials show it to be when all of them succeed."""
    right = {trial.name: trial.value for trial in reversed(TRIALS)}
    return with_outcomes(untried(capability), right)


@cache
def ptx(code: bytes, options: tuple[str, ...]) -> str:
    """Compile OpenCL C to PTX. ``asm``, which NVIDIA's compiler knows, has another name in Clang's OpenCL C 1.2."""
    command = [
        "clang", "-x", "cl", "-cl-std=CL1.2", "-target", "nvptx64-nvidia-nvcl", "-O2", "-w", "-S", "-o", "-", "-",
        *(part for option in (
            "-target-cpu", "sm_80", "-target-feature", "+ptx70", "-finclude-default-header",
            "-mlink-builtin-bitcode", str(LIBRARY),
        ) for part in ("-Xclang", option)),
        "-D__NV_CL_C_VERSION=120", "-Dcl_khr_fp64=1", "-Dasm=__asm__",
        *(option for option in options if option.startswith("-D")),
    ]  # fmt: skip
    done = subprocess.run(command, input=code, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    return done.stdout.decode()
