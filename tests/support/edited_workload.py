"""A workload in a folder of a test's own, whose files the test edits as an author would."""

from __future__ import annotations

from pathlib import Path

from doubling import problem

CASE = "edited/double/plain"
KERNEL = """__kernel void scale(__global const float *x, __global float *y, uint n) {
    uint i = get_global_id(0);
    if (i < n) y[i] = x[i] * 2.0f;
}
"""
RIGHT = "y[i] = x[i] * 2.0f;"
#: What a save puts in place of `RIGHT`.
FAULTS = {
    "no_compile": "y[i] = x[i] * undeclared;",
    "tail": "y[i] = i + 3 < n ? x[i] * 2.0f : 7.0f;",
    "seventh": "y[i] = i % 7 == 0 ? 7.0f : x[i] * 2.0f;",
    "nan": "y[i] = NAN;",
    "crash": "*(volatile __global float *)(16 + 4 * (size_t)i) = 1.0f;",
    "hang": "while (((volatile __global float *)y)[i] != 7.0f);",
}
PYTHON = '''"""A workload that is edited."""
import numpy as np
from pydantic import BaseModel

from perfport.workload import Metric, Output, Problem, Traffic, Variant, Work, compare


@D@


class Plain(Variant):
    problem, name, rung = Double, "plain", 1
    file = "scale.cl"

    def __init__(self, setup):
        self.device, self.n = setup.device, setup.problem.n
        self.kernel = setup.kernel(self.file, "scale")
        self.x = setup.input("x", lambda: setup.device.upload(setup.problem.x))
        self.y = setup.output("y", np.float32, self.n)

    def launch(self):
        self.device.launch(self.kernel, -(-self.n // 64), 64, self.x, self.y, np.uint32(self.n))

    def traffic(self):
        return Traffic(flops=self.n, dram_read=4 * self.n, dram_write=4 * self.n)


class Other(Plain):
    name, rung, file = "other", 2, "other.cl"
'''.replace("@D@", problem('{"quick": {"n": 50000}}'))


def write(folder: Path) -> Path:
    """Write the workload below a folder; return its own."""
    own = folder / "edited"
    (own / "kernels").mkdir(parents=True)
    (own / "__init__.py").write_text(PYTHON)
    for name in ("scale.cl", "other.cl"):
        (own / "kernels" / name).write_text(KERNEL)
    return own


def save(own: Path, line: str) -> None:
    """Save the edited kernel with this in place of its line."""
    (own / "kernels" / "scale.cl").write_text(KERNEL.replace(RIGHT, line))
