"""Peers by CuPy: im2col's own kernel, products by cuBLAS and cuSPARSE. It is imported when a peer is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import CudaPeer, version_of

from ..problems import SparseConv
from ..weights import compressed
from .im2col import Im2col


class _Products(Im2col):
    """im2col's kernel, then a library's product of [filters, taps] by [taps, columns], on CuPy's current stream."""

    factor: Any

    def prepare_product(self) -> None:
        import cupy

        self.cupy: Any = cupy
        self.convert()

    def convert(self) -> None:
        """Bring the weights into the library's form."""
        raise NotImplementedError

    def multiply(self, first: int, columns: int) -> None:
        o = self.operator
        matrix: Any = self.matrix
        result: Any = self.result
        images = columns // o.pixels
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


class _Unrolled(CudaPeer):
    """An im2col engine as a peer; its output is the problem's buffer."""

    problem = SparseConv
    source = version_of("cupy-cuda13x")
    engine: ClassVar[type[Im2col]]

    def prepare(self) -> None:
        source = self.setup.input("x", lambda: self.device.upload(self.data.x))
        result = self.setup.output("y", np.float32, self.data.shape)
        self.convolution = self.engine(self.setup, self.data.layer, source, result)

    def compute(self) -> Mapping[str, Any]:
        self.convolution.launch()
        return {}


class CublasIm2col(_Unrolled):
    """Dense; CuPy's matmul keeps FP32."""

    engine = _CublasProducts
    name, title, rung = "cublas_im2col", "im2col and cuBLAS, dense, FP32", 10


class CusparseIm2col(_Unrolled):
    """Columns are split at 10^6: above 1 048 560 cuSPARSE has returned zeros without an error."""

    engine = _CusparseProducts
    name, title, rung = "cusparse_im2col", "im2col and cuSPARSE, FP32", 11
