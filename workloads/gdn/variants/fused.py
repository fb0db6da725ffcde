"""Variants beyond the source: no N x N x P array; each engine of products in each problem."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.backend import Buffer
from perfport.model.work import Traffic
from perfport.workload import Setup, Tunable, Variant

from ..problems import TF32, Backward, Forward, GammaGradient, Step
from . import inputs
from .engine import Engine, Pass
from .streams import Streams
from .tensor_core import OnTensorCores, TensorCores, TensorCoresBf16, TensorCoresPlain
from .tiled import Tiled


class _Fused(Variant):
    """Passes of an engine, one after another."""

    role = "beyond"
    engine: ClassVar[type[Engine]]
    saved: Buffer | None = None  # D between the two halves of a step

    def __init__(self, setup: Setup) -> None:
        self.setup, self.data = setup, setup.problem
        self.passes = self.build(self.engine(setup))
        kept = {id(output.buffer) for output in setup.outputs.values()} | {id(self.saved)}
        scratch = sum(buffer.nbytes for buffer in setup.buffers if id(buffer) not in kept)
        self.memory = {"scratch_bytes": scratch, "peak_device_bytes": setup.device_bytes}

    def build(self, engine: Engine) -> list[Pass]:
        """Make outputs and passes."""
        raise NotImplementedError

    def map(self, name: str) -> Buffer:
        """An output of the input's size."""
        return self.output(name, (self.data.channels * self.data.positions,))

    def output(self, name: str, shape: tuple[int, ...]) -> Buffer:
        """An output, named after the precision class too where that has a tolerance of its own."""
        suffix = TF32 if self.precision == "tf32" else ""
        return self.setup.output(name + suffix, np.float32, shape)

    def gradients(self, engine: Engine, d: Buffer) -> list[Pass]:
        """The passes of all three gradients."""
        n = self.data.channels
        dw, dgamma, dbeta = self.map("dw"), self.output("dgamma", (n, n)), self.output("dbeta", (n,))
        return [engine.input_gradient(d, dw), engine.parameter_gradients(d, dgamma, dbeta)]

    def launch(self) -> None:
        for one in self.passes:
            one.launch()

    def traffic(self) -> Traffic:
        return Traffic.total(*(one.traffic for one in self.passes))

    def notes(self) -> dict[str, Any]:
        """Memory beyond inputs, outputs and the saved D: partial sums of dgamma, packed gamma; and all of it."""
        return dict(self.memory)


class _Forward(_Fused):
    problem = Forward

    def build(self, engine: Engine) -> list[Pass]:
        save = self.map("d") if self.data.training else None
        return [engine.forward(self.map("u"), save)]


class _GammaGradient(_Fused):
    problem = GammaGradient

    def build(self, engine: Engine) -> list[Pass]:
        n = self.data.channels
        return [engine.parameter_gradients(inputs.array(self.setup, "d"), self.output("dgamma", (n, n)), None)]


class _Backward(_Fused):
    problem = Backward

    def build(self, engine: Engine) -> list[Pass]:
        return self.gradients(engine, inputs.array(self.setup, "d"))


class _Step(_Fused):
    problem = Step

    def build(self, engine: Engine) -> list[Pass]:
        self.saved = self.setup.scratch(int(self.data.map_bytes))
        return [engine.forward(self.map("u"), self.saved), *self.gradients(engine, self.saved)]


# --- tiles in local memory ----------------------------------------------------------------------------------------


class FusedForward(_Forward):
    """z never leaves the chip."""

    name, title, rung = "fused_forward", "square, product, root and multiplication in one tiled kernel", 10
    engine = Tiled
    tunables: ClassVar[dict[str, Tunable]] = Tiled.TUNABLES


class FusedGammaGradient(_GammaGradient):
    """The product of the source's ladder, tiled, with the sum over positions fused."""

    name, title, rung = "fused_gamma_gradient", "tiled product over positions, sums on chip", 10
    engine = Tiled
    tunables: ClassVar[dict[str, Tunable]] = Tiled.GAMMA_TUNABLES


class FusedBackward(_Backward):
    """dL/dw in one pass, dL/dgamma and dL/dbeta in another."""

    name, title, rung = "fused_backward", "the three gradients from tiled kernels, sums on chip", 10
    engine = Tiled
    tunables: ClassVar[dict[str, Tunable]] = {**Tiled.TUNABLES, **Tiled.GAMMA_TUNABLES}


class FusedStep(_Step):
    """Forward, then backward."""

    name, title, rung = "fused_step", "fused_forward and fused_backward", 10
    engine = Tiled
    tunables: ClassVar[dict[str, Tunable]] = {**Tiled.TUNABLES, **Tiled.GAMMA_TUNABLES}


# --- wide vectors, one work-item to a group -----------------------------------------------------------------------


class StreamsForward(_Forward):
    """For CPUs: gamma packed in panels, squares staged in cache, sums in vector registers."""

    name, title, rung = "fused_forward_streams", "fused_forward by few work-items with wide vectors", 11
    engine, needs = Streams, ("cpu",)
    tunables: ClassVar[dict[str, Tunable]] = Streams.TUNABLES


class StreamsGammaGradient(_GammaGradient):
    """For CPUs: the product over positions, each work-item with an array of sums of its own."""

    name, title, rung = "fused_gamma_gradient_streams", "fused_gamma_gradient by few work-items with wide vectors", 11
    engine, needs = Streams, ("cpu",)
    tunables: ClassVar[dict[str, Tunable]] = Streams.GAMMA_TUNABLES


class StreamsBackward(_Backward):
    """For CPUs: all three gradients."""

    name, title, rung = "fused_backward_streams", "fused_backward by few work-items with wide vectors", 11
    engine, needs = Streams, ("cpu",)
    tunables: ClassVar[dict[str, Tunable]] = Streams.TUNABLES


class StreamsStep(_Step):
    """For CPUs: forward, then backward."""

    name, title, rung = "fused_step_streams", "fused_step by few work-items with wide vectors", 11
    engine, needs = Streams, ("cpu",)
    tunables: ClassVar[dict[str, Tunable]] = Streams.TUNABLES


# --- matrix units -------------------------------------------------------------------------------------------------


class _OnBf16(OnTensorCores):
    unit = "bf16_mma"
    engine: ClassVar[type[Engine]] = TensorCoresBf16


class _OnPlainTf32(OnTensorCores):
    precision = "tf32"
    engine: ClassVar[type[Engine]] = TensorCoresPlain


class TensorCoreForward(OnTensorCores, _Forward):
    """FP32-level accuracy from three TF32 products."""

    name, title, rung = "tensor_core", "fused_forward on matrix units, three TF32 products", 12
    tunables: ClassVar[dict[str, Tunable]] = TensorCores.TUNABLES


class TensorCoreBf16Forward(_OnBf16, _Forward):
    """Three bf16 products: 16 bits of each operand."""

    name, title, rung = "tensor_core_bf16", "fused_forward on matrix units, three bf16 products", 13
    tunables: ClassVar[dict[str, Tunable]] = TensorCoresBf16.TUNABLES


class TensorCorePlainForward(_OnPlainTf32, _Forward):
    """One TF32 product: an accuracy class of its own."""

    name, title, rung = "tensor_core_tf32", "fused_forward on matrix units, plain TF32", 14
    tunables: ClassVar[dict[str, Tunable]] = TensorCoresPlain.TUNABLES


class TensorCoreGammaGradient(OnTensorCores, _GammaGradient):
    """FP32-level accuracy from three TF32 products."""

    name, title, rung = "tensor_core", "fused_gamma_gradient on matrix units, three TF32 products", 12
    tunables: ClassVar[dict[str, Tunable]] = TensorCores.GAMMA_TUNABLES


class TensorCoreBf16GammaGradient(_OnBf16, _GammaGradient):
    """Three bf16 products: 16 bits of each operand."""

    name, title, rung = "tensor_core_bf16", "fused_gamma_gradient on matrix units, three bf16 products", 13
    tunables: ClassVar[dict[str, Tunable]] = TensorCoresBf16.GAMMA_TUNABLES


class TensorCorePlainGammaGradient(_OnPlainTf32, _GammaGradient):
    """One TF32 product: an accuracy class of its own."""

    name, title, rung = "tensor_core_tf32", "fused_gamma_gradient on matrix units, plain TF32", 14
    tunables: ClassVar[dict[str, Tunable]] = TensorCoresPlain.GAMMA_TUNABLES


class TensorCoreBackward(OnTensorCores, _Backward):
    """FP32-level accuracy from three TF32 products."""

    name, title, rung = "tensor_core", "fused_backward on matrix units, three TF32 products", 12
    tunables: ClassVar[dict[str, Tunable]] = {**TensorCores.TUNABLES, **TensorCores.GAMMA_TUNABLES}


class TensorCoreBf16Backward(_OnBf16, _Backward):
    """Three bf16 products: 16 bits of each operand."""

    name, title, rung = "tensor_core_bf16", "fused_backward on matrix units, three bf16 products", 13
    tunables: ClassVar[dict[str, Tunable]] = {**TensorCoresBf16.TUNABLES, **TensorCoresBf16.GAMMA_TUNABLES}


class TensorCorePlainBackward(_OnPlainTf32, _Backward):
    """One TF32 product: an accuracy class of its own."""

    name, title, rung = "tensor_core_tf32", "fused_backward on matrix units, plain TF32", 14
    tunables: ClassVar[dict[str, Tunable]] = {**TensorCoresPlain.TUNABLES, **TensorCoresPlain.GAMMA_TUNABLES}


class TensorCoreStep(OnTensorCores, _Step):
    """FP32-level accuracy from three TF32 products."""

    name, title, rung = "tensor_core", "fused_step on matrix units, three TF32 products", 12
    tunables: ClassVar[dict[str, Tunable]] = {**TensorCores.TUNABLES, **TensorCores.GAMMA_TUNABLES}


class TensorCoreBf16Step(_OnBf16, _Step):
    """Three bf16 products: 16 bits of each operand."""

    name, title, rung = "tensor_core_bf16", "fused_step on matrix units, three bf16 products", 13
    tunables: ClassVar[dict[str, Tunable]] = {**TensorCoresBf16.TUNABLES, **TensorCoresBf16.GAMMA_TUNABLES}


class TensorCorePlainStep(_OnPlainTf32, _Step):
    """One TF32 product: an accuracy class of its own."""

    name, title, rung = "tensor_core_tf32", "fused_step on matrix units, plain TF32", 14
    tunables: ClassVar[dict[str, Tunable]] = {**TensorCoresPlain.TUNABLES, **TensorCoresPlain.GAMMA_TUNABLES}
