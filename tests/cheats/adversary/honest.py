"""One honest variant of each problem; cheats derive from them and change one thing."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl

from perfport.workload import Buffer, Setup, Variant, ceil_div

from .problems import Affine, Extremes, Scaled, Train

GROUP = 16


class Base(Variant):
    """Inputs, kernels, and what cheats have in common."""

    needs = ("opencl",)
    macros: ClassVar[dict[str, Any]] = {}
    declared: ClassVar[tuple[str, ...] | None] = None  # outputs that the harness is told of; all of them

    def __init__(self, setup: Setup) -> None:
        self.setup, self.device, self.data = setup, setup.device, setup.problem
        self.n, self.m = self.data.x.shape
        self.x = setup.input("x", lambda: setup.device.upload(self.data.x))
        self.flag = setup.scratch(4)
        self.touch = self.kernel("touch")

    def kernel(self, name: str) -> Any:
        return self.setup.kernel("adversary.cl", name, **self.macros)

    def output(self, name: str, dtype: Any, shape: int | tuple[int, ...]) -> Buffer:
        """Allocate an output; one that is not declared is a buffer like any other."""
        if self.declared is None or name in self.declared:
            return self.setup.output(name, dtype, shape)
        return self.setup.scratch(int(np.prod(shape)) * np.dtype(dtype).itemsize)

    def enqueue(self, kernel: Any, items: int, *arguments: Any, queue: Any = None) -> None:
        self.device.launch(kernel, ceil_div(items, GROUP), GROUP, *arguments, queue=queue)

    def launch(self) -> None:
        self.compute()

    def compute(self) -> None:
        """Enqueue the whole work."""
        raise NotImplementedError

    def pretend(self) -> None:
        """Enqueue next to nothing, so that the clock has something to see."""
        self.device.launch(self.touch, 1, 1, self.flag)

    def untraced(self, queue: Any, kernel: Any, items: int, *arguments: Any) -> cl.Event:
        """Enqueue past the harness, by PyOpenCL itself."""
        handles = [getattr(argument, "handle", argument) for argument in arguments]
        return kernel.handle(queue, (ceil_div(items, GROUP) * GROUP,), (GROUP,), *handles)

    def gated(self) -> bool:
        """Whether the device's own queue stands still, as it does behind the gate of a timed execution."""
        event = self.device.record()
        deadline = time.monotonic() + 0.25
        while time.monotonic() < deadline:
            if event.command_execution_status == cl.command_execution_status.COMPLETE:
                return False
            time.sleep(1e-4)
        return True


class HonestAffine(Base):
    """A row for each work-item."""

    problem = Affine
    name, title = "honest", "a row for each work-item"
    suffix = ""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.y = self.output(f"y{self.suffix}", np.float32, (self.n, self.m))
        self.sums = self.output(f"sums{self.suffix}", np.float32, self.n)
        self.affine = self.kernel("affine")

    def arguments(self, scale: float | None = None) -> tuple[Any, ...]:
        """Kernel, work-items, arguments."""
        shape = np.uint32(self.n), np.uint32(self.m)
        return self.affine, self.n, self.x, self.y, self.sums, *shape, np.float32(scale or self.data.factor)

    def compute(self) -> None:
        self.enqueue(*self.arguments())


class HonestScaled(HonestAffine):
    """The same kernel."""

    problem = Scaled
    name, title = "honest", "a row for each work-item"


class HonestExtremes(Base):
    """A row for each work-item."""

    problem = Extremes
    name, title = "honest", "a row for each work-item"
    index: ClassVar[Any] = np.int32

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        values = [self.output(name, np.float32, self.n) for name in ("least", "greatest")]
        places = [self.output(name, self.index, self.n) for name in ("where_least", "where_greatest")]
        self.outputs = [*values, *places]
        self.extremes = self.kernel("extremes")

    def compute(self) -> None:
        self.enqueue(self.extremes, self.n, self.x, *self.outputs, np.uint32(self.n), np.uint32(self.m))


class HonestTrain(Base):
    """The kernel matrix first, then a launch for each step."""

    problem = Train
    name, title = "honest", "the kernel matrix, then the steps"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.guard: tuple[Buffer, ...] = ()
        self.size = np.uint32(self.n)
        self.t = setup.input("t", lambda: setup.device.upload(self.data.t))
        self.w = self.output("w", np.float32, self.n)
        self.between = [setup.scratch(4 * self.n) for _ in range(2)]
        self.matrix = setup.scratch(4 * self.n * self.n)
        self.gram, self.step, self.clear = self.kernel("gram"), self.kernel("descend"), self.kernel("clear")
        self.copy = self.kernel("copy")

    def compute(self) -> None:
        self.compute_matrix()
        self.descend(self.data.steps)

    def compute_matrix(self) -> None:
        self.enqueue(self.gram, self.n * self.n, self.x, self.matrix, self.size, np.uint32(self.m), *self.guard)

    def descend(self, steps: int) -> None:
        """Enqueue the steps, from zeros to the output."""
        self.enqueue(self.clear, self.n, self.between[1], self.size)
        for number in range(steps):
            target = self.w if number == steps - 1 else self.between[number % 2]
            source = self.between[(number - 1) % 2]
            self.enqueue(self.step, self.n, self.matrix, self.t, source, target, self.size, *self.guard)

    def fetch(self, source: Buffer, target: Buffer) -> None:
        """Enqueue a copy of as many numbers as the result has."""
        self.enqueue(self.copy, self.n, source, target, self.size)
