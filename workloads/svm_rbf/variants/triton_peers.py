"""Peers in Triton: RBF rows and arg-extrema, as one writes them in an afternoon.

Triton is imported when a peer is built, never with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from perfport.workload import TorchCudaPeer, Tunable, ceil_div, round_up, version_of

from ..problems import ArgExtrema, ArgMax, ArgMin, RbfRows
from . import inputs

WARPS = Tunable(4, (4, 8), "warps of a block")
LAST = 2**31 - 1  # an index that no element has


class _Triton(TorchCudaPeer):
    modules = ("cupy", "torch", "triton")
    source = version_of("triton")


class TritonRows(_Triton):
    """A block takes some rows, tile by tile of columns."""

    problem = RbfRows
    name, title, rung = "triton", "Triton, direct form, row-major data", 8
    tunables: ClassVar = {
        "rows": Tunable(8, (1, 4, 8), "rows of a block"),
        "columns": Tunable(128, (128, 256, 512), "columns of a tile"),
        "warps": WARPS,
    }

    def prepare(self) -> None:
        from ..triton_kernels import rows_and_extrema

        data = self.data
        matrix = self.tensor(inputs.row_major(self.setup).buffer, (data.points, data.dims))
        self.rows = {name: self.torch.empty_like(matrix[:, 0]).contiguous() for name in ("high_kernel", "low_kernel")}
        self.kernel = rows_and_extrema.two_rows
        self.arguments = (
            matrix, matrix[data.high].clone(), matrix[data.low].clone(), *self.rows.values(), data.points, data.dims,
            -float(data.gamma),
        )  # fmt: skip
        self.device.finish()

    def compute(self) -> Mapping[str, Any]:
        chosen = self.setup.tunables
        self.kernel[(ceil_div(self.data.points, chosen["rows"]),)](
            *self.arguments, ROWS=chosen["rows"], COLUMNS=chosen["columns"], num_warps=chosen["warps"]
        )
        return self.rows


class _Extrema(_Triton):
    """Programs reduce chunks, one more launch their results; both extrema in one pass."""

    title, rung = "Triton, one pass, then the parts", 6
    tunables: ClassVar = {
        "block": Tunable(4096, (2048, 4096, 8192), "elements that a block takes at a time"),
        "programs": Tunable(8, (4, 8, 16), "blocks to a multiprocessor"),
        "warps": WARPS,
    }

    def prepare(self) -> None:
        from ..triton_kernels import rows_and_extrema

        torch, data, chosen = self.torch, self.data, self.setup.tunables
        most = self.device.info.compute_units * chosen["programs"]
        self.chunk = round_up(ceil_div(data.n, most), chosen["block"])
        self.programs = ceil_div(data.n, self.chunk)
        self.vector = self.tensor(inputs.vector(self.setup), (data.n,))
        extrema = len(data.extrema)
        make = self.vector.new_empty
        self.parts = make(extrema * self.programs), make(extrema * self.programs, dtype=torch.int32)
        self.values, self.indices = make(extrema), make(extrema, dtype=torch.int64)
        self.first = -1.0 if data.extrema[0] == "max" else 1.0
        self.reduce, self.join = rows_and_extrema.parts, rows_and_extrema.whole

    def compute(self) -> Mapping[str, Any]:
        extrema, chosen = self.data.extrema, self.setup.tunables
        self.reduce[(self.programs,)](
            self.vector, *self.parts, self.data.n, self.chunk, BLOCK=chosen["block"], EXTREMA=len(extrema),
            FIRST=self.first, LAST=LAST, num_warps=chosen["warps"],
        )  # fmt: skip
        self.join[(len(extrema),)](
            *self.parts, self.values, self.indices, self.programs,
            BLOCK=1 << (self.programs - 1).bit_length(), FIRST=self.first, LAST=LAST,
        )  # fmt: skip
        outputs: dict[str, Any] = {}
        for name, value, index in zip(extrema, self.values.split(1), self.indices.split(1), strict=True):
            outputs |= {name: value, f"arg{name}": index}
        return outputs


class TritonArgMin(_Extrema):
    """The least."""

    problem, name = ArgMin, "triton"


class TritonArgMax(_Extrema):
    """The greatest."""

    problem, name = ArgMax, "triton"


class TritonArgExtrema(_Extrema):
    """Both."""

    problem, name = ArgExtrema, "triton"
