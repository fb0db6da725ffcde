"""Peers: what the libraries that people use instead need for the same problems.

Libraries are imported when a peer is built, never with this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from perfport.workload import Setup, Variant
from perfport.workload.libraries import usable_cores, version_of

from .. import reference
from ..problems import TF32, Backward, Forward, GammaGradient, Reduction, Step
from . import inputs

GRADIENTS = ("dw", "dgamma", "dbeta")


class _Peer(Variant):
    role = "peer"

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.device: Any = setup.device  # of CUDA: its stream and number are not of the protocol
        self.data: Any = setup.problem
        self.found: tuple[Any, ...] = ()
        self.prepare()

    def prepare(self) -> None:
        """Bring the inputs into the library's own form."""

    def compute(self) -> tuple[Any, ...]:
        """Do the work and return its results, in the order of `names`."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        problem = type(self.data)
        training = problem is Forward and self.data.training
        found: dict[type, tuple[str, ...]] = {
            Forward: ("u", "d") if training else ("u",), GammaGradient: ("dgamma",), Backward: GRADIENTS,
            Step: ("u", *GRADIENTS), Reduction: ("sums",),
        }  # fmt: skip
        return tuple(name + TF32 if self.precision == "tf32" else name for name in found[problem])


class _HostPeer(_Peer):
    """A library on the host: its inputs lie in host memory, and only the host's clock times it."""

    host = True
    needs = ("cpu",)

    def launch(self) -> None:
        self.found = self.compute()

    def results(self) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(array) for name, array in zip(self.names, self.found, strict=True)}


class _CudaPeer(_Peer):
    """A library on the GPU; it works on the device's own stream, so that device events time it."""

    needs = ("cuda",)
    modules: ClassVar[tuple[str, ...]] = ("cupy",)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.launch()  # compiles, and fills the libraries' memory pools
        self.device.finish()

    def launch(self) -> None:
        with self.device.stream:
            self.found = self.compute()

    def array(self, name: str, shape: tuple[int, ...] | None = None) -> Any:
        """A CuPy view of an input."""
        shape = shape or getattr(self.data, name).shape
        buffer: Any = inputs.array(self.setup, name)
        return buffer.array.view(np.float32)[: int(np.prod(shape))].reshape(shape)

    def results(self) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(array.get()) for name, array in zip(self.names, self.found, strict=True)}


# --- NumPy --------------------------------------------------------------------------------------------------------


class _Numpy(_HostPeer):
    """By images: channels x positions matrices, whose products are the BLAS library's."""

    source = version_of("numpy")

    def images(self, name: str) -> list[np.ndarray]:
        """An array's images as (channels, positions); in NHWC these are transposed views."""
        array = getattr(self.data, name)
        if self.data.nhwc:
            return [array.reshape(-1, self.data.channels).T]
        return list(array.reshape(self.data.batch, self.data.channels, -1))

    def stacked(self, images: list[np.ndarray]) -> np.ndarray:
        """Images, laid out as the input."""
        return images[0].T if self.data.nhwc else np.stack(images)

    def prepare(self) -> None:
        self.gamma, self.beta = self.data.gamma, self.data.beta
        self.w = self.images("w")
        if not isinstance(self.data, Forward):
            self.delta = self.images("delta")
        if isinstance(self.data, (Backward, GammaGradient)):
            self.d = self.images("d")

    def forward(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """u and D of each image."""
        d = [1 / np.sqrt(reference.pool(w, self.gamma, self.beta)) for w in self.w]
        return [w / x if self.data.inverse else w * x for w, x in zip(self.w, d, strict=True)], d

    def parameters(self, d: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """dgamma and dbeta: the images' own, summed."""
        parts = [
            reference.parameter_gradients(*image, self.data.inverse)
            for image in zip(self.delta, self.w, d, strict=True)
        ]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)  # type: ignore[return-value]

    def gradients(self, d: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """All three."""
        dw = [
            reference.input_gradient(*image, self.gamma, self.data.inverse)
            for image in zip(self.delta, self.w, d, strict=True)
        ]
        return self.stacked(dw), *self.parameters(d)


class NumpyForward(_Numpy):
    """Four array operations to an image."""

    problem = Forward
    name, title, rung = "numpy", "NumPy in float32, by images", 1

    def compute(self) -> tuple[Any, ...]:
        return tuple(self.stacked(images) for images in self.forward())[: len(self.names)]


class NumpyGammaGradient(_Numpy):
    """One product to an image."""

    problem = GammaGradient
    name, title, rung = "numpy", "NumPy in float32, by images", 1

    def compute(self) -> tuple[Any, ...]:
        return self.parameters(self.d)[:1]


class NumpyBackward(_Numpy):
    """Two products to an image."""

    problem = Backward
    name, title, rung = "numpy", "NumPy in float32, by images", 1

    def compute(self) -> tuple[Any, ...]:
        return self.gradients(self.d)


class NumpyStep(_Numpy):
    """Three products to an image."""

    problem = Step
    name, title, rung = "numpy", "NumPy in float32, by images", 1

    def compute(self) -> tuple[Any, ...]:
        u, d = self.forward()
        return self.stacked(u), *self.gradients(d)


class NumpyReduction(_HostPeer):
    """Pairwise sums of rows."""

    problem = Reduction
    name, title, rung = "numpy", "NumPy sum along rows, one core", 1
    source = version_of("numpy")

    def prepare(self) -> None:
        self.raw = self.data.rows(np.arange(self.data.vectors))

    def compute(self) -> tuple[Any, ...]:
        return (self.raw.sum(axis=1),)


# --- PyTorch ------------------------------------------------------------------------------------------------------


class _Torch(_Peer):
    """The training libraries' form: square, 1 x 1 convolution, root, multiplication; gradients by autograd."""

    source = version_of("torch")
    compiled: ClassVar[bool] = False

    def tensor(self, name: str) -> Any:
        """An input as a tensor."""
        raise NotImplementedError

    def maps(self, name: str) -> Any:
        """An array of the input's size as (batch, channels, height, width), in its own layout."""
        tensor = self.tensor(name)
        return tensor.permute(0, 3, 1, 2) if self.data.nhwc else tensor

    def prepare(self) -> None:
        import torch

        self.torch = torch
        inverse = self.data.inverse

        def forward(w: Any, gamma: Any, beta: Any) -> Any:
            z = torch.nn.functional.conv2d(w * w, gamma[:, :, None, None], beta)
            return w * torch.sqrt(z) if inverse else w * torch.rsqrt(z)

        if self.compiled:
            import torch._dynamo.config as dynamo
            import torch._functorch.config as functorch

            # All problems of a worker compile this one function; beyond the limit (8) it runs uncompiled, in silence.
            dynamo.cache_size_limit = dynamo.accumulated_cache_size_limit = 1 << 16
            if isinstance(self.data, Backward):
                functorch.donated_buffer = False  # its graph is walked again and again
        self.forward = self._compile(forward)
        self.w = self.maps("w").detach()
        self.gamma, self.beta = self.tensor("gamma").detach(), self.tensor("beta").detach()
        if not isinstance(self.data, Forward):
            self.delta = self.maps("delta")
            for leaf in (self.w, self.gamma, self.beta):
                leaf.requires_grad_(True)
        if isinstance(self.data, Backward):
            with self.mode():
                self.u = self.forward(self.w, self.gamma, self.beta)

    def _compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self.torch.compile(function, dynamic=False) if self.compiled else function

    def mode(self) -> Any:
        """A context in which the library computes in this peer's precision."""
        raise NotImplementedError

    def compute(self) -> tuple[Any, ...]:
        with self.mode():
            if isinstance(self.data, Forward):
                with self.torch.no_grad():
                    return (self.forward(self.w, self.gamma, self.beta),)
            leaves = (self.w, self.gamma, self.beta)
            if isinstance(self.data, Backward):
                return self.torch.autograd.grad(self.u, leaves, self.delta, retain_graph=True)
            u = self.forward(*leaves)
            return u, *self.torch.autograd.grad(u, leaves, self.delta)

    @property
    def names(self) -> tuple[str, ...]:
        """Autograd keeps what it saves to itself: there is no D."""
        return tuple(name for name in super().names if name.removesuffix(TF32) != "d")

    def results(self) -> dict[str, np.ndarray]:
        found = {}
        for name, tensor in zip(self.names, self.found, strict=True):
            four = self.data.nhwc and tensor.ndim == 4
            found[name] = (tensor.permute(0, 2, 3, 1) if four else tensor).detach().contiguous().cpu().numpy()
        return found


class _TorchCpu(_Torch, _HostPeer):
    modules = ("torch",)

    def tensor(self, name: str) -> Any:
        return self.torch.from_numpy(getattr(self.data, name)).clone()

    def mode(self) -> Any:
        self.torch.set_num_threads(usable_cores())
        return self.torch.enable_grad()

    def results(self) -> dict[str, np.ndarray]:
        return _Torch.results(self)


class _TorchCuda(_Torch, _CudaPeer):
    modules = ("cupy", "torch")

    def tensor(self, name: str) -> Any:
        return self.torch.as_tensor(self.array(name), device=f"cuda:{self.device.number}")

    def mode(self) -> Any:
        tf32 = self.precision == "tf32"
        self.torch.backends.cudnn.allow_tf32 = tf32
        self.torch.backends.cuda.matmul.allow_tf32 = tf32
        stream = self.torch.cuda.ExternalStream(self.device.stream.ptr, device=self.device.number)
        return self.torch.cuda.stream(stream)

    def launch(self) -> None:
        self.found = self.compute()

    def results(self) -> dict[str, np.ndarray]:
        return _Torch.results(self)


class TorchCpuForward(_TorchCpu):
    """What a user without a GPU runs."""

    problem = Forward
    name, title, rung = "torch_cpu", "PyTorch on the host, eager, all cores", 2


class TorchEagerForward(_TorchCuda):
    """Four operators."""

    problem = Forward
    name, title, rung = "torch_eager", "PyTorch, eager, TF32 off", 3


class TorchCompiledForward(_TorchCuda):
    """The compiler fuses what stands around the convolution."""

    problem = Forward
    name, title, rung = "torch_compiled", "PyTorch, compiled, TF32 off", 4
    compiled = True


class TorchEagerTf32Forward(_TorchCuda):
    """Four operators, the convolution in TF32."""

    problem = Forward
    name, title, rung = "torch_eager_tf32", "PyTorch, eager, TF32 on", 5
    precision, unit = "tf32", "tf32_mma"


class TorchCompiledTf32Forward(_TorchCuda):
    """Compiled, the convolution in TF32."""

    problem = Forward
    name, title, rung = "torch_compiled_tf32", "PyTorch, compiled, TF32 on", 6
    compiled, precision, unit = True, "tf32", "tf32_mma"


class TorchCpuBackward(_TorchCpu):
    """What a user without a GPU runs."""

    problem = Backward
    name, title, rung = "torch_cpu", "PyTorch on the host, eager, all cores", 2


class TorchEagerBackward(_TorchCuda):
    """Four operators."""

    problem = Backward
    name, title, rung = "torch_eager", "PyTorch, eager, TF32 off", 3


class TorchCompiledBackward(_TorchCuda):
    """The compiler fuses what stands around the convolution."""

    problem = Backward
    name, title, rung = "torch_compiled", "PyTorch, compiled, TF32 off", 4
    compiled = True


class TorchEagerTf32Backward(_TorchCuda):
    """Four operators, the convolution in TF32."""

    problem = Backward
    name, title, rung = "torch_eager_tf32", "PyTorch, eager, TF32 on", 5
    precision, unit = "tf32", "tf32_mma"


class TorchCompiledTf32Backward(_TorchCuda):
    """Compiled, the convolution in TF32."""

    problem = Backward
    name, title, rung = "torch_compiled_tf32", "PyTorch, compiled, TF32 on", 6
    compiled, precision, unit = True, "tf32", "tf32_mma"


class TorchCpuStep(_TorchCpu):
    """What a user without a GPU runs."""

    problem = Step
    name, title, rung = "torch_cpu", "PyTorch on the host, eager, all cores", 2


class TorchEagerStep(_TorchCuda):
    """Four operators."""

    problem = Step
    name, title, rung = "torch_eager", "PyTorch, eager, TF32 off", 3


class TorchCompiledStep(_TorchCuda):
    """The compiler fuses what stands around the convolution."""

    problem = Step
    name, title, rung = "torch_compiled", "PyTorch, compiled, TF32 off", 4
    compiled = True


class TorchEagerTf32Step(_TorchCuda):
    """Four operators, the convolution in TF32."""

    problem = Step
    name, title, rung = "torch_eager_tf32", "PyTorch, eager, TF32 on", 5
    precision, unit = "tf32", "tf32_mma"


class TorchCompiledTf32Step(_TorchCuda):
    """Compiled, the convolution in TF32."""

    problem = Step
    name, title, rung = "torch_compiled_tf32", "PyTorch, compiled, TF32 on", 6
    compiled, precision, unit = True, "tf32", "tf32_mma"


# --- CuPy and cuBLAS ----------------------------------------------------------------------------------------------


class _Cupy(_CudaPeer):
    """A product by cuBLAS, and elementwise kernels around it."""

    modules = ("cupy", "cupy_backends.cuda.libs.cublas")
    source = version_of("cupy-cuda13x")

    def prepare(self) -> None:
        import cupy

        self.cupy = cupy
        self.square = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * x", "square")

    def maps(self, name: str) -> Any:
        """An array of the input's size: (batch, channels, pixels), or (positions, channels) in NHWC."""
        n, data = self.data.channels, self.data
        return self.array(name, (data.positions, n) if data.nhwc else (data.batch, n, data.pixels))


class CupyForward(_Cupy):
    """Squares, one product, one kernel for the rest."""

    problem = Forward
    name, title, rung = "cupy_gemm", "CuPy: elementwise square, cuBLAS product, elementwise rest", 7

    def prepare(self) -> None:
        super().prepare()
        self.w, self.gamma = self.maps("w"), self.array("gamma")
        beta = self.array("beta")
        self.beta = beta if self.data.nhwc else beta[:, None]
        result = "w * sqrtf(z)" if self.data.inverse else "w * d"
        self.finish = self.cupy.ElementwiseKernel(
            "float32 w, float32 s, float32 beta", "float32 u, float32 d",
            f"float z = s + beta; d = rsqrtf(z); u = {result}", "normalize",
        ) if self.data.training else self.cupy.ElementwiseKernel(
            "float32 w, float32 s, float32 beta", "float32 u",
            f"float z = s + beta, d = rsqrtf(z); u = {result}", "normalize",
        )  # fmt: skip

    def compute(self) -> tuple[Any, ...]:
        squares = self.square(self.w)
        sums = squares @ self.gamma.T if self.data.nhwc else self.cupy.matmul(self.gamma, squares)
        found = self.finish(self.w, sums, self.beta)
        return found if self.data.training else (found,)


class CupyGammaGradient(_Cupy):
    """One kernel for t, squares, one product."""

    problem = GammaGradient
    name, title, rung = "cupy_gemm", "CuPy: elementwise t and square, cuBLAS product", 7

    def prepare(self) -> None:
        super().prepare()
        self.delta, self.w, self.d = (self.maps(name) for name in ("delta", "w", "d"))
        term = "0.5f * delta * w * d" if self.data.inverse else "-0.5f * delta * w * d * d * d"
        self.term = self.cupy.ElementwiseKernel(
            "float32 delta, float32 w, float32 d", "float32 t", f"t = {term}", "term"
        )

    def compute(self) -> tuple[Any, ...]:
        t, squares = self.term(self.delta, self.w, self.d), self.square(self.w)
        if self.data.nhwc:
            return (t.T @ squares,)
        return (self.cupy.matmul(t, squares.transpose(0, 2, 1)).sum(axis=0),)


class _Cublas(_CudaPeer):
    """cuBLAS on the matrices that the source gives it: N rows of P words, times a vector of ones."""

    problem = Reduction
    modules = ("cupy", "cupy_backends.cuda.libs.cublas")
    source = version_of("nvidia-cublas")

    def prepare(self) -> None:
        import cupy
        from cupy_backends.cuda.libs import cublas

        self.cupy, self.cublas = cupy, cublas
        raw: Any = inputs.raw(self.setup)
        self.raw = raw.array.data.ptr
        self.ones = self.array_of_ones()
        self.out = cupy.empty(self.data.vectors, np.float32)
        self.scalars = np.array([1, 0], np.float32)
        self.one, self.zero = self.scalars.ctypes.data, self.scalars.ctypes.data + 4

    def array_of_ones(self) -> int:
        """Address of the ones."""
        buffer: Any = inputs.ones(self.setup)
        return int(buffer.array.data.ptr)

    def compute(self) -> tuple[Any, ...]:
        handle = self.cupy.cuda.device.get_cublas_handle()
        mode = self.cublas.getPointerMode(handle)
        self.cublas.setPointerMode(handle, self.cublas.CUBLAS_POINTER_MODE_HOST)
        try:
            self.sum(handle, self.data.channels, self.data.positions)
        finally:
            self.cublas.setPointerMode(handle, mode)
        return (self.out,)

    def sum(self, handle: int, n: int, positions: int) -> None:
        """Enqueue the calls; rows of P words are columns of cuBLAS's transposed matrix."""
        raise NotImplementedError


class CublasGemvLoop(_Cublas):
    """N calls of ``cublasSgemv``."""

    name, title, rung = "cublas_gemv_loop", "cuBLAS: loop of N matrix-vector products", 2

    def sum(self, handle: int, n: int, positions: int) -> None:
        for row in range(n):
            self.cublas.sgemv(
                handle, self.cublas.CUBLAS_OP_T, positions, n, self.one, self.raw + 4 * row * n * positions, positions,
                self.ones, 1, self.zero, self.out.data.ptr + 4 * row * n, 1,
            )  # fmt: skip


class CublasGemmBatched(_Cublas):
    """One call of ``cublasSgemmStridedBatched``."""

    name, title, rung = "cublas_gemm_batched", "cuBLAS: one batched matrix product", 3

    def sum(self, handle: int, n: int, positions: int) -> None:
        transposed, plain = self.cublas.CUBLAS_OP_T, self.cublas.CUBLAS_OP_N
        self.cublas.sgemmStridedBatched(
            handle, transposed, plain, n, 1, positions, self.one, self.raw, positions, n * positions,
            self.ones, positions, 0, self.zero, self.out.data.ptr, n, n, n,
        )  # fmt: skip
