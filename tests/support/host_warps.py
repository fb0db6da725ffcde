"""CUDA C++ kernels of k-means on the host, in lock step: what they compute is seen where there is no GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from lockstep import COMPILER

from perfport.workload import read_source
from perfport.workloads import vocab_tree

KERNELS = Path(vocab_tree.__file__).parent / "kernels"
INSTRUCTIONS = "warp.h"  # of the kernels, in whose place stands host_warps.h
HEADER = Path(__file__).with_name("host_warps.h")
ENTRY = """
extern "C" int run(uint groups, uint items, void **b) {
    uint *points = (uint *)b[0], *tiles = (uint *)b[1], *centres = (uint *)b[2], *moving = (uint *)b[4];
    uint *sums = (uint *)b[6], *counts = (uint *)b[7];
    uchar *labels = (uchar *)b[5];
    return run_groups(groups, items, [=] { pass(points, tiles, centres, (int *)b[3], moving, labels, sums, counts); });
}
"""


def compile_pass(file: str, folder: Path, macros: dict[str, int]) -> Any:
    """Compile a kernel file; returns its ``run(groups, items, buffers)``."""
    for path in KERNELS.iterdir():
        if path.suffix in (".cl", ".h", ".cu"):
            shutil.copy(path, folder / path.name)
    (folder / INSTRUCTIONS).write_text("")
    source, library = folder / "host.cpp", folder / "host.so"
    source.write_text(f'#include "{HEADER}"\n{read_source(folder / file)}\n{ENTRY}')
    flags = ["-std=c++20", "-O1", "-w", "-shared", "-fPIC", *(f"-D{k}={v}" for k, v in macros.items())]
    subprocess.run([str(COMPILER), *flags, "-o", library, source], check=True, timeout=120)
    return ctypes.CDLL(str(library)).run


def run_pass(run: Any, items: int, arrays: list[np.ndarray]) -> None:
    """Run a compiled pass over its buffers, as `passes` states them; the second one are the tiles."""
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    assert run(ctypes.c_uint(len(arrays[1])), ctypes.c_uint(items), pointers) == 0, "work-items of a group part ways"
