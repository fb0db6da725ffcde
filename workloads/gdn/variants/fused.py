"""Variants beyond the source: no N x N x P array. One base per problem, from which each engine makes a variant."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, DeviceInfo, Enqueue, Setup, Tunable, Variant

from ..problems import Backward, Forward, GammaGradient, Step
from . import inputs
from .engine import Engine


class Fused(Variant):
    """Steps of an engine, one after another."""

    role = "beyond"
    engine: ClassVar[type[Engine]]
    saved: Buffer | None = None  # D between the two halves of a training step

    def __init__(self, setup: Setup) -> None:
        self.setup, self.data = setup, setup.problem
        engine = self.engine(setup)
        self.unit = engine.unit
        self.steps = self.build(engine)
        kept = {id(output.buffer) for output in setup.outputs.values()} | {id(self.saved)}
        scratch = sum(buffer.nbytes for buffer in setup.buffers if id(buffer) not in kept)
        self.memory = {"scratch_bytes": scratch, "peak_device_bytes": setup.device_bytes}

    def build(self, engine: Engine) -> list[Enqueue]:
        """Make outputs and steps."""
        raise NotImplementedError

    @classmethod
    def tunables_of(cls, engine: type[Engine]) -> dict[str, Tunable]:
        """Return those tunables of an engine that its products in this problem have."""
        return {**engine.TUNABLES, **engine.INPUT_TUNABLES, **engine.GAMMA_TUNABLES}

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        super().require(info)
        cls.engine.require(info)

    def map(self, name: str) -> Buffer:
        """An output of the input's size."""
        return self.output(name, self.data.w.shape)

    def output(self, name: str, shape: tuple[int, ...]) -> Buffer:
        """An output in FP32."""
        return self.setup.output(name, np.float32, shape)

    def gradients(self, engine: Engine, d: Buffer) -> list[Enqueue]:
        """The steps of all three gradients."""
        n = self.data.channels
        dw, dgamma, dbeta = self.map("dw"), self.output("dgamma", (n, n)), self.output("dbeta", (n,))
        return [engine.input_gradient(d, dw), engine.parameter_gradients(d, dgamma, dbeta)]

    def notes(self) -> dict[str, Any]:
        """Memory beyond inputs, outputs and the saved D: partial sums of dgamma, packed gamma; and all of it."""
        return dict(self.memory)


class FusedForward(Fused):
    """z never leaves the chip."""

    problem = Forward

    @classmethod
    def tunables_of(cls, engine: type[Engine]) -> dict[str, Tunable]:
        return engine.TUNABLES

    def build(self, engine: Engine) -> list[Enqueue]:
        save = self.map("d") if self.data.training else None
        return [engine.forward(self.map("u"), save)]


class FusedGammaGradient(Fused):
    """The product of the source's ladder, with the sum over positions fused."""

    problem = GammaGradient

    @classmethod
    def tunables_of(cls, engine: type[Engine]) -> dict[str, Tunable]:
        return engine.GAMMA_TUNABLES

    def build(self, engine: Engine) -> list[Enqueue]:
        n = self.data.channels
        return [engine.parameter_gradients(inputs.array(self.setup, "d"), self.output("dgamma", (n, n)), None)]


class FusedBackward(Fused):
    """dL/dw in one product, dL/dgamma and dL/dbeta in another."""

    problem = Backward

    def build(self, engine: Engine) -> list[Enqueue]:
        return self.gradients(engine, inputs.array(self.setup, "d"))


class FusedStep(Fused):
    """Forward, then backward."""

    problem = Step

    def build(self, engine: Engine) -> list[Enqueue]:
        self.saved = self.setup.scratch(int(self.data.map_bytes))
        return [engine.forward(self.map("u"), self.saved), *self.gradients(engine, self.saved)]


#: By base: how names of its variants say the problem, and what the kernels fuse.
PROBLEMS: dict[type[Fused], tuple[str, str]] = {
    FusedForward: ("forward", "square, product, root and multiplication in one tiled kernel"),
    FusedGammaGradient: ("gamma_gradient", "tiled product over positions, sums on chip"),
    FusedBackward: ("backward", "the three gradients from tiled kernels, sums on chip"),
    FusedStep: ("step", "fused_forward and fused_backward"),
}


def variants(engine: type[Engine]) -> dict[str, type[Fused]]:
    """Return an engine's variants, one per problem, by the names of their classes.

    They are of the engine's module, so that their results rest on the files of this engine and of no other.
    """
    classes: dict[str, Any] = {}
    for base, (problem, what) in PROBLEMS.items():
        name = base.__name__.replace("Fused", engine.__name__)
        attributes = {
            "__module__": engine.__module__, "__doc__": engine.__doc__, "engine": engine,
            "name": engine.name.format(problem=problem), "title": engine.title.format(problem=problem, what=what),
            "rung": engine.rung, "needs": engine.needs, "unit": engine.unit, "precision": engine.precision,
            "tunables": base.tunables_of(engine),
        }  # fmt: skip
        classes[name] = ABCMeta(name, (base,), attributes)
    return classes
