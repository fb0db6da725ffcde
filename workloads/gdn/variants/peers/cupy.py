"""CuPy on the GPU: a product by cuBLAS, and elementwise kernels around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfport.workload import CudaPeer, version_of

from ...problems import Forward, GammaGradient
from .. import inputs


class _Cupy(CudaPeer):
    modules = ("cupy", "cupy_backends.cuda.libs.cublas")
    source = version_of("cupy-cuda13x")

    def prepare(self) -> None:
        import cupy

        self.cupy = cupy
        self.square = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * x", "square")

    def array(self, name: str) -> Any:
        """An input."""
        return self.view(inputs.array(self.setup, name), getattr(self.data, name).shape)

    def maps(self, name: str) -> Any:
        """An array of the input's size: (batch, channels, pixels), or (positions, channels) in NHWC."""
        n, data = self.data.channels, self.data
        shape = (data.positions, n) if data.nhwc else (data.batch, n, data.pixels)
        return self.array(name).reshape(shape)


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

    def compute(self) -> Mapping[str, Any]:
        squares = self.square(self.w)
        sums = squares @ self.gamma.T if self.data.nhwc else self.cupy.matmul(self.gamma, squares)
        outputs = self.finish(self.w, sums, self.beta)
        maps = dict(zip(("u", "d"), outputs, strict=True)) if self.data.training else {"u": outputs}
        return {name: values.reshape(self.data.w.shape) for name, values in maps.items()}


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

    def compute(self) -> Mapping[str, Any]:
        t, squares = self.term(self.delta, self.w, self.d), self.square(self.w)
        if self.data.nhwc:
            return {"dgamma": t.T @ squares}
        return {"dgamma": self.cupy.matmul(t, squares.transpose(0, 2, 1)).sum(axis=0)}
