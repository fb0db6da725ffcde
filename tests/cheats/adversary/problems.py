"""Four problems, small and quick, with what cheats need: several outputs, iterations, indices, drawn arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import Metric, Output, OutputError, Problem, Work, compare, compare_exact

TOLERANCE = {"fp32": 1e-5, "tf32": 2e-3}


#: How often what is hidden from the queue is done: a CPU's runtime takes up to a millisecond for the launches that are
#: allowed, on a busy machine several.
TIMES = 10


class _Matrix(Problem):
    """A matrix of n rows and m columns, uniform in [1, 2)."""

    metric = Metric("adversary.rate", "GB/s", "higher", "compulsory bytes, read and written, per second")
    presets = {"tiny": {"n": 4096, "m": 512}}
    check_sizes = ({"n": 65, "m": 9}, {"n": 131, "m": 17})
    inputs_by_buffers = True
    written: int  # bytes

    class Parameters(BaseModel):
        """Shape of the matrix."""

        model_config = ConfigDict(extra="forbid")

        n: int = Field(ge=1)
        m: int = Field(ge=1)

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        shape = parameters.n, parameters.m
        self.x = np.random.default_rng(seed).uniform(1.0, 2.0, shape).astype(np.float32)

    def metric_value(self, seconds: float) -> float:
        return self.work().bytes / seconds / 1e9


class Affine(_Matrix):
    """y = 2 x + 1 and the sum of each row of y, two outputs."""

    name, title = "affine", "2 x + 1 with sums of rows"
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32", "tf32")}
    factor = np.float32(2.0)

    def work(self, *which: str) -> Work:
        size, rows = self.x.size, len(self.x)
        return Work(flops=3 * size, read_bytes=4 * size, write_bytes=4 * (size + rows))

    @cached_property
    def reference(self) -> dict[str, np.ndarray]:
        y = np.float64(self.factor) * self.x.astype(np.float64) + 1.0
        return {"y": y, "sums": y.sum(axis=1)}

    def outputs(self, *which: str) -> dict[str, Output]:
        n, m = self.parameters.n, self.parameters.m
        return {"y": Output(np.float32, (n, m)), "sums": Output(np.float32, (n,))}

    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        return {
            name: compare(value, self.reference[name], value.size, relative_l2=TOLERANCE[precision])
            for name, value in outputs.items()
        }


class Scaled(Affine):
    """The same by a factor that the seed draws, which is an argument of the kernel."""

    name, title = "scaled", "a x + 1 with sums of rows"
    inputs_by_buffers = False

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.factor = np.float32(np.random.default_rng(seed + 1).uniform(1.0, 2.0))

    def redrawn(self, seed: int) -> Scaled:
        other = type(self)(self.parameters, seed)
        other.factor = self.factor
        return other


class Extremes(_Matrix):
    """Least and greatest element of each row and the first places of both, four outputs."""

    name, title = "extremes", "extreme elements of rows"

    def work(self, *which: str) -> Work:
        return Work(flops=2 * self.x.size, read_bytes=4 * self.x.size, write_bytes=16 * len(self.x))

    @cached_property
    def reference(self) -> dict[str, np.ndarray]:
        x = self.x
        places = {"where_least": x.argmin(axis=1), "where_greatest": x.argmax(axis=1)}
        return {"least": x.min(axis=1), "greatest": x.max(axis=1), **places}

    def outputs(self, *which: str) -> dict[str, Output]:
        n = self.parameters.n
        places = dict.fromkeys(("where_least", "where_greatest"), Output(np.int32, (n,)))
        return {**dict.fromkeys(("least", "greatest"), Output(np.float32, (n,))), **places}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {name: compare_exact(value, self.reference[name]) for name, value in outputs.items()}


class Train(_Matrix):
    """Eight steps of gradient descent on the dual of ridge regression, w <- w - (G w - t) / n with G = x x^T / m.

    As in training by rows of a kernel matrix, G is part of the work: an execution starts from the inputs.
    """

    name, title = "train", "gradient descent over a kernel matrix"
    presets = {"tiny": {"n": 256, "m": 64}}
    steps = 8

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.t = np.random.default_rng(seed + 1).uniform(1.0, 2.0, parameters.n).astype(np.float32)

    def work(self, *which: str) -> Work:
        n, m = self.x.shape
        return Work(flops=2 * n * n * m + self.steps * 2 * n * n, read_bytes=4 * (n * m + n), write_bytes=4 * n)

    @cached_property
    def reference(self) -> np.ndarray:
        x = self.x.astype(np.float64)
        n, m = x.shape
        gram, w = x @ x.T / m, np.zeros(n)
        for _ in range(self.steps):
            w = w - (gram @ w - self.t) / n
        return w

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"w": Output(np.float32, (self.parameters.n,))}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        expected = self.reference
        return {name: compare(w, expected, expected.size, relative_l2=TOLERANCE["fp32"]) for name, w in outputs.items()}
