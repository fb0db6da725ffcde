"""Peers by PyTorch: oneDNN on the host, cuDNN on a GPU. It is imported when a peer is built, never with this module."""

from __future__ import annotations

import time
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perfport.measure.cache import CacheFlush
from perfport.workload import (
    COMPILER,
    Setup,
    TorchCudaPeer,
    TorchHostPeer,
    TorchPeer,
    Tunable,
    UnsupportedError,
    version_of,
)

from .. import network
from ..problems import PrunedNetwork, SparseConv
from .network import accuracies

TRIALS = 5  # executions by which the fastest way is chosen
FASTEST = "fastest"
MEMORY_FORMATS = {"nchw": "contiguous_format", "channels_last": "channels_last"}  # in PyTorch's names


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
    searches: ClassVar[tuple[str, ...]] = ("heuristic",)
    tunables: ClassVar[dict[str, Tunable]] = {
        "memory_format": Tunable(FASTEST, (FASTEST, *MEMORY_FORMATS), "of input and weights"),
    }

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
        formats = {name: getattr(torch, order) for name, order in MEMORY_FORMATS.items()}
        operands = {name: (x.to(memory_format=order), w.to(memory_format=order)) for name, order in formats.items()}
        ways = [_Way(name, search, *pair) for name, pair in operands.items() for search in self.searches]
        self.device.finish()  # operands are made on the library's stream, used on the device's
        ways = [way for way in ways if self.wanted(way)]
        self.way = self.fastest(ways) if self.setup.session.timed and len(ways) > 1 else ways[0]

    def input(self) -> Any:
        """Return the problem's input as a tensor."""
        return self.upload(self.data.x)

    def wanted(self, way: _Way) -> bool:
        """Whether the tunables leave a way open."""
        chosen = self.setup.tunables
        return all(chosen.get(n, FASTEST) in (FASTEST, getattr(way, n)) for n in ("memory_format", "search"))

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

    name, title, rung = "torch_cpu", "PyTorch on the host, dense", 1
    tunables: ClassVar = {**_Convolution.tunables, **TorchHostPeer.tunables}


class _Cudnn(_Convolution, TorchCudaPeer):
    #: PyTorch tries likely algorithms once each, which noise may decide wrongly, or takes the library's first.
    searches = ("trials", "trials again", "heuristic")
    tunables: ClassVar = {
        **_Convolution.tunables,
        "search": Tunable(FASTEST, (FASTEST, "trials", "heuristic"), "for an algorithm"),
    }

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


#: Structured pruning, whose convolutions give another result by less work: end of the name, result, what is kept.
PATTERNS = (
    ("pc", "half channels", "half the channels kept (PC)"),
    ("pf", "half filters", "half the filters kept (PF)"),
    ("both", "half of both", "half of channels and filters kept"),
)


def structured(dense: type[_Convolution], rung: int) -> dict[str, type[_Convolution]]:
    """Return a library's control arms, by their names as classes; ``rung`` is that of the first."""
    made: dict[str, Any] = {}
    for number, (suffix, computes, kept) in enumerate(PATTERNS):
        attributes = {
            "__module__": __name__, "__doc__": "Structured pruning, another result.", "role": "control",
            "rung": rung + number, "name": f"{dense.name}_{suffix}", "title": f"{dense.title}, {kept}",
            "computes": computes,
        }  # fmt: skip
        made[f"{dense.__name__}{suffix.capitalize()}"] = ABCMeta(f"{dense.name}_{suffix}", (dense,), attributes)
    return made


globals().update({**structured(CudnnFp32, 9), **structured(TorchCpu, 12)})  # where discovery looks for them


class _Network(TorchPeer):
    """The pruned network, every weight multiplied."""

    problem = PrunedNetwork
    source = version_of("torch")
    tunables: ClassVar[dict[str, Tunable]] = {
        "memory_format": Tunable("nchw", tuple(MEMORY_FORMATS), "of images and weights"),
    }

    def prepare(self) -> None:
        order = getattr(self.torch, MEMORY_FORMATS[self.setup.tunables["memory_format"]])
        self.x = self.upload(self.data.x).to(memory_format=order)
        self.weights = [self.upload(layer.weights).to(memory_format=order) for layer in self.data.layers]
        self.device.finish()  # these are made on the library's stream, used on the device's
        self.run: Callable[[], Any] = self.network

    def network(self) -> Any:
        """Logits of all images, (images, classes, 1, 1)."""
        functional, maps = self.torch.nn.functional, self.x
        for stage, weights in zip(network.STAGES, self.weights, strict=True):
            maps = functional.conv2d(maps, weights)
            if stage.pooled:
                maps = functional.max_pool2d(self.torch.relu(maps), 2)
        return maps

    def compute(self) -> Mapping[str, Any]:
        return {"logits": self.run()[:, :, 0, 0]}

    def notes(self) -> dict[str, Any]:
        return accuracies(self.data, self.results()["logits"])


class TorchCpuNetwork(_Network, TorchHostPeer):
    """What a user without a GPU runs."""

    name, title, rung = "torch_cpu", "PyTorch on the host, dense", 1
    tunables: ClassVar = {**_Network.tunables, **TorchHostPeer.tunables}


class TorchCudaNetwork(_Network, TorchCudaPeer):
    """cuDNN in FP32, its algorithms chosen by trials."""

    name, title, rung = "torch_cuda", "PyTorch, dense, TF32 off", 2
    tunables: ClassVar = {
        **_Network.tunables,
        "form": Tunable("compiled", ("compiled", "graph", "eager"), "fused by the compiler; a CUDA graph; as it is"),
        "compiler": COMPILER,
    }

    def prepare(self) -> None:
        super().prepare()
        forms = {"graph": self.captured, "compiled": self.compiled}
        cudnn = self.torch.backends.cudnn
        cudnn.benchmark, cudnn.allow_tf32 = True, False
        form = self.setup.tunables["form"]
        self.run = self.network if form == "eager" else forms[form](self.network)
