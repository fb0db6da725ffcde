"""Variants of one problem that is always solved: only what they cause and what they declare matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from perfport.model.record import OutputError
from perfport.model.work import Traffic, Work
from perfport.workload import HostPeer, Metric, Output, Problem, Setup, Tunable, Variant
from perfport.workload.outputs import compare_exact

GROUP = 32
ROUNDS = 5


class Anything(Problem):
    """n work-items do something."""

    name, title = "anything", "work of known amount"
    metric = Metric("anything.rate", "items/s", "higher", "work-items per second")
    presets = {"tiny": {"n": 64}}
    check_sizes = ({"n": 64}, {"n": 160}, {"n": 32})

    class Parameters(BaseModel):
        """Work-items."""

        n: int = Field(ge=32, multiple_of=32)

    def __init__(self, parameters: Any, seed: int) -> None:
        super().__init__(parameters, seed)
        self.n = parameters.n
        self.words = np.random.default_rng(seed).integers(0, 1 << 30, 64 * self.n, dtype=np.uint32)
        self.words[: self.n] = np.arange(self.n)  # as many even as odd

    def work(self, *which: str) -> Work:
        return Work(flops=self.n)

    def metric_value(self, seconds: float) -> float:
        return self.n / seconds

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"y": Output(np.uint32, (4 * self.n,), partial=True)}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {name: compare_exact(value[:1], value[:1]) for name, value in outputs.items()}


class _Counted(Variant):
    """Launches the kernel of its name; `per_item` is what one work-item causes, `wrong` what is declared instead."""

    problem = Anything
    kernel: ClassVar[str]
    per_item: ClassVar[dict[str, float]]
    wrong: ClassVar[dict[str, float]] = {}
    macros: ClassVar[dict[str, int]] = {}
    dtype: ClassVar[Any] = np.uint32

    def __init__(self, setup: Setup) -> None:
        self.device, self.n = setup.device, setup.problem.n
        words = setup.problem.words if self.dtype is np.uint32 else setup.problem.words.astype(np.float32) / 2**30
        self.run = setup.kernel("counted.cl", self.kernel, ROUNDS=ROUNDS, **{"STRIDE": 1, **self.macros})
        self.clear = setup.kernel("counted.cl", "clear", ROUNDS=ROUNDS, **{"STRIDE": 1, **self.macros})
        self.x = setup.input(f"x {self.dtype.__name__}", lambda: setup.device.upload(words))
        self.y = setup.output("y", np.uint32, 4 * self.n)
        self.device.launch(self.clear, self.n // GROUP, GROUP, self.y)

    def launch(self) -> None:
        self.device.launch(self.run, self.n // GROUP, GROUP, *self.arguments())

    def arguments(self) -> tuple[Any, ...]:
        """Arguments of the kernel."""
        return self.x, self.y

    def traffic(self) -> Traffic | None:
        return Traffic(**{name: value * self.n for name, value in {**self.per_item, **self.wrong}.items()})


class Wide(_Counted):
    name, rung, kernel, dtype = "wide", 1, "wide", np.float32
    per_item = {"flops": 12, "global_read": 16, "global_write": 16}


class Builtins(_Counted):
    name, rung, kernel, dtype = "builtins", 2, "builtins", np.float32
    per_item = {"flops": 14, "global_read": 16, "global_write": 4}


class Special(_Counted):
    name, rung, kernel, dtype = "special", 3, "special", np.float32
    per_item = {"flops": 1, "special_ops": 5, "global_read": 16, "global_write": 4}


class Hash(_Counted):
    name, rung, kernel = "hash", 4, "hash"
    per_item = {"integer_ops": 3 * ROUNDS, "global_read": 4 + 4 * ROUNDS, "global_write": 4}


class Decide(_Counted):
    name, rung, kernel = "decide", 5, "decide"
    per_item = {"integer_ops": 1.5, "global_read": 4, "global_write": 2}


class Dot8(_Counted):
    name, rung, kernel = "dot8", 6, "dot8"
    per_item = {"integer_ops": 8, "global_read": 8, "global_write": 4}


class Tile(_Counted):
    name, rung, kernel, dtype = "tile", 7, "tile", np.float32
    per_item = {"flops": 1, "global_read": 4, "global_write": 4, "local_read": 8, "local_write": 4}


class Atomics(_Counted):
    name, rung, kernel = "atomics", 8, "atomics"
    per_item = {
        "integer_ops": 1, "global_read": 4, "local_read": 4 / GROUP, "local_write": 16 / GROUP,
        "global_atomics": 1 + 1 / GROUP, "local_atomics": 2,
    }  # fmt: skip


class Picture(_Counted):
    name, rung, kernel, needs = "picture", 9, "picture", ("images",)
    per_item = {"image_read": 16, "image_write": 16, "global_write": 4}

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.images = [self.device.image(self.n, 1) for _ in range(2)]

    def arguments(self) -> tuple[Any, ...]:
        return self.images[0].read, self.images[1].write, self.y


class Constants(_Counted):
    name, rung, kernel, dtype = "constants", 10, "constants", np.float32
    per_item = {"constant_read": 4, "global_write": 4}


class Unit(_Counted):
    name, rung, kernel, dtype = "unit", 11, "strided", np.float32
    per_item = {"global_read": 4, "global_write": 4}


class Strided(Unit):
    name, rung, macros = "strided", 12, {"STRIDE": 32}


class Broadcast(Unit):
    name, rung, macros = "broadcast", 13, {"STRIDE": 0}


class TooManyFlops(Wide):
    name, role, wrong = "too_many_flops", "control", {"flops": 13}


class TooFewFlops(Builtins):
    name, role, wrong = "too_few_flops", "control", {"flops": 13}


class NoReread(Hash):
    name, role, wrong = "no_reread", "control", {"global_read": 4}


class NoIntegers(Hash):
    name, role, wrong = "no_integers", "control", {"integer_ops": 0}


class Counters(Hash):
    name, role, wrong = "counters", "control", {"integer_ops": 4 * ROUNDS}


class NoAtomics(Atomics):
    name, role, wrong = "no_atomics", "control", {"global_atomics": 0}


class NoSpecial(Special):
    name, role, wrong = "no_special", "control", {"special_ops": 0}


class NoLocal(Tile):
    name, role, wrong = "no_local", "control", {"local_read": 0}


class ScalesWrong(Wide):
    """Right at the first size alone."""

    name, role = "scales_wrong", "control"

    def traffic(self) -> Traffic | None:
        return Traffic(flops=12 * 64, global_read=16 * self.n, global_write=16 * self.n)


class Silent(Wide):
    name, role = "silent", "control"

    def traffic(self) -> Traffic | None:
        return None


class NeedsCuda(Wide):
    name, role, needs = "needs_cuda", "control", ("cuda",)


class Library(HostPeer):
    name, title, rung = "peer", "a library, whose work is not counted", 1
    problem = Anything


class Tuned(Wide):
    """Its declared work is right with a GPU's value of the tunable alone."""

    name, rung = "tuned", 14
    tunables: ClassVar[dict[str, Tunable]] = {"shade": Tunable({"cpu": 2, "gpu": 1}, (1, 2), "scales what is declared")}

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.shade = setup.tunables["shade"]

    def traffic(self) -> Traffic | None:
        return Traffic(flops=12 * self.n * self.shade, global_read=16 * self.n, global_write=16 * self.n)
