"""A workload in a folder of a test's own, whose files the test edits as an author would."""

from __future__ import annotations

from pathlib import Path

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


class Double(Problem):
    name = "double"
    metric = Metric("double.rate", "GB/s", "higher", "bytes per second")
    presets = {"quick": {"n": 50000}}
    check_sizes = ({"n": 65}, {"n": 131})

    class Parameters(BaseModel):
        n: int

    def __init__(self, parameters, seed):
        super().__init__(parameters, seed)
        self.n = parameters.n
        self.x = np.random.default_rng(seed).uniform(1.0, 2.0, self.n).astype(np.float32)

    def work(self, *which):
        return Work(flops=self.n, read_bytes=4 * self.n, write_bytes=4 * self.n)

    def metric_value(self, seconds):
        return 8 * self.n / seconds / 1e9

    def outputs(self, *which):
        return {"y": Output(np.float32, (self.n,))}

    def check(self, outputs, *which):
        return {name: compare(value, 2.0 * self.x, self.n, max_abs=1e-6) for name, value in outputs.items()}


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
'''


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
