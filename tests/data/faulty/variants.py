"""One problem, y = 2 x, and variants that fail while they compile, verify or are sampled."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.machine import energy_counter
from perfport.model.errors import DeviceMemoryError
from perfport.model.record import OutputError
from perfport.model.work import Work
from perfport.workload import Metric, Output, Problem, Setup, Tunable, Variant
from perfport.workload.outputs import compare

if "FAULTY_POWERCAP" in os.environ:  # a worker's: it measures with counters that the test made
    energy_counter.POWERCAP = Path(os.environ["FAULTY_POWERCAP"])


class Double(Problem):
    """y = 2 x for n floats."""

    name, title = "double", "twice a vector"
    metric = Metric("double.rate", "GB/s", "higher", "bytes read and written per second")
    presets = {"tiny": {"n": 1000}}
    headline = {"cpu": "tiny", "gpu": "tiny"}
    check_sizes = ({"n": 65}, {"n": 131})

    class Parameters(BaseModel):
        """Size of the vector."""

        model_config = ConfigDict(extra="forbid")

        n: int = Field(ge=1)

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.n = parameters.n
        self.x = np.random.default_rng(seed).uniform(1.0, 2.0, self.n).astype(np.float32)

    def work(self, *which: str) -> Work:
        return Work(flops=self.n, read_bytes=4 * self.n, write_bytes=4 * self.n)

    def metric_value(self, seconds: float) -> float:
        return 8 * self.n / seconds / 1e9

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"y": Output(np.float32, (self.n,))}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {name: compare(value, 2.0 * self.x, self.n, max_abs=1e-6) for name, value in outputs.items()}


class Broken(Double):
    """A problem that cannot be made."""

    name = "broken"

    def __init__(self, parameters: Any, seed: int) -> None:
        raise ZeroDivisionError("planted: the problem itself fails")


class Exaggerated(Double):
    """A problem that claims far more work than it has."""

    name = "exaggerated"

    def work(self, *which: str) -> Work:
        return Work(read_bytes=4e12)


class Roundabout(Double):
    """A problem that says that each operation takes far more operations of a unit than it does."""

    name = "roundabout"

    def work(self, *which: str) -> Work:
        return Work(flops=self.n, read_bytes=4 * self.n, write_bytes=4 * self.n, float_units={"fp32_fma": 1e12})


class Steady(Double):
    """The same, for variants that fail in the long loops that energy is measured in."""

    name = "steady"


class Drawn(Double):
    """A problem whose time its data decide: the host sleeps by the first number."""

    name = "drawn"

    @classmethod
    def data_decide_time(cls, parameters: Any) -> bool:
        return True


class _Scale(Variant):
    """Right, unless a subclass interferes; `fault` is called before the kernel of every execution."""

    problem = Double
    file = "scale.cl"
    factor = 2.0

    def __init__(self, setup: Setup) -> None:
        self.device, self.n = setup.device, setup.problem.n
        self.executions = 0
        log = os.environ.get("FAULTY_LOG")  # kept open: what takes the host long in each launch is refused
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if log else None
        self.line = f"{self.name} {self.n}\n".encode()
        self.kernel = setup.kernel(self.file, "scale")
        self.x = setup.input("x", lambda: setup.device.upload(setup.problem.x))
        self.y = setup.output("y", np.float32, self.n)

    def launch(self) -> None:
        self.executions += 1
        if self.log is not None:
            os.write(self.log, self.line)
        self.fault()
        factor = np.float32(self.factor)
        self.device.launch(self.kernel, -(-self.n // 64), 64, self.x, self.y, np.uint32(self.n), factor)

    def fault(self) -> None:
        """What goes wrong."""

    @property
    def late(self) -> bool:
        """Whether verification is over: its execution was the first one."""
        return self.executions > 1


class Good(_Scale):
    name, rung = "good", 1
    tunables = {"shade": Tunable(1, (1, 2, 3), "changes nothing")}


class AlsoGood(_Scale):
    name, rung = "also_good", 2


class OnBroken(Good):
    problem = Broken


class OnExaggerated(Good):
    problem = Exaggerated


class OnRoundabout(Good):
    problem = Roundabout


class OnDrawn(Good):
    problem = Drawn
    host_driven = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.pause = 0.01 * float(setup.problem.x[0])

    def fault(self) -> None:
        time.sleep(self.pause)


class OnSteady(Good):
    problem = Steady


class _Tires(_Scale):
    """Right as often as it is verified and timed; not in long loops."""

    problem = Steady

    @property
    def tired(self) -> bool:
        return self.executions > 200


class WrongWhenTired(_Tires):
    name = "wrong_when_tired"

    def fault(self) -> None:
        self.factor = 3.0 if self.tired else 2.0


class RaisesWhenTired(_Tires):
    name = "raises_when_tired"

    def fault(self) -> None:
        if self.tired:
            raise RuntimeError("planted: tired")


class DiesWhenTired(_Tires):
    name, rung = "dies_when_tired", 9

    def fault(self) -> None:
        if self.tired:
            ctypes.string_at(0)


class DrivenPeer(OnSteady):
    """A peer that is driven by the host."""

    name, role = "driven_peer", "peer"
    host_driven = True


class Memorised(_Scale):
    """Right on the inputs that are timed, and on no others."""

    problem, name = Drawn, "memorised"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.factor = 2.0 if setup.problem.seed in (7, 1007, 2007) else 3.0


class RaisesElsewhere(Memorised):
    """Fails on inputs that are not timed."""

    name = "raises_elsewhere"

    def fault(self) -> None:
        if self.factor != 2.0:
            raise RuntimeError("planted: not these inputs")


class DiesElsewhere(Memorised):
    """Takes the worker along on inputs that are not timed."""

    name = "dies_elsewhere"

    def fault(self) -> None:
        if self.factor != 2.0:
            ctypes.string_at(0)


class Slow(_Scale):
    name, rung = "slow", 3
    host_driven = True

    def fault(self) -> None:
        time.sleep(0.1)


class Wrong(_Scale):
    name, rung, factor = "wrong", 4, 3.0


class WrongLate(_Scale):
    name, rung = "wrong_late", 5

    def fault(self) -> None:
        self.factor = 3.0 if self.late else 2.0


class Unwritten(_Scale):
    name, rung = "unwritten", 6

    def launch(self) -> None:
        pass


class NoCompile(_Scale):
    name, rung, file = "no_compile", 7, "broken.cl"


class Raises(_Scale):
    name, rung = "raises", 8

    def fault(self) -> None:
        raise RuntimeError("planted: raised in launch")


class RaisesLate(_Scale):
    name, rung = "raises_late", 9

    def fault(self) -> None:
        if self.late:
            raise RuntimeError("planted: raised while sampling")


class Memory(_Scale):
    name, rung = "memory", 10

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        setup.scratch(2 * setup.device.info.memory_bytes)


class MemoryLate(_Scale):
    name, rung = "memory_late", 11

    def fault(self) -> None:
        if self.late:
            raise DeviceMemoryError("planted: no memory while sampling")


class HostMemory(_Scale):
    name, rung = "host_memory", 12

    def fault(self) -> None:
        np.empty(1 << 55, np.float64)


class Segfault(_Scale):
    name, rung = "segfault", 13

    def fault(self) -> None:
        ctypes.string_at(0)


class SegfaultLate(_Scale):
    name, rung = "segfault_late", 14

    def fault(self) -> None:
        if self.late:
            ctypes.string_at(0)


class OomKilled(_Scale):
    name, rung = "oom_killed", 15

    def fault(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(_Scale):
    name, rung = "exits", 16

    def fault(self) -> None:
        os._exit(7)


class Hang(_Scale):
    name, rung = "hang", 17

    def fault(self) -> None:
        while True:
            time.sleep(1)


class HangKernel(_Scale):
    name, rung = "hang_kernel", 18

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.forever = setup.kernel("scale.cl", "forever", FOREVER=1)
        self.flag = setup.upload(np.zeros(1, np.int32))

    def fault(self) -> None:
        self.device.launch(self.forever, 1, 1, self.flag, self.y)


class NeedsCuda(_Scale):
    name, rung, needs = "needs_cuda", 19, ("cuda",)


class MissingModule(_Scale):
    name, rung, modules = "missing_module", 20, ("no_such_module_anywhere",)
