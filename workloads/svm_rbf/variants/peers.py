"""Peers: what the libraries that people use instead need for the same problems.

Libraries are imported when a peer is built, never with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import CudaPeer, HostPeer, TorchCudaPeer, usable_cores, version_of

from ..problems import RbfRows
from ..smo import SmoTrain
from . import inputs

BLOCK_BYTES = 1 << 20  # rows that the host forms take at a time: the difference stays in a core's cache
ROW_NAMES = ("high_kernel", "low_kernel")


# --- rbf_rows -----------------------------------------------------------------------------------------------------


class RbfNumpy(HostPeer):
    """Direct form by blocks of rows."""

    problem = RbfRows
    name, title, rung = "numpy", "NumPy, direct form in float32 by blocks of rows, one core", 1
    source = version_of("numpy")

    def prepare(self) -> None:
        self.matrix = self.data.matrix
        self.step = max(1, BLOCK_BYTES // (4 * self.data.dims))

    def compute(self) -> Mapping[str, Any]:
        data = self.data
        out = {name: np.empty(data.points, np.float32) for name in ROW_NAMES}
        for first in range(0, data.points, self.step):
            rows = self.matrix[first : first + self.step]
            for point, values in zip((data.high, data.low), out.values(), strict=True):
                difference = rows - self.matrix[point]
                values[first : first + self.step] = np.einsum("ij,ij->i", difference, difference)
        for values in out.values():
            values *= -data.gamma
            np.exp(values, out=values)
        return out


class RbfSklearn(HostPeer):
    """Expanded form; scikit-learn takes float32 input to float64 by blocks, so that it stays accurate."""

    problem = RbfRows
    name, title, rung = "sklearn_rbf_kernel", "scikit-learn rbf_kernel (expanded form, float64 by blocks)", 2
    source = version_of("scikit-learn")
    modules = ("sklearn",)

    def prepare(self) -> None:
        from sklearn.metrics.pairwise import rbf_kernel

        self.rbf_kernel = rbf_kernel
        self.matrix = self.data.matrix
        self.pair = np.ascontiguousarray(self.matrix[[self.data.high, self.data.low]])

    def compute(self) -> Mapping[str, Any]:
        kernel = self.rbf_kernel(self.matrix, self.pair, gamma=float(self.data.gamma))
        return dict(zip(ROW_NAMES, kernel.T, strict=True))


class RbfTorchCpu(HostPeer):
    """Direct form by blocks of rows; on two cores a third faster than ``cdist`` without GEMM."""

    problem = RbfRows
    name, title, rung = "torch_cpu", "PyTorch, direct form by blocks of rows, all cores", 3
    source = version_of("torch")
    modules = ("torch",)

    def prepare(self) -> None:
        import torch

        self.torch = torch
        self.matrix = torch.from_numpy(self.data.matrix)
        self.step = max(1, BLOCK_BYTES // (4 * self.data.dims))
        self.block = torch.empty(min(self.step, self.data.points), self.data.dims)

    def compute(self) -> Mapping[str, Any]:
        torch, data = self.torch, self.data
        torch.set_num_threads(usable_cores())
        with torch.no_grad():
            out = {name: torch.empty(data.points) for name in ROW_NAMES}
            for first in range(0, data.points, self.step):
                rows = self.matrix[first : first + self.step]
                for point, values in zip((data.high, data.low), out.values(), strict=True):
                    difference = torch.sub(rows, self.matrix[point], out=self.block[: len(rows)])
                    torch.linalg.vector_norm(difference, dim=1, out=values[first : first + self.step])
            for values in out.values():
                values.square_().mul_(-float(data.gamma)).exp_()
        return out


class _RbfTorchCuda(TorchCudaPeer):
    problem = RbfRows
    source = version_of("torch")

    def row_major(self) -> Any:
        """The data as the problem states it."""
        return self.tensor(inputs.row_major(self.setup).buffer, (self.data.points, self.data.dims))


class RbfTorchGemm(_RbfTorchCuda):
    """|x|^2 + |y|^2 - 2 x.y, clamped at 0; the norms are made beforehand. Inaccurate far from the origin."""

    name, title, rung = "torch_gemm", "PyTorch GEMM, expanded form, norms computed beforehand", 4
    precision = "fp32 expanded"

    def prepare(self) -> None:
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = False
        self.matrix = self.row_major()
        self.pair = self.matrix[[self.data.high, self.data.low]].contiguous()
        step = max(1, (1 << 28) // self.data.dims)  # the squares of a part of the data at a time
        self.norms = torch.cat([part.square().sum(1) for part in self.matrix.split(step)])
        torch.cuda.synchronize()

    def compute(self) -> Mapping[str, Any]:
        pair_norms = self.norms[[self.data.high, self.data.low]]
        squared = self.torch.addmm(self.norms[:, None] + pair_norms, self.matrix, self.pair.T, alpha=-2.0)
        kernel = squared.clamp_(min=0.0).mul_(-float(self.data.gamma)).exp_()
        return dict(zip(ROW_NAMES, (kernel[:, 0], kernel[:, 1]), strict=True))


class _RbfTorchCompiled(_RbfTorchCuda):
    """The direct form as it is written, fused by the compiler."""

    dimension: ClassVar[int]  # the axis of the matrix that is summed over
    matrix: Any

    def compile_with(self, high: Any, low: Any) -> None:
        """Compile the sum over all dimensions, for views of the two points that broadcast with the matrix."""
        self.high, self.low = high.clone(), low.clone()
        self.torch.cuda.synchronize()
        gamma, dimension = -float(self.data.gamma), self.dimension

        def direct(matrix: Any, high: Any, low: Any) -> tuple[Any, Any]:
            return (
                ((matrix - high) ** 2).sum(dimension).mul(gamma).exp(),
                ((matrix - low) ** 2).sum(dimension).mul(gamma).exp(),
            )

        self.compiled = self.torch.compile(direct, dynamic=False)

    def compute(self) -> Mapping[str, Any]:
        return dict(zip(ROW_NAMES, self.compiled(self.matrix, self.high, self.low), strict=True))


class RbfTorchCompiledRows(_RbfTorchCompiled):
    """On the data as they are."""

    name, title, rung = "torch_compiled", "torch.compile of the direct form, row-major data", 5
    dimension = 1

    def prepare(self) -> None:
        self.matrix = self.row_major()
        self.compile_with(self.matrix[self.data.high], self.matrix[self.data.low])


class RbfTorchCompiledColumns(_RbfTorchCompiled):
    """The same on transposed data, whose cost is charged as re-layout."""

    name, title, rung = "torch_compiled_columns", "torch.compile of the direct form, column-major data", 6
    dimension = 0

    def prepare(self) -> None:
        layout = inputs.column_major(self.setup, 32)
        self.matrix = self.tensor(layout.buffer, (self.data.dims, layout.pitch))[:, : self.data.points]
        self.compile_with(self.matrix[:, self.data.high, None], self.matrix[:, self.data.low, None])


class RbfCupyFused(CudaPeer):
    """One `ReductionKernel`; the two sums are the two parts of a complex number, so that the data is read once."""

    problem = RbfRows
    name, title, rung = "cupy_fused", "CuPy ReductionKernel, both rows in one pass", 7
    source = version_of("cupy-cuda13x")

    def prepare(self) -> None:
        import cupy

        self.matrix = self.view(inputs.row_major(self.setup).buffer, (self.data.points, self.data.dims))
        self.high, self.low = self.matrix[self.data.high].copy(), self.matrix[self.data.low].copy()
        scale = f"{-float(self.data.gamma)!r}f"
        self.kernel = cupy.ReductionKernel(
            "float32 x, float32 h, float32 l", "complex64 y",
            "complex<float>((x - h) * (x - h), (x - l) * (x - l))", "a + b",
            f"y = complex<float>(expf({scale} * a.real()), expf({scale} * a.imag()))", "complex<float>(0)",
            "two_rbf_rows", reduce_type="complex<float>",
        )  # fmt: skip

    def compute(self) -> Mapping[str, Any]:
        kernel = self.kernel(self.matrix, self.high, self.low, axis=1)
        return dict(zip(ROW_NAMES, (kernel.real, kernel.imag), strict=True))


# --- smo_train ----------------------------------------------------------------------------------------------------


class SmoSklearn(HostPeer):
    """LIBSVM in float64 on one core, with shrinking and its default cache, at the same stop rule (tol = 2 tau).

    In the same precision class as the variants: one criterion, LIBSVM's own model at tol 1e-9, holds for all.
    """

    problem = SmoTrain
    name, title, rung = "sklearn_svc", "scikit-learn SVC (LIBSVM, float64, one core)", 1
    source = version_of("scikit-learn")
    modules = ("sklearn",)

    def prepare(self) -> None:
        from sklearn.svm import SVC

        data: SmoTrain = self.data
        self.matrix = data.matrix.astype(np.float64)
        tol = 2 * float(data.tau)
        self.model = SVC(C=float(data.penalty), kernel="rbf", gamma=float(data.gamma), tol=tol)

    def compute(self) -> Mapping[str, Any]:
        self.model.fit(self.matrix, self.data.labels)
        return {}

    def results(self) -> dict[str, np.ndarray]:
        alpha = np.zeros(self.data.points)
        alpha[self.model.support_] = np.abs(self.model.dual_coef_[0])
        return {"alpha": alpha, "b": -self.model.intercept_}

    def notes(self) -> dict[str, Any]:
        return {"iterations": int(self.model.n_iter_[0]), "support_vectors": int(self.model.support_.size)}
