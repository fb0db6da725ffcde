"""Peers by PyTorch: oneDNN on the host, cuDNN on a GPU. It is imported when a peer is built, never with this module."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perfport.measure.cache import CacheFlush
from perfport.workload import Setup, TorchCudaPeer, TorchHostPeer, TorchPeer, UnsupportedError, version_of

from .. import network
from ..problems import PrunedNetwork, SparseConv
from .network import accuracies

TRIALS = 5  # executions by which the fastest way is chosen


class _Way(NamedTuple):
    """What a convolution by PyTorch may be given: operands in a memory format, and how an algorithm is looked for."""

    memory_format: str
    search: str
    x: Any
    w: Any


class _Convolution(TorchPeer):
    """Dense convolution, in NCHW and channels_last and by each search for an algorithm; the fastest is measured."""

    problem = SparseConv
    source = version_of("torch")
    fewer_operations = True  # Winograd's or FFT's convolution
    searches: ClassVar[tuple[str, ...]] = ("heuristic",)

    def prepare(self) -> None:
        torch, o = self.torch, self.data.operator
        x, weights = self.input(), self.data.layer.weights
        if self.computes:
            filters, channels = self.data.structured(self.computes)
            if self.computes == "half channels" and o.channels % 2:
                raise UnsupportedError(f"{o.channels} input channels cannot be halved")
            weights = self.data.dense[filters][:, channels]
            x = x[:, self.upload(np.flatnonzero(channels))].contiguous()
        w = self.upload(np.ascontiguousarray(weights))
        formats = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}
        operands = {name: (x.to(memory_format=order), w.to(memory_format=order)) for name, order in formats.items()}
        ways = [_Way(name, search, *pair) for name, pair in operands.items() for search in self.searches]
        self.device.finish()  # operands are made on the library's stream, used on the device's
        self.way = self.fastest(ways) if self.setup.session.timed else ways[0]

    def input(self) -> Any:
        """Return the problem's input as a tensor."""
        return self.upload(self.data.x)

    def fastest(self, ways: list[_Way]) -> _Way:
        """Try all of them."""
        return min(ways, key=self.trial)

    def trial(self, way: _Way) -> float:
        """Seconds of the fastest of a few executions."""
        self.way = way
        self.launch()
        self.device.finish()
        return min(self.seconds() for _ in range(TRIALS))

    def seconds(self) -> float:
        """Time of one execution."""
        started = time.perf_counter()
        self.launch()
        return time.perf_counter() - started

    def compute(self) -> Mapping[str, Any]:
        o, way = self.data.operator, self.way
        y = self.torch.nn.functional.conv2d(way.x, way.w, stride=o.stride, padding=o.padding)
        return {"y": y}

    def notes(self) -> dict[str, Any]:
        way = self.way
        return {
            "memory_format": way.memory_format, "algorithm_search": way.search, "weights_shape": list(way.w.shape)
        }  # fmt: skip


class TorchCpu(_Convolution, TorchHostPeer):
    """What a user without a GPU runs."""

    name, title, rung = "torch_cpu", "PyTorch on the host, dense, all cores", 1


class _Cudnn(_Convolution, TorchCudaPeer):
    #: PyTorch tries likely algorithms once each, which noise may decide wrongly, or takes the library's first.
    searches = ("trials", "trials again", "heuristic")

    def __init__(self, setup: Setup) -> None:
        # PyTorch keeps one plan for a shape and thread, however it was found: each way has a thread of its own.
        self.threads: dict[tuple[str, str], ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, 1))
        super().__init__(setup)

    def input(self) -> Any:
        return self.setup.input("torch x", super().input)

    def fastest(self, ways: list[_Way]) -> _Way:
        with closing(CacheFlush(self.device)) as self.flush:
            way = super().fastest(ways)
        self.threads = {way[:2]: self.threads[way[:2]]}
        return way

    def seconds(self) -> float:
        return float(self.device.timed(self.launch, self.flush).span)

    def launch(self) -> None:
        self.threads[self.way[:2]].submit(super().launch).result()

    def compute(self) -> Mapping[str, Any]:
        cudnn = self.torch.backends.cudnn
        cudnn.benchmark = self.way.search != "heuristic"
        cudnn.allow_tf32 = self.precision == "tf32"
        return super().compute()


class CudnnFp32(_Cudnn):
    """Every weight, in FP32."""

    name, title, rung = "cudnn", "cuDNN through PyTorch, dense, FP32", 2


class CudnnTf32(_Cudnn):
    """Every weight, on matrix units."""

    name, title, rung = "cudnn_tf32", "cuDNN through PyTorch, dense, TF32", 3
    precision = "tf32"
    unit = "tf32_mma"


class CudnnHalfChannels(_Cudnn):
    """Structured pruning: half the input channels, another result."""

    name, title, rung = "cudnn_pc", "cuDNN, half the channels kept (PC)", 4
    computes = "half channels"


class CudnnHalfFilters(_Cudnn):
    """Structured pruning: half the filters, another result."""

    name, title, rung = "cudnn_pf", "cuDNN, half the filters kept (PF)", 5
    computes = "half filters"


class CudnnBoth(_Cudnn):
    """Structured pruning: half of both, another result; a quarter of the work."""

    name, title, rung = "cudnn_both", "cuDNN, half of channels and filters kept", 6
    computes = "half of both"


class TorchCpuHalfChannels(TorchCpu):
    """Structured pruning on the host."""

    name, title, rung = "torch_cpu_pc", "PyTorch on the host, half the channels kept (PC)", 7
    computes = "half channels"


class TorchCpuHalfFilters(TorchCpu):
    """Structured pruning on the host."""

    name, title, rung = "torch_cpu_pf", "PyTorch on the host, half the filters kept (PF)", 8
    computes = "half filters"


class TorchCpuBoth(TorchCpu):
    """Structured pruning on the host."""

    name, title, rung = "torch_cpu_both", "PyTorch on the host, half of both kept", 9
    computes = "half of both"


class _Network(TorchPeer):
    """The pruned network, every weight multiplied."""

    problem = PrunedNetwork
    source = version_of("torch")
    fewer_operations = True  # as above

    def prepare(self) -> None:
        self.x = self.upload(self.data.x)
        self.weights = [self.upload(layer.weights) for layer in self.data.layers]
        self.device.finish()  # these are made on the library's stream, used on the device's

    def compute(self) -> Mapping[str, Any]:
        functional, maps = self.torch.nn.functional, self.x
        for stage, weights in zip(network.STAGES, self.weights, strict=True):
            maps = functional.conv2d(maps, weights)
            if stage.pooled:
                maps = functional.max_pool2d(self.torch.relu(maps), 2)
        return {"logits": maps[:, :, 0, 0]}

    def notes(self) -> dict[str, Any]:
        return accuracies(self.data, self.results()["logits"])


class TorchCpuNetwork(_Network, TorchHostPeer):
    """What a user without a GPU runs."""

    name, title, rung = "torch_cpu", "PyTorch on the host, dense, all cores", 1


class TorchCudaNetwork(_Network, TorchCudaPeer):
    """cuDNN in FP32."""

    name, title, rung = "torch_cuda", "PyTorch, dense, TF32 off", 2

    def compute(self) -> Mapping[str, Any]:
        self.torch.backends.cudnn.allow_tf32 = False
        return super().compute()
