"""Peers by CuPy: im2col's own kernel, products by cuBLAS and cuSPARSE. It is imported when a peer is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import CudaPeer, Tunable, version_of

from ..problems import SparseConv
from ..weights import compressed
from .im2col import Im2col


class _Products(Im2col):
    """im2col's kernel, then a library's product of [filters, taps] by [taps, columns], on CuPy's current stream."""

    factor: Any
    operands: ClassVar[Tunable]

    def prepare_product(self) -> None:
        import cupy

        self.cupy: Any = cupy
        self.form = self.tunables["operands"]
        self.convert()

    def convert(self) -> None:
        """Bring the weights into the library's form."""
        raise NotImplementedError

    def product(self, unrolled: Any, images: int) -> Any:
        """Return the product with [taps, images x pixels] as [images, filters, pixels]."""
        raise NotImplementedError

    def multiply(self, first: int, columns: int) -> None:
        o = self.operator
        matrix: Any = self.matrix
        result: Any = self.result
        images = columns // o.pixels
        unrolled = matrix.array.view(np.float32)[: o.taps * columns].reshape(o.taps, columns)
        out = result.array.view(np.float32)[: self.batch * o.outputs].reshape(self.batch, o.filters, o.pixels)
        out[first : first + images] = self.product(unrolled, images)


class _CublasProducts(_Products):
    operands = Tunable("filters first", ("filters first", "columns first"), "order of the product's operands")

    def convert(self) -> None:
        self.factor = self.cupy.asarray(self.layer.weights.reshape(self.operator.filters, -1))

    def product(self, unrolled: Any, images: int) -> Any:
        if self.form == "filters first":
            return (self.factor @ unrolled).reshape(-1, images, self.operator.pixels).transpose(1, 0, 2)
        return (unrolled.T @ self.factor.T).reshape(images, self.operator.pixels, -1).transpose(0, 2, 1)


class _CusparseProducts(_Products):
    operands = Tunable("copied", ("as they are", "copied"), "a row-major matrix transposed by flag, or by a copy")

    def convert(self) -> None:
        from cupyx import cusparse
        from cupyx.scipy import sparse

        self.cusparse: Any = cusparse
        rows = compressed(self.layer.weights)
        arrays = tuple(self.cupy.asarray(array) for array in (rows.values, rows.taps, rows.starts))
        self.factor = sparse.csr_matrix(arrays, shape=(self.operator.filters, self.operator.taps))
        self.factor.sum_duplicates()  # marks the rows as sorted, which `spmm` asks for

    def product(self, unrolled: Any, images: int) -> Any:
        if self.form == "copied":
            result = self.factor @ unrolled
        else:
            result = self.cusparse.spmm(self.factor, unrolled.T, transb=True)
        return result.reshape(-1, images, self.operator.pixels).transpose(1, 0, 2)


class _Unrolled(CudaPeer):
    """An im2col engine as a peer; its output is the problem's buffer."""

    problem = SparseConv
    source = version_of("cupy-cuda13x", "cupy-cuda12x")
    engine: ClassVar[type[Im2col]]

    def prepare(self) -> None:
        source = self.setup.input("x", lambda: self.device.upload(self.data.x))
        result = self.setup.output("y", np.float32, self.data.shape)
        self.convolution = self.engine(self.setup, self.data.layer, source, result, self.setup.tunables)

    def compute(self) -> Mapping[str, Any]:
        self.convolution.launch()
        return {}


class CublasIm2col(_Unrolled):
    """Dense; CuPy's matmul keeps FP32."""

    engine = _CublasProducts
    tunables: ClassVar = {"operands": engine.operands}
    name, title, rung = "cublas_im2col", "im2col and cuBLAS, dense, FP32", 10


class CusparseIm2col(_Unrolled):
    """Columns are split at 10^6: above 1 048 560 cuSPARSE has returned zeros without an error."""

    engine = _CusparseProducts
    tunables: ClassVar = {"operands": engine.operands}
    name, title, rung = "cusparse_im2col", "im2col and cuSPARSE, FP32", 11
