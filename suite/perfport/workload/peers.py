"""Bases of peers: what a library needs for the same problem.

Libraries are imported when a peer is built, never with the module that defines it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ..model.errors import RefusedError
from .libraries import THREADS, thread_count
from .setup import Setup
from .variant import Tunable, Variant

#: How PyTorch's compiler chooses kernels: by its rules, or by timing several of its own and of the libraries.
COMPILER = Tunable("default", ("default", "max-autotune-no-cudagraphs"), "mode of torch.compile")


class Peer(Variant):
    """A library's way. It computes outputs by name; `prepare` is outside the timed window."""

    role = "peer"

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.data: Any = setup.problem
        self.device: Any = setup.device  # of CUDA: its stream and number are not of the protocol
        self.outputs: Mapping[str, Any] = {}
        self.prepare()

    def prepare(self) -> None:
        """Bring the inputs into the library's own form."""

    def compute(self) -> Mapping[str, Any]:
        """Do the work, or enqueue it; return arrays by the names that the reference has for them."""
        raise NotImplementedError

    def launch(self) -> None:
        self.outputs = self.compute()

    def results(self) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(to_host(value)) for name, value in self.outputs.items()}


class HostPeer(Peer):
    """A library on the host: its inputs lie in host memory, and only the host's clock times it."""

    host = True
    needs: ClassVar[tuple[str, ...]] = ("cpu",)


class CudaPeer(Peer):
    """A library on the GPU; it works on the device's own stream, so that device events time it."""

    needs = ("cuda",)
    modules: ClassVar[tuple[str, ...]] = ("cupy",)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.launch()  # compiles, and fills the libraries' memory pools
        self.device.finish()

    def launch(self) -> None:
        with self.device.stream:
            super().launch()

    def view(self, buffer: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        """Return a buffer's first elements as a CuPy array; nothing is copied."""
        return buffer.array.view(dtype)[: int(np.prod(shape))].reshape(shape)


class TorchPeer(Peer):
    """PyTorch, on the host or a GPU."""

    def __init__(self, setup: Setup) -> None:
        import torch

        self.torch: Any = torch
        super().__init__(setup)

    def upload(self, array: np.ndarray) -> Any:
        """Return a tensor of a host array where this peer computes."""
        raise NotImplementedError

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function compiled for fixed shapes, by the tunable ``compiler``, as one graph or not at all.

        A part that does not compile would be an error; left to itself, PyTorch runs such a part uncompiled, in silence.
        """
        import torch._dynamo.config as dynamo

        # All problems of a worker compile one function; beyond the limit (8) it runs uncompiled, in silence.
        dynamo.cache_size_limit = dynamo.accumulated_cache_size_limit = 1 << 16
        mode = self.setup.tunables["compiler"]
        made: Callable[..., Any] = self.torch.compile(function, dynamic=False, fullgraph=True, mode=mode)
        return made


class TorchHostPeer(TorchPeer, HostPeer):
    """PyTorch on the host."""

    modules: ClassVar[tuple[str, ...]] = ("torch",)
    tunables: ClassVar[dict[str, Tunable]] = {"threads": THREADS}

    def launch(self) -> None:
        self.torch.set_num_threads(thread_count(self.setup.tunables["threads"]))
        with self.torch.inference_mode():
            super().launch()

    def upload(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(array)


class TorchCudaPeer(TorchPeer, CudaPeer):
    """PyTorch on the GPU."""

    modules: ClassVar[tuple[str, ...]] = ("cupy", "torch")

    def __init__(self, setup: Setup) -> None:
        import torch

        device: Any = setup.device
        self.stream = torch.cuda.ExternalStream(device.stream.ptr, device=device.number)
        super().__init__(setup)

    def launch(self) -> None:
        with self.torch.cuda.stream(self.stream), self.torch.no_grad():
            self.outputs = self.compute()

    def upload(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(array).cuda(self.device.number)

    def captured(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that enqueues as one CUDA graph what this one enqueues, and returns the same tensors."""
        torch = self.torch
        with torch.cuda.stream(self.stream), torch.no_grad():
            function()  # what libraries allocate and choose at first is no part of the graph
            self.device.finish()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                left = function()

        def replay() -> Any:
            graph.replay()
            return left

        return replay

    def tensor(self, buffer: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        """Return a buffer's first elements as a tensor; nothing is copied."""
        return self.torch.as_tensor(self.view(buffer, shape, dtype), device=f"cuda:{self.device.number}")


def to_host(value: Any) -> np.ndarray:
    """Return an array of a library as NumPy's, whether it is on the host or a GPU.

    Raises
    ------
    RefusedError
        Where it is none: an object that computes when it is converted does so when the clock has stopped.
    """
    library = type(value).__module__.partition(".")[0]
    if library == "torch":
        value = value.detach().cpu().numpy()
    elif library == "cupy":
        value = value.get()
    elif not isinstance(value, np.ndarray | np.generic):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise RefusedError(f"refused: a result is a {kind}; expected an array of NumPy, CuPy or PyTorch")
    return np.asarray(value)
