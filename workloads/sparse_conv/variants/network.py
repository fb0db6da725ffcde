"""Variants of the pruned network: each engine in turn for every layer, ReLU and maximum in between."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from perfport.workload import Buffer, Enqueue, Setup, Step, Traffic, ceil_div

from .. import network
from ..problems import Layer, PrunedNetwork
from .compressed import CompressedRows
from .direct import Template
from .engine import EngineVariant
from .generated import GeneratedSource
from .ptx import PtxTemplate
from .tiled import Tiled


def pool(setup: Setup, layer: Layer, source: Buffer, result: Buffer) -> Step:
    """Return the step that takes ReLU and 2 x 2 maximum of a layer's output (``pool.cl``)."""
    o = layer.operator
    count, group = layer.batch * o.outputs // 4, 64
    kernel = setup.kernel("pool.cl", "pool", HEIGHT=o.out_height, WIDTH=o.out_width)
    arguments = (source, result, np.int32(count))
    read, written = 16.0 * count, 4.0 * count
    return Enqueue(
        partial(setup.device.launch, kernel, ceil_div(count, group), group, *arguments),
        Traffic(global_read=read, global_write=written, dram_read=read, dram_write=written),
    )


class _Network(EngineVariant):
    """One engine for all layers."""

    problem = PrunedNetwork

    def __init__(self, setup: Setup) -> None:
        self.setup, self.data = setup, setup.problem
        steps: list[Step] = []
        maps: Buffer = setup.input("x", lambda: setup.device.upload(self.data.x))
        for stage, layer in zip(network.STAGES, self.data.layers, strict=True):
            outputs = layer.batch * layer.operator.outputs
            last = stage is network.STAGES[-1]
            result = (
                setup.output("logits", np.float32, self.data.expected.shape) if last else setup.scratch(4 * outputs)
            )
            steps += self.convolve(setup, layer, maps, result).steps
            maps = result
            if stage.pooled:
                maps = setup.scratch(outputs)
                steps.append(pool(setup, layer, result, maps))
        self.steps = steps

    def notes(self) -> dict[str, Any]:
        logits = self.setup.outputs["logits"]
        values = self.setup.device.read(logits.buffer, np.float32, logits.shape)
        sizes = {"weights": sum(layer.operator.weights for layer in self.data.layers)}
        return {**accuracies(self.data, values), **sizes, "nonzero": sum(layer.nonzero for layer in self.data.layers)}


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
    source = "index overhead"


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
