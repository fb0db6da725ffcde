"""Bases of peers: what a library needs for the same problem.

Libraries are imported when a peer is built, never with the module that defines it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..model.errors import RefusedError
from .libraries import usable_cores
from .setup import Setup
from .variant import Variant


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


class TorchHostPeer(TorchPeer, HostPeer):
    """PyTorch on the host, on every core that this process may use."""

    modules: ClassVar[tuple[str, ...]] = ("torch",)

    def launch(self) -> None:
        self.torch.set_num_threads(usable_cores())
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
