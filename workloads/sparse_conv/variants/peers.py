"""Peers: what libraries need for the same operators. They are imported when a peer is built, never with this module."""

from __future__ import annotations

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perfport.measure.cache import CacheFlush
from perfport.model.errors import UnsupportedError
from perfport.workload import Setup, Variant
from perfport.workload.libraries import usable_cores, version_of

from .. import network
from ..problems import TF32, PrunedNetwork, SparseConv
from ..weights import compressed
from .im2col import Im2col
from .network import accuracies

TRIALS = 5  # executions by which the fastest way is found


# --- PyTorch: oneDNN on the host, cuDNN on a GPU --------------------------------------------------------------------


class _Way(NamedTuple):
    """What a convolution by PyTorch may be given: operands in a memory format, and how an algorithm is looked for."""

    memory_format: str
    search: str
    x: Any
    w: Any


class _Torch(Variant):
    """Dense convolution, in NCHW and channels_last and by each search for an algorithm; the fastest is measured."""

    problem = SparseConv
    role = "peer"
    modules: ClassVar[tuple[str, ...]] = ("torch",)
    source = version_of("torch")
    fewer_operations = True  # Winograd's or FFT's convolution
    structured: ClassVar[str] = ""
    searches: ClassVar[tuple[str, ...]] = ("heuristic",)

    def __init__(self, setup: Setup) -> None:
        import torch

        self.torch: Any = torch
        self.data: SparseConv = setup.problem
        self.device: Any = setup.device  # of CUDA: its stream and number are not of the protocol
        o = self.data.operator
        x, weights = self.tensor(setup, "x"), self.data.layer.weights
        if self.structured:
            filters, channels = self.data.structured(self.structured)
            if self.structured == ".pc" and o.channels % 2:
                raise UnsupportedError(f"{o.channels} input channels cannot be halved")
            weights = self.data.dense[filters][:, channels]
            x = x[:, torch.from_numpy(np.flatnonzero(channels)).to(x.device)].contiguous()
        w = torch.from_numpy(np.ascontiguousarray(weights)).to(x.device)
        formats = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}
        operands = {name: (x.to(memory_format=order), w.to(memory_format=order)) for name, order in formats.items()}
        ways = [_Way(name, search, *pair) for name, pair in operands.items() for search in self.searches]
        self.device.finish()  # operands are made on the library's stream, used on the device's
        self.way = self.fastest(ways) if setup.session.timed else ways[0]
        self.launch()

    def tensor(self, setup: Setup, name: str) -> Any:
        """An array of the problem as a tensor."""
        raise NotImplementedError

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

    def launch(self) -> None:
        with self.torch.no_grad(), self.mode():
            o, way = self.data.operator, self.way
            self.found = self.torch.nn.functional.conv2d(way.x, way.w, stride=o.stride, padding=o.padding)

    def mode(self) -> Any:
        """A context in which the library computes where and as this peer wants."""
        raise NotImplementedError

    def results(self) -> dict[str, np.ndarray]:
        name = "y" + self.structured + (TF32 if self.precision == "tf32" else "")
        return {name: self.found.contiguous().cpu().numpy()}

    def notes(self) -> dict[str, Any]:
        way = self.way
        return {
            "memory_format": way.memory_format, "algorithm_search": way.search, "weights_shape": list(way.w.shape)
        }  # fmt: skip


class TorchCpu(_Torch):
    """What a user without a GPU runs."""

    needs = ("cpu",)
    host = True
    name, title, rung = "torch_cpu", "PyTorch on the host, dense, all cores", 1

    def tensor(self, setup: Setup, name: str) -> Any:
        return self.torch.from_numpy(getattr(self.data, name))

    def mode(self) -> Any:
        self.torch.set_num_threads(usable_cores())
        return self.torch.inference_mode()


class _Cudnn(_Torch):
    needs = ("cuda",)
    modules = ("torch", "cupy")
    #: PyTorch tries likely algorithms once each, which noise may decide wrongly, or takes the library's first.
    searches = ("trials", "trials again", "heuristic")

    def __init__(self, setup: Setup) -> None:
        # PyTorch keeps one plan for a shape and thread, however it was found: each way has a thread of its own.
        self.threads: dict[tuple[str, str], ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, 1))
        super().__init__(setup)

    def fastest(self, ways: list[_Way]) -> _Way:
        with closing(CacheFlush(self.device)) as self.flush:
            found = super().fastest(ways)
        self.threads = {found[:2]: self.threads[found[:2]]}
        return found

    def seconds(self) -> float:
        return float(self.device.timed(self.launch, self.flush).span)

    def launch(self) -> None:
        self.threads[self.way[:2]].submit(super().launch).result()

    def tensor(self, setup: Setup, name: str) -> Any:
        return setup.input(
            f"torch {name}", lambda: self.torch.from_numpy(getattr(self.data, name)).cuda(self.device.number)
        )

    def mode(self) -> Any:
        cudnn = self.torch.backends.cudnn
        cudnn.benchmark = self.way.search != "heuristic"
        cudnn.allow_tf32 = self.precision == "tf32"
        return self.torch.cuda.stream(self.torch.cuda.ExternalStream(self.device.stream.ptr, device=self.device.number))


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
    structured = ".pc"


class CudnnHalfFilters(_Cudnn):
    """Structured pruning: half the filters, another result."""

    name, title, rung = "cudnn_pf", "cuDNN, half the filters kept (PF)", 5
    structured = ".pf"


class CudnnBoth(_Cudnn):
    """Structured pruning: half of both, another result; a quarter of the work."""

    name, title, rung = "cudnn_both", "cuDNN, half of channels and filters kept", 6
    structured = ".both"


class TorchCpuHalfChannels(TorchCpu):
    """Structured pruning on the host."""

    name, title, rung = "torch_cpu_pc", "PyTorch on the host, half the channels kept (PC)", 7
    structured = ".pc"


class TorchCpuHalfFilters(TorchCpu):
    """Structured pruning on the host."""

    name, title, rung = "torch_cpu_pf", "PyTorch on the host, half the filters kept (PF)", 8
    structured = ".pf"


class TorchCpuBoth(TorchCpu):
    """Structured pruning on the host."""

    name, title, rung = "torch_cpu_both", "PyTorch on the host, half of both kept", 9
    structured = ".both"


# --- CuPy: im2col written here, products by cuBLAS and cuSPARSE -----------------------------------------------------


class _Products(Im2col):
    """im2col's kernel, then a library's product of [filters, taps] by [taps, columns]."""

    factor: Any

    def prepare_product(self) -> None:
        import cupy

        self.cupy: Any = cupy
        self.owner: Any = self.device
        self.convert()

    def convert(self) -> None:
        """Bring the weights into the library's form."""
        raise NotImplementedError

    def multiply(self, first: int, columns: int) -> None:
        o = self.operator
        matrix: Any = self.matrix
        result: Any = self.result
        images = columns // o.pixels
        with self.owner.stream:
            unrolled = matrix.array.view(np.float32)[: o.taps * columns].reshape(o.taps, columns)
            out = result.array.view(np.float32)[: self.batch * o.outputs].reshape(self.batch, o.filters, o.pixels)
            product = (self.factor @ unrolled).reshape(o.filters, images, o.pixels)
            out[first : first + images] = product.transpose(1, 0, 2)


class _CublasProducts(_Products):
    def convert(self) -> None:
        self.factor = self.cupy.asarray(self.layer.weights.reshape(self.operator.filters, -1))


class _CusparseProducts(_Products):
    def convert(self) -> None:
        from cupyx.scipy import sparse

        rows = compressed(self.layer.weights)
        arrays = tuple(self.cupy.asarray(array) for array in (rows.values, rows.taps, rows.starts))
        self.factor = sparse.csr_matrix(arrays, shape=(self.operator.filters, self.operator.taps))


class _Unrolled(Variant):
    """An im2col engine as a peer."""

    problem = SparseConv
    role = "peer"
    needs = ("cuda",)
    modules: ClassVar[tuple[str, ...]] = ("cupy",)
    source = version_of("cupy-cuda13x")
    engine: ClassVar[type[Im2col]]

    def __init__(self, setup: Setup) -> None:
        data: SparseConv = setup.problem
        source = setup.input("x", lambda: setup.device.upload(data.x))
        self.convolution = self.engine(setup, data.layer, source, setup.output("y", np.float32, data.shape))
        self.launch()  # loads the libraries
        setup.device.finish()

    def launch(self) -> None:
        self.convolution.launch()


class CublasIm2col(_Unrolled):
    """Dense; CuPy's matmul keeps FP32."""

    engine = _CublasProducts
    name, title, rung = "cublas_im2col", "im2col and cuBLAS, dense, FP32", 10


class CusparseIm2col(_Unrolled):
    """Columns are split at 10^6: above 1 048 560 cuSPARSE has returned zeros without an error."""

    engine = _CusparseProducts
    name, title, rung = "cusparse_im2col", "im2col and cuSPARSE, FP32", 11


# --- The network ------------------------------------------------------------------------------------------------------


class _TorchNetwork(Variant):
    """The pruned network, every weight multiplied."""

    problem = PrunedNetwork
    role = "peer"
    modules: ClassVar[tuple[str, ...]] = ("torch",)
    source = version_of("torch")
    fewer_operations = True  # as above

    def __init__(self, setup: Setup) -> None:
        import torch

        self.torch: Any = torch
        self.data: PrunedNetwork = setup.problem
        self.device: Any = setup.device
        self.x = self.place(torch.from_numpy(self.data.x))
        self.weights = [self.place(torch.from_numpy(layer.weights)) for layer in self.data.layers]
        self.device.finish()  # these are made on the library's stream, used on the device's
        self.launch()

    def place(self, tensor: Any) -> Any:
        """Bring a tensor where this peer computes."""
        return tensor

    def mode(self) -> Any:
        """A context in which the library computes where this peer wants."""
        self.torch.set_num_threads(usable_cores())
        return self.torch.inference_mode()

    def launch(self) -> None:
        functional = self.torch.nn.functional
        with self.torch.no_grad(), self.mode():
            maps = self.x
            for stage, weights in zip(network.STAGES, self.weights, strict=True):
                maps = functional.conv2d(maps, weights)
                if stage.pooled:
                    maps = functional.max_pool2d(self.torch.relu(maps), 2)
            self.found = maps

    def results(self) -> dict[str, np.ndarray]:
        return {"logits": self.found.cpu().numpy()}

    def notes(self) -> dict[str, Any]:
        return accuracies(self.data, self.found.cpu().numpy())


class TorchCpuNetwork(_TorchNetwork):
    """What a user without a GPU runs."""

    needs = ("cpu",)
    host = True
    name, title, rung = "torch_cpu", "PyTorch on the host, dense, all cores", 1


class TorchCudaNetwork(_TorchNetwork):
    """cuDNN in FP32."""

    needs = ("cuda",)
    modules = ("torch", "cupy")
    name, title, rung = "torch_cuda", "PyTorch, dense, TF32 off", 2

    def place(self, tensor: Any) -> Any:
        return tensor.cuda(self.device.number)

    def mode(self) -> Any:
        self.torch.backends.cudnn.allow_tf32 = False
        return self.torch.cuda.stream(self.torch.cuda.ExternalStream(self.device.stream.ptr, device=self.device.number))
