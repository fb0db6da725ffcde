"""One variant for each bug."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.model.record import OutputError
from perfport.model.work import Work
from perfport.workload import Metric, Output, Problem, Setup, Variant
from perfport.workload.outputs import compare


class Double(Problem):
    """out = 2 x."""

    name, title = "double", "Doubling"
    metric = Metric("double.rate", "GB/s", "higher", "bytes per second")
    presets: ClassVar = {"tiny": {"n": 65}}
    check_sizes = ({"n": 65}, {"n": 131})

    class Parameters(BaseModel):
        """``n`` words."""

        model_config = ConfigDict(extra="forbid")
        n: int = Field(ge=1)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.x = np.random.default_rng(seed).random(parameters.n, np.float32) + 1

    def work(self, *which: str) -> Work:
        return Work(read_bytes=self.x.nbytes, write_bytes=self.x.nbytes)

    def metric_value(self, seconds: float) -> float:
        return self.work().bytes / seconds / 1e9

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"out": Output(np.float32, (self.x.size,))}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {"out": compare(outputs["out"], 2.0 * self.x, self.x.size, max_abs=1e-5, relative_l2=1e-5)}


class _Planted(Variant):
    problem = Double

    def __init__(self, setup: Setup) -> None:
        n = setup.problem.x.size
        self.device, self.groups = setup.device, -(-n // 64)
        self.kernel = setup.kernel("planted.cl", self.name)
        source = setup.input("x", lambda: setup.device.upload(setup.problem.x))
        self.arguments = (source, setup.scratch(16), setup.output("out", np.float32, n), np.uint32(n))

    def launch(self) -> None:
        self.device.launch(self.kernel, self.groups, 64, *self.arguments)


class Clean(_Planted):
    """Nothing planted."""

    name = "clean"


class RaceLocal(_Planted):
    """A barrier is missing."""

    name = "race_local"


class RaceGlobal(_Planted):
    """Groups write to one word."""

    name = "race_global"


class ReadOutside(_Planted):
    """One word too far."""

    name = "read_outside"


class WriteOutside(_Planted):
    """One word too far."""

    name = "write_outside"


class UnwrittenLocal(_Planted):
    """Local memory that nobody wrote."""

    name = "unwritten_local"


class UnwrittenGlobal(_Planted):
    """Global memory that nobody wrote."""

    name = "unwritten_global"


class DivergentBarrier(_Planted):
    """A barrier that half of the work-group passes."""

    name = "divergent_barrier"
