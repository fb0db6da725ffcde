"""cuBLAS on the matrices that the source gives it: N rows of P words, times a vector of ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from perfport.workload import CudaPeer, Tunable, version_of

from ...problems import Reduction
from .. import inputs


class _Cublas(CudaPeer):
    problem = Reduction
    modules = ("cupy", "cupy_backends.cuda.libs.cublas")
    source = version_of("nvidia-cublas")

    def prepare(self) -> None:
        import cupy
        from cupy_backends.cuda.libs import cublas

        self.cupy, self.cublas = cupy, cublas
        buffers: tuple[Any, Any] = inputs.raw(self.setup), inputs.ones(self.setup)
        self.raw, self.ones = (int(buffer.array.data.ptr) for buffer in buffers)
        self.out = cupy.empty(self.data.vectors, np.float32)
        self.scalars = np.array([1, 0], np.float32)
        self.one, self.zero = self.scalars.ctypes.data, self.scalars.ctypes.data + 4

    def compute(self) -> Mapping[str, Any]:
        handle = self.cupy.cuda.device.get_cublas_handle()
        mode = self.cublas.getPointerMode(handle)
        self.cublas.setPointerMode(handle, self.cublas.CUBLAS_POINTER_MODE_HOST)
        try:
            self.sum(handle, self.data.channels, self.data.positions)
        finally:
            self.cublas.setPointerMode(handle, mode)
        return {"sums": self.out}

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
    """One call of ``cublasSgemmStridedBatched``; matrices and ones may stand on either side of the product."""

    name, title, rung = "cublas_gemm_batched", "cuBLAS: one batched matrix product", 3
    tunables: ClassVar = {"ones": Tunable("right", ("right", "left"), "side of the product that the ones stand on")}

    def sum(self, handle: int, n: int, positions: int) -> None:
        transposed, plain = self.cublas.CUBLAS_OP_T, self.cublas.CUBLAS_OP_N
        matrices, ones = (self.raw, positions, n * positions), (self.ones, positions, 0)
        right = self.setup.tunables["ones"] == "right"
        self.cublas.sgemmStridedBatched(
            handle, transposed, plain, *((n, 1) if right else (1, n)), positions, self.one,
            *((*matrices, *ones) if right else (*ones, *matrices)), self.zero, self.out.data.ptr, n if right else 1, n,
            n,
        )  # fmt: skip
