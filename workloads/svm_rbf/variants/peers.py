"""Peers: what the libraries that people use instead need for the same problems.

Libraries are imported when a peer is built, never with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from perfport.workload import (
    COMPILER,
    CudaPeer,
    HostPeer,
    Peer,
    Problem,
    TorchCudaPeer,
    TorchHostPeer,
    Tunable,
    UnavailableError,
    version_of,
)

from ..problems import RbfRows
from ..smo import SmoTrain
from . import inputs

ROW_NAMES = ("high_kernel", "low_kernel")


# --- rbf_rows -----------------------------------------------------------------------------------------------------


class _RbfRows(Peer):
    """What host peers of the rows have in common: the two points, and blocks of rows that stay in a core's cache."""

    problem: ClassVar[type[Problem]] = RbfRows
    BLOCK: ClassVar = {"block_kib": Tunable(1024, (256, 1024, 4096), "data taken at a time, in KiB")}

    @property
    def step(self) -> int:
        """Rows of a block."""
        return max(1, (self.setup.tunables["block_kib"] << 10) // (4 * self.data.dims))


class RbfNumpy(_RbfRows, HostPeer):
    """Direct form by blocks of rows."""

    name, title, rung = "numpy", "NumPy, direct form in float32 by blocks of rows, one core", 1
    source = version_of("numpy")
    tunables: ClassVar = {
        **_RbfRows.BLOCK,
        "squares": Tunable("einsum", ("einsum", "vecdot"), "function that adds up a row's squares"),
    }

    def prepare(self) -> None:
        self.squares: Any
        if self.setup.tunables["squares"] == "einsum":
            self.squares = partial(np.einsum, "ij,ij->i")
        elif hasattr(np, "vecdot"):
            self.squares = np.vecdot
        else:
            raise UnavailableError(f"NumPy {np.__version__} has no vecdot; versions from 2.0 on have it")
        self.matrix = self.data.matrix
        self.block = np.empty((min(self.step, self.data.points), self.data.dims), np.float32)

    def compute(self) -> Mapping[str, Any]:
        data = self.data
        out = {name: np.empty(data.points, np.float32) for name in ROW_NAMES}
        for first in range(0, data.points, self.step):
            rows = self.matrix[first : first + self.step]
            for point, values in zip((data.high, data.low), out.values(), strict=True):
                difference = np.subtract(rows, self.matrix[point], out=self.block[: len(rows)])
                self.squares(difference, difference, out=values[first : first + self.step])
        for values in out.values():
            values *= -data.gamma
            np.exp(values, out=values)
        return out


class RbfSklearn(HostPeer):
    """Expanded form; scikit-learn takes float32 input to float64 by blocks, so that it stays accurate."""

    problem = RbfRows
    name, title, rung = "sklearn_rbf_kernel", "scikit-learn, expanded form in float64", 2
    source = version_of("scikit-learn")
    modules = ("sklearn",)
    tunables: ClassVar = {
        "form": Tunable(
            "float32", ("float32", "float64", "norms"),
            "data of rbf_kernel; norms: float64, euclidean_distances with norms computed beforehand",
        ),
    }  # fmt: skip

    def prepare(self) -> None:
        dtype = np.float32 if self.setup.tunables["form"] == "float32" else np.float64
        self.matrix = self.data.matrix.astype(dtype, copy=False)
        self.pair = np.ascontiguousarray(self.matrix[[self.data.high, self.data.low]])
        self.norms = [np.einsum("ij,ij->i", points, points) for points in (self.matrix, self.pair)]

    def compute(self) -> Mapping[str, Any]:
        from sklearn.metrics import pairwise

        gamma = float(self.data.gamma)
        if self.setup.tunables["form"] == "norms":
            kernel = pairwise.euclidean_distances(
                self.matrix, self.pair, X_norm_squared=self.norms[0], Y_norm_squared=self.norms[1], squared=True
            )
            kernel *= -gamma
            np.exp(kernel, out=kernel)
        else:
            kernel = pairwise.rbf_kernel(self.matrix, self.pair, gamma=gamma)
        return dict(zip(ROW_NAMES, kernel.T.astype(np.float32), strict=True))


class RbfTorchCpu(_RbfRows, TorchHostPeer):
    """Direct form by blocks of rows, or ``cdist`` without a product, over all rows."""

    name, title, rung = "torch_cpu", "PyTorch on the host, direct form", 3
    source = version_of("torch")
    tunables: ClassVar = {
        **_RbfRows.BLOCK, **TorchHostPeer.tunables, "form": Tunable("blocks", ("blocks", "cdist"), "of the distances"),
    }  # fmt: skip

    def prepare(self) -> None:
        self.matrix = self.upload(self.data.matrix)
        self.pair = self.matrix[[self.data.high, self.data.low]]
        self.block = self.torch.empty(min(self.step, self.data.points), self.data.dims)

    def compute(self) -> Mapping[str, Any]:
        torch = self.torch
        if self.setup.tunables["form"] == "cdist":
            out = torch.cdist(self.pair, self.matrix, compute_mode="donot_use_mm_for_euclid_dist")
        else:
            out = torch.empty(2, self.data.points)
            for first in range(0, self.data.points, self.step):
                rows = self.matrix[first : first + self.step]
                for point, values in zip(self.pair, out, strict=True):
                    difference = torch.sub(rows, point, out=self.block[: len(rows)])
                    torch.linalg.vector_norm(difference, dim=1, out=values[first : first + self.step])
        return dict(zip(ROW_NAMES, out.square_().mul_(-float(self.data.gamma)).exp_(), strict=True))


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
    tunables: ClassVar = {
        "form": Tunable("compiled", ("eager", "compiled"), "operations one by one, or fused"),
        "pair": Tunable("left", ("left", "right"), "side of the product that the two points stand on"),
        "compiler": COMPILER,
    }

    def prepare(self) -> None:
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = False
        self.matrix = self.row_major()
        pair = [self.data.high, self.data.low]
        step = max(1, (1 << 28) // self.data.dims)  # the squares of a part of the data at a time
        norms = torch.cat([part.square().sum(1) for part in self.matrix.split(step)])
        self.operands = self.matrix, self.matrix[pair].contiguous(), norms, norms[pair]
        torch.cuda.synchronize()
        gamma, left = -float(self.data.gamma), self.setup.tunables["pair"] == "left"

        def expanded(matrix: Any, pair: Any, norms: Any, pair_norms: Any) -> tuple[Any, Any]:
            if left:
                squared = torch.addmm(norms + pair_norms[:, None], pair, matrix.T, alpha=-2.0)
            else:
                squared = torch.addmm(norms[:, None] + pair_norms, matrix, pair.T, alpha=-2.0).T
            kernel = squared.clamp(min=0.0).mul(gamma).exp()
            return kernel[0], kernel[1]

        self.rows = self.compiled(expanded) if self.setup.tunables["form"] == "compiled" else expanded

    def compute(self) -> Mapping[str, Any]:
        return dict(zip(ROW_NAMES, self.rows(*self.operands), strict=True))


class RbfTorchCompiledRows(_RbfTorchCuda):
    """The direct form as it is written, fused by the compiler."""

    name, title, rung = "torch_compiled", "torch.compile of the direct form, row-major data", 5
    tunables: ClassVar = {"compiler": COMPILER}
    dimension: ClassVar[int] = 1  # the axis of the matrix that is summed over

    def prepare(self) -> None:
        gamma, dimension = -float(self.data.gamma), self.dimension
        matrix = self.laid_out()
        # Views of the two points that broadcast with the matrix.
        points = (matrix.narrow(1 - dimension, int(at), 1).clone() for at in (self.data.high, self.data.low))
        self.operands = (matrix, *points)
        self.torch.cuda.synchronize()

        def direct(matrix: Any, high: Any, low: Any) -> tuple[Any, Any]:
            return (
                ((matrix - high) ** 2).sum(dimension).mul(gamma).exp(),
                ((matrix - low) ** 2).sum(dimension).mul(gamma).exp(),
            )

        self.rows = self.compiled(direct)

    def laid_out(self) -> Any:
        """The matrix as this peer takes it."""
        return self.row_major()

    def compute(self) -> Mapping[str, Any]:
        return dict(zip(ROW_NAMES, self.rows(*self.operands), strict=True))


class RbfTorchCompiledColumns(RbfTorchCompiledRows):
    """The same on transposed data, whose cost is charged as re-layout."""

    name, title, rung = "torch_compiled_columns", "torch.compile of the direct form, column-major data", 6
    dimension = 0

    def laid_out(self) -> Any:
        layout = inputs.column_major(self.setup, 32)
        return self.tensor(layout.buffer, (self.data.dims, layout.pitch))[:, : self.data.points]


class RbfCupyFused(CudaPeer):
    """One `ReductionKernel`; the two sums are the two parts of a complex number, so that the data is read once."""

    problem = RbfRows
    name, title, rung = "cupy_fused", "CuPy ReductionKernel, both rows in one pass", 7
    source = version_of("cupy-cuda13x", "cupy-cuda12x")
    tunables: ClassVar = {"layout": Tunable("columns", ("rows", "columns"), "of the data; columns are a re-layout")}

    def prepare(self) -> None:
        import cupy

        if self.setup.tunables["layout"] == "rows":
            self.matrix = self.view(inputs.row_major(self.setup).buffer, (self.data.points, self.data.dims))
        else:
            layout = inputs.column_major(self.setup, 32)
            self.matrix = self.view(layout.buffer, (self.data.dims, layout.pitch))[:, : self.data.points].T
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
    """LIBSVM in float64 on one core, at the same stop rule (tol = 2 tau).

    In the same precision class as the variants: one criterion, LIBSVM's own model at tol 1e-9, holds for all.
    """

    problem = SmoTrain
    name, title, rung = "sklearn_svc", "scikit-learn SVC (LIBSVM, float64, one core)", 1
    source = version_of("scikit-learn")
    modules = ("sklearn",)
    tunables: ClassVar = {
        "cache_mb": Tunable(2000, (200, 2000), "kernel rows kept; 200 is the library's default"),
        "shrinking": Tunable(1, (0, 1), "variables at their bounds are left out for a while"),
    }

    def prepare(self) -> None:
        from sklearn.svm import SVC

        data: SmoTrain = self.data
        self.matrix = data.matrix.astype(np.float64)
        tol = 2 * float(data.tau)
        cache, shrinking = self.setup.tunables["cache_mb"], bool(self.setup.tunables["shrinking"])
        self.model = SVC(C=float(data.penalty), gamma=float(data.gamma), tol=tol, cache_size=cache, shrinking=shrinking)

    def compute(self) -> Mapping[str, Any]:
        self.model.fit(self.matrix, self.data.labels)
        return {}

    def results(self) -> dict[str, np.ndarray]:
        alpha = np.zeros(self.data.points)
        alpha[self.model.support_] = np.abs(self.model.dual_coef_[0])
        return {"alpha": alpha, "b": -self.model.intercept_}

    def notes(self) -> dict[str, Any]:
        return {"iterations": int(self.model.n_iter_[0]), "support_vectors": int(self.model.support_.size)}
