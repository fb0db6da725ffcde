"""As much of PyTorch as peers of sparse_conv use, on NumPy: their logic is tested without it and without a GPU."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from perfport.workloads.sparse_conv import reference
from perfport.workloads.sparse_conv.operators import Operator


@dataclass
class Tensor:
    """An array with a memory format and a device's number, None on the host."""

    array: np.ndarray
    memory_format: str = "contiguous"
    number: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.array.shape

    def __getitem__(self, key: Any) -> Tensor:
        parts = tuple(part.array if isinstance(part, Tensor) else part for part in key)
        return Tensor(self.array[parts], self.memory_format, self.number)

    def to(self, memory_format: str) -> Tensor:
        """The tensor in another format."""
        return Tensor(self.array, memory_format, self.number)

    def contiguous(self) -> Tensor:
        """The tensor in the usual order."""
        return self.to("contiguous")

    def cuda(self, number: int) -> Tensor:
        """The tensor on a GPU."""
        return Tensor(self.array, self.memory_format, number)

    def detach(self) -> Tensor:
        """The tensor itself: there are no gradients."""
        return self

    cpu = detach

    def numpy(self) -> np.ndarray:
        """Its array."""
        return self.array


Tensor.__module__ = "torch"  # which library an array is of says where it is converted


@dataclass
class Call:
    """A convolution: its operands' format, where it ran, and what was set meanwhile."""

    memory_format: str
    number: int | None
    thread: int
    inference: bool
    streams: list[Any]
    benchmark: bool | None
    allow_tf32: bool | None


@dataclass
class FakeTorch:
    """Stands in for the module ``torch``; ``calls`` lists the convolutions, ``made`` what compilers and graphs did."""

    calls: list[Call] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    threads: int = 0
    contiguous_format: str = "contiguous"
    channels_last: str = "channels_last"

    def __post_init__(self) -> None:
        self.local = threading.local()
        self._dynamo = SimpleNamespace(config=SimpleNamespace())
        self.backends = SimpleNamespace(cudnn=SimpleNamespace(benchmark=None, allow_tf32=None))
        self.cuda = SimpleNamespace(
            ExternalStream=lambda pointer, device: (pointer, device), stream=self._stream, graph=self._graph,
            CUDAGraph=lambda: SimpleNamespace(replay=lambda: self.made.append("replay")),
        )  # fmt: skip
        self.nn = SimpleNamespace(functional=SimpleNamespace(conv2d=self._conv2d, max_pool2d=self._max_pool2d))

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """A tensor on the host."""
        return Tensor(array)

    @staticmethod
    def relu(x: Tensor) -> Tensor:
        """Positive parts."""
        return Tensor(np.maximum(x.array, 0), x.memory_format, x.number)

    def set_num_threads(self, count: int) -> None:
        """Keep the number."""
        self.threads = count

    def compile(self, function: Any, **_: Any) -> Any:
        """The function itself."""
        self.made.append("compiled")
        return function

    def no_grad(self) -> AbstractContextManager[None]:
        """Nothing to do."""
        return nullcontext()

    @contextmanager
    def inference_mode(self) -> Any:
        """Calls inside know of it."""
        self.local.inference = True
        yield
        self.local.inference = False

    @contextmanager
    def _stream(self, stream: Any) -> Any:
        self.local.streams = [*getattr(self.local, "streams", []), stream]
        yield
        self.local.streams = self.local.streams[:-1]

    @contextmanager
    def _graph(self, graph: Any, stream: Any) -> Any:
        """What is enqueued inside is computed at once."""
        assert stream in self.local.streams
        yield
        self.made.append("graph")

    def _conv2d(self, x: Tensor, w: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
        assert x.memory_format == w.memory_format and x.number == w.number
        inference, streams = getattr(self.local, "inference", False), getattr(self.local, "streams", [])
        cudnn, thread = self.backends.cudnn, threading.get_ident()
        self.calls.append(
            Call(x.memory_format, x.number, thread, inference, streams, cudnn.benchmark, cudnn.allow_tf32)
        )
        filters, channels, height, width = w.shape
        operator = Operator(channels, filters, height, width, *x.shape[2:], stride, padding)
        y = reference.convolution(operator, x.array, w.array).astype(np.float32)
        return Tensor(y, x.memory_format, x.number)

    @staticmethod
    def _max_pool2d(x: Tensor, size: int) -> Tensor:
        n, k, h, w = x.shape
        pooled = x.array.reshape(n, k, h // size, size, w // size, size).max(axis=(3, 5))
        return Tensor(pooled, x.memory_format, x.number)
