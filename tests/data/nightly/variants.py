"""One problem, y = 2 x; kernels with a planted amount of work, and clocks that sleep a planted time."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.model.record import OutputError
from perfport.model.work import Work
from perfport.workload import Metric, Output, Problem, Setup, Variant
from perfport.workload.outputs import compare


class Double(Problem):
    """y = 2 x for n floats, ``rounds`` multiply-adds each; clocks take ``seconds``."""

    name, title = "double", "twice a vector"
    metric = Metric("double.rate", "1/s", "higher", "executions per second")
    presets = {"tiny": {"n": 1024, "rounds": 16, "seconds": 0.02}}
    check_sizes = tuple({"n": n, "rounds": 2, "seconds": 0.001} for n in (65, 131))

    class Parameters(BaseModel):
        """Size of the vector, work per item, seconds of a clock."""

        model_config = ConfigDict(extra="forbid")

        n: int = Field(ge=1)
        rounds: int = Field(ge=1)
        seconds: float = Field(0.02, ge=0)

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.parameters = parameters
        self.x = np.random.default_rng(seed).uniform(1.0, 2.0, parameters.n).astype(np.float32)

    def work(self, *which: str) -> Work:
        return Work(read_bytes=self.x.nbytes, write_bytes=self.x.nbytes)

    def metric_value(self, seconds: float) -> float:
        return 1 / seconds

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"y": Output(np.float32, (self.x.size,))}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {"y": compare(outputs["y"], 2.0 * self.x, self.x.size, max_abs=1e-5)}


class _Rounds(Variant):
    problem = Double
    file = "rounds.cl"

    def __init__(self, setup: Setup) -> None:
        given = setup.problem.parameters
        planted = json.loads(os.environ.get("NIGHTLY_PLANTED", "{}")).get(self.name, {})
        self.factor, self.fault = float(planted.get("factor", 1.0)), planted.get("fault")
        self.device, self.n, self.seconds = setup.device, given.n, given.seconds
        self.kernel = setup.kernel(self.file, "rounds")
        x = setup.input("x", lambda: setup.device.upload(setup.problem.x))
        count = np.uint32(round(self.factor * given.rounds))
        one = np.float32(1.5 if self.fault == "wrong" else 1.0)
        self.arguments = (x, setup.output("y", np.float32, self.n), np.uint32(self.n), count, one, np.float32(0))

    def launch(self) -> None:
        if self.fault == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        self.device.launch(self.kernel, -(-self.n // 64), 64, *self.arguments)


class Steady(_Rounds):
    name, rung = "steady", 1


class Slowed(_Rounds):
    """In a file of its own, which can be changed alone."""

    name, rung, file = "slowed", 2, "slowed.cl"


class ClockA(_Rounds):
    name, rung = "clock_a", 3
    host_driven = True

    def launch(self) -> None:
        super().launch()
        time.sleep(self.seconds * self.factor)


class ClockB(ClockA):
    name, rung = "clock_b", 4


class ClockC(ClockA):
    name, rung = "clock_c", 5
