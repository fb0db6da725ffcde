"""The engine on matrix units (``tensor_core.cu``): the tiled engine with products by ``mma.sync``."""

from __future__ import annotations

from typing import Any, ClassVar

from perfport.device import DeviceInfo
from perfport.errors import UnsupportedError
from perfport.work import Traffic
from perfport.workload import Setup, Tunable, Variant

from .engine import Engine
from .tiled import Tiled, require_multiple

WARP = 32
LEAST_CAPABILITY = (8, 0)


def require_matrix_units(info: DeviceInfo) -> None:
    """Raise `UnsupportedError` on a CUDA device without TF32 and bf16 units."""
    capability = tuple(int(part) for part in (info.compute_capability or "0.0").split("."))
    if capability < LEAST_CAPABILITY:
        raise UnsupportedError(f"needs compute capability 8.0 (TF32 and bf16), {info.id} has {info.compute_capability}")


class TensorCores(Tiled):
    """A tile per work-group, a smaller one per warp; operands rounded or split while they are staged."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        "rows": Tunable(64, (32, 64, 96, 128, 192), "channels of a work-group's tile"),
        "columns": Tunable(128, (32, 64, 128, 256), "positions of a work-group's tile"),
        "warp_rows": Tunable(64, (16, 32, 48, 64, 96), "channels of a warp's tile"),
        "warp_columns": Tunable(32, (16, 32, 48, 64, 96), "positions of a warp's tile"),
        "words": Tunable(8, (8, 16), "words of the inner dimension per step"),
    }
    GAMMA_TUNABLES: ClassVar[dict[str, Tunable]] = {
        "gamma_rows": Tunable(64, (32, 64, 96, 128, 192), "rows of a tile of dgamma"),
        "gamma_columns": Tunable(64, (32, 64, 96, 128, 192), "columns of a tile of dgamma"),
        "gamma_warp_rows": Tunable(32, (16, 32, 48, 64, 96), "rows of a warp's tile of dgamma"),
        "gamma_warp_columns": Tunable(32, (16, 32, 48, 64, 96), "columns of a warp's tile of dgamma"),
        "gamma_words": Tunable(16, (8, 16), "words of positions per step of dgamma's product"),
        "run": Tunable(2048, (512, 1024, 2048, 4096, 8192), "positions of a split of dgamma's product"),
    }
    file: ClassVar[str] = "tensor_core.cu"
    terms: ClassVar[int] = 3
    bf16: ClassVar[bool] = False

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.parts = 2 if self.terms == 3 else 1

    def _check(self, shape: dict[str, int]) -> None:
        require_multiple(shape, "ROWS", shape["WARP_ROWS"])
        require_multiple(shape, "COLUMNS", shape["WARP_COLUMNS"])

    def _local_bytes(self, shape: dict[str, int]) -> int:
        return 8 * self.parts * (shape["ROWS"] + shape["COLUMNS"]) * (shape["WORDS"] + 4)

    def _warps(self, shape: dict[str, int]) -> int:
        return shape["ROWS"] // shape["WARP_ROWS"] * (shape["COLUMNS"] // shape["WARP_COLUMNS"])

    def _items(self, shape: dict[str, int]) -> int:
        return WARP * self._warps(shape)

    def _depth(self, shape: dict[str, int]) -> int:
        return shape["WORDS"] * (2 if self.bf16 else 1)

    def _beta_readers(self, shape: dict[str, int]) -> int:
        return 4 * (shape["COLUMNS"] // shape["WARP_COLUMNS"])

    def _multiply(self, shape: dict[str, int], tiles: float, inner: float) -> Traffic:
        """Operations of the matrix units; each warp reads its rows and columns of both parts."""
        words = inner / self._depth(shape) * shape["WORDS"] * tiles * self.parts
        per_warp = shape["WARP_ROWS"] + shape["WARP_COLUMNS"]
        return Traffic(
            flops=2 * self.terms * tiles * inner * shape["ROWS"] * shape["COLUMNS"],
            local_write=4 * words * (shape["ROWS"] + shape["COLUMNS"]),
            local_read=4 * words * per_warp * self._warps(shape),
        )

    def _kernel(self, name: str, which: str, **macros: int) -> Any:
        form = {"FORMAT": int(self.bf16), "TERMS": self.terms, "PROMOTE": 0}
        return super()._kernel(name, which, **{**form, **macros})

    def _gamma_macros(self) -> dict[str, int]:
        return {"PROMOTE": 1}  # sums over many positions: see the kernel


class TensorCoresBf16(TensorCores):
    """bf16 operands in two parts: half the shared memory of TF32's, and twice its rate."""

    bf16 = True


class TensorCoresPlain(TensorCores):
    """TF32 operands, rounded."""

    terms = 1


class OnTensorCores(Variant):
    """What the variants on matrix units share."""

    needs = ("cuda",)
    unit = "tf32_mma"
    engine: ClassVar[type[Engine]] = TensorCores

    @classmethod
    def require(cls, info: DeviceInfo) -> None:
        super().require(info)
        require_matrix_units(info)
