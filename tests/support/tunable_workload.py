"""A workload whose configurations differ in time by a known factor, and of which some are wrong, crash or hang."""

from __future__ import annotations

from pathlib import Path

from doubling import problem

VARIANT = "tunable/double/turns"
KERNEL = """__kernel void scale(__global const float *x, __global float *y, uint n) {
    uint i = get_global_id(0);
    if (i >= n) return;
    float sum = 0.0f;
    for (uint turn = 0; turn < TURNS; ++turn) sum += x[(i + 97 * turn) % n];
    y[i] = (sum > -1.0f ? x[i] * 2.0f : sum) + WRONG;
}
"""
PRESETS = """{"quick": {"n": 20000}, "more": {"n": 40000}}
    headline = {"cpu": "quick", "gpu": "quick"}"""
PYTHON = '''"""A workload that is tuned."""
import os
import time
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from perfport.workload import Metric, Output, Peer, Problem, Traffic, Tunable, Variant, Work, compare


@D@


class Turns(Variant):
    problem, name, rung = Double, "turns", 1
    tunables = {
        "turns": Tunable(64, (4, 64, 512)),
        "fault": Tunable("none", ("none", "wrong", "no_compile", "crash", "hang", "unsupported")),
    }

    def __init__(self, setup):
        fault = setup.tunables["fault"]
        with (Path(__file__).parent / "built.txt").open("a") as built:
            built.write(f"{setup.tunables['turns']} {fault} {setup.problem.n}\\n")
        if fault == "crash":
            os._exit(3)
        if fault == "hang":
            time.sleep(600)
        self.device, self.n = setup.device, setup.problem.n
        wrong = {"wrong": 1.0, "no_compile": "undeclared"}.get(fault, 0.0)
        self.kernel = setup.kernel("scale.cl", "scale", WRONG=wrong)
        self.x = setup.input("x", lambda: setup.device.upload(setup.problem.x))
        self.y = setup.output("y", np.float32, self.n)

    def launch(self):
        self.device.launch(self.kernel, -(-self.n // 64), 64, self.x, self.y, np.uint32(self.n))

    def traffic(self):
        return Traffic(flops=self.n, dram_read=4 * self.n, dram_write=4 * self.n)


class Bare(Turns):
    name, rung, tunables = "bare", 2, {}


class Library(Peer):
    problem, name = Double, "library"
    needs = ("cpu",)
    host = True
    tunables = {"form": Tunable("a", ("a", "b"))}

    def compute(self):
        return {"y": self.data.x * np.float32(2)}
'''.replace("@D@", problem(PRESETS))


def write(folder: Path) -> Path:
    """Write the workload below a folder; return its own."""
    own = folder / "tunable"
    (own / "kernels").mkdir(parents=True)
    (own / "__init__.py").write_text(PYTHON)
    (own / "kernels" / "scale.cl").write_text(KERNEL)
    return own


def built(own: Path) -> list[str]:
    """Return what was ever built: turns, fault and size."""
    path = own / "built.txt"
    return path.read_text().splitlines() if path.exists() else []
