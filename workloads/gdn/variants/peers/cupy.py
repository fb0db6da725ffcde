"""CuPy on the GPU: a product by cuBLAS, and elementwise kernels around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from perfport.workload import CudaPeer, Tunable, version_of

from ...problems import Forward, GammaGradient, Reduction
from .. import inputs


def _products(default: str) -> dict[str, Tunable]:
    return {"products": Tunable(default, ("batched", "images"), "NCHW: one call for all images, or one for each")}


class _Cupy(CudaPeer):
    modules = ("cupy", "cupy_backends.cuda.libs.cublas")
    source = version_of("cupy-cuda13x", "cupy-cuda12x")

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
    tunables: ClassVar = _products("batched")

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
        if self.data.nhwc:
            sums = squares @ self.gamma.T
        elif self.setup.tunables["products"] == "batched":
            sums = self.cupy.matmul(self.gamma, squares)
        else:
            sums = self.cupy.empty_like(squares)
            for image, out in zip(squares, sums, strict=True):
                self.cupy.matmul(self.gamma, image, out=out)
        outputs = self.finish(self.w, sums, self.beta)
        maps = dict(zip(("u", "d"), outputs, strict=True)) if self.data.training else {"u": outputs}
        return {name: values.reshape(self.data.w.shape) for name, values in maps.items()}


class CupyGammaGradient(_Cupy):
    """One kernel for t, squares, one product."""

    problem = GammaGradient
    name, title, rung = "cupy_gemm", "CuPy: elementwise t and square, cuBLAS product", 7
    tunables: ClassVar = _products("images")

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
        if self.setup.tunables["products"] == "batched":
            return {"dgamma": self.cupy.matmul(t, squares.transpose(0, 2, 1)).sum(axis=0)}
        return {"dgamma": sum(own @ image.T for own, image in zip(t, squares, strict=True))}


class CupyReduction(CudaPeer):
    """The sums as an array operation: CUB's segmented reduction, or cuBLAS's product with ones."""

    problem = Reduction
    name, title, rung = "cupy", "CuPy: sums of rows in one call", 4
    source = version_of("cupy-cuda13x", "cupy-cuda12x")
    tunables: ClassVar = {"form": Tunable("sum", ("sum", "product"), "reduction, or product with a vector of ones")}

    def prepare(self) -> None:
        self.raw = self.view(inputs.raw(self.setup), (self.data.vectors, self.data.positions))
        self.ones = self.view(inputs.ones(self.setup), (self.data.positions,))

    def compute(self) -> Mapping[str, Any]:
        return {"sums": self.raw.sum(axis=1) if self.setup.tunables["form"] == "sum" else self.raw @ self.ones}
