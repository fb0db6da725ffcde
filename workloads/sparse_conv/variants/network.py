"""Variants of the pruned network: each engine in turn for every layer, ReLU and maximum in between."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.backend import Buffer
from perfport.model.device import DeviceInfo
from perfport.model.work import Traffic
from perfport.workload import Setup, Variant

from .. import network
from ..problems import Layer, PrunedNetwork
from .direct import CompressedRows, Template
from .engine import Convolution
from .generated import GeneratedSource
from .ptx import PtxTemplate
from .tiled import Tiled


class _Pool:
    """ReLU and 2 x 2 maximum (``pool.cl``)."""

    def __init__(self, setup: Setup, layer: Layer, source: Buffer, result: Buffer) -> None:
        o = layer.operator
        self.device, self.source, self.result = setup.device, source, result
        self.count = layer.batch * o.outputs // 4
        self.group = 64
        self.kernel = setup.kernel("pool.cl", "pool", HEIGHT=o.out_height, WIDTH=o.out_width)

    def launch(self) -> None:
        """Enqueue it."""
        groups = -(-self.count // self.group)
        self.device.launch(self.kernel, groups, self.group, self.source, self.result, np.int32(self.count))

    def traffic(self) -> Traffic:
        """What it causes."""
        read, written = 16.0 * self.count, 4.0 * self.count
        return Traffic(global_read=read, global_write=written, dram_read=read, dram_write=written)


class _Network(Variant):
    """One engine for all layers."""

    problem = PrunedNetwork
    engine: ClassVar[type[Convolution]]

    def __init_subclass__(cls) -> None:
        cls.tunables, cls.needs = cls.engine.TUNABLES, cls.engine.NEEDS

    def __init__(self, setup: Setup) -> None:
        self.setup, self.data = setup, setup.problem
        self.steps: list[Any] = []
        maps: Buffer = setup.input("x", lambda: setup.device.upload(self.data.x))
        for stage, layer in zip(network.STAGES, self.data.layers, strict=True):
            outputs = layer.batch * layer.operator.outputs
            last = stage is network.STAGES[-1]
            result = (
                setup.output("logits", np.float32, self.data.expected.shape) if last else setup.scratch(4 * outputs)
            )
            self.steps.append(self.engine(setup, layer, maps, result))
            maps = result
            if stage.pooled:
                maps = setup.scratch(outputs)
                self.steps.append(_Pool(setup, layer, result, maps))

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        super().require(info)
        cls.engine.require(info)

    def launch(self) -> None:
        for step in self.steps:
            step.launch()

    def traffic(self) -> Traffic:
        return Traffic.total(*(step.traffic() for step in self.steps))

    def notes(self) -> dict[str, Any]:
        logits = self.setup.outputs["logits"]
        found = self.setup.device.read(logits.buffer, np.float32, logits.shape)
        sizes = {"weights": sum(layer.operator.weights for layer in self.data.layers)}
        return {**accuracies(self.data, found), **sizes, "nonzero": sum(layer.nonzero for layer in self.data.layers)}


def accuracies(data: PrunedNetwork, logits: np.ndarray) -> dict[str, float | None]:
    """Accuracy of these logits, and of the trained networks on all test images."""
    return {
        "accuracy": data.accuracy(logits.reshape(data.expected.shape)),
        "accuracy_reference": data.accuracy(data.expected),
        "test_accuracy_dense": data.trained.dense_accuracy,
        "test_accuracy_pruned": data.trained.pruned_accuracy,
    }


class DenseNetwork(_Network):
    """The 1.0 of the ladder."""

    engine = Template
    name, title, rung = "dense_direct", "template, every weight", 1
    source = "operator template"


class CsrNetwork(_Network):
    """Index loads."""

    engine = CompressedRows
    name, title, rung = "csr_direct", "compressed rows with stretched offsets", 2
    source = "comparison with Escoin"


class SourceNetwork(_Network):
    """Weights as literals."""

    engine = GeneratedSource
    name, title, rung = "generated_source", "generated source, weights as literals", 3
    source = "code generation"


class PtxNetwork(_Network):
    """The source's method."""

    engine = PtxTemplate
    name, title, rung = "generated_ptx", "PTX template, specialised and assembled", 4
    source = "IR template and specialisation"


class TiledNetwork(_Network):
    """What today's GPUs ask for."""

    engine = Tiled
    name, title, role, rung = "generated_tiled", "PTX for the weights: tiled, copies overlapped", "beyond", 5
