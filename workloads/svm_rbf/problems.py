"""The problems: two RBF rows in one pass, and arg-extrema over a vector."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import Metric, Output, OutputError, Problem, UsageError, Work, compare, compare_exact, in_blocks

from . import data

REFERENCE_BLOCK = 500_000  # elements of the data whose distances are computed together
PART = 1 << 18  # elements of a vector that are made at a time
VALUE = "value"  # what a control arm computes: the extreme value without its index


class RbfRows(Problem):
    """exp(-gamma |x_i - x_high|^2) and the same for ``low``, for all points, in one pass."""

    name = "rbf_rows"
    title = "Two RBF kernel rows in one pass"
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32", "fp32 expanded")}
    metric = Metric("rbf.flops", "GFLOP/s", "higher", "useful FP32 rate: 6 operations per data element")
    presets = {
        "tiny": {"points": 131, "dims": 37},
        "quick": {"points": 16_000, "dims": 1000},
        "full": {"points": 70_000, "dims": 1000},
        "mnist_size": {"points": 60_000, "dims": 784},
        "large": {"points": 1_000_000, "dims": 1000},
        "paper": {"points": 100_000, "dims": 1000},
        "photographs": {"source": "patches", "points": 16_000},
    }
    headline = {"cpu": "full", "gpu": "large"}
    check_sizes = (
        {"points": 37, "dims": 13}, {"points": 131, "dims": 30}, {"points": 1, "dims": 1},
        {"points": 35, "dims": 14, "exponent": -130}, {"points": 35, "dims": 14, "exponent": 40},
    )  # fmt: skip

    class Parameters(BaseModel):
        """``points`` and ``dims`` size generated data; a real ``source`` brings its own dimensions.

        ``gamma`` defaults to 1 / dims; ``mean`` moves generated data away from the origin, and 2 to the ``exponent``
        scales it.
        """

        model_config = ConfigDict(extra="forbid")

        source: data.Source = "generated"
        points: int | None = Field(None, ge=1, lt=2**31)
        dims: int | None = Field(None, ge=1, le=1_000_000)
        gamma: float | None = Field(None, gt=0, allow_inf_nan=False)
        mean: float = Field(0.0, allow_inf_nan=False)
        exponent: int = Field(0, ge=-149, le=40)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        if parameters.source == "generated":
            if parameters.points is None or parameters.dims is None:
                raise UsageError("rbf_rows: generated data needs 'points' and 'dims'")
            self.points, self.dims = parameters.points, parameters.dims
        else:
            if parameters.dims is not None:
                raise UsageError(f"rbf_rows: 'dims' is given by the data of source {parameters.source!r}")
            self.points, self.dims = self._loaded.shape
        self.gamma = np.float32(parameters.gamma or 1.0 / self.dims)
        rng = np.random.default_rng(seed)
        high, low = rng.choice(self.points, 2, replace=self.points < 2)
        self.high, self.low = int(high), int(low)

    def redrawn(self, seed: int) -> RbfRows:
        other = type(self)(self.parameters, seed)
        other.high, other.low = self.high, self.low
        return other

    @cached_property
    def _loaded(self) -> np.ndarray:
        return data.load(self.parameters.source, self.parameters.points, self.seed)[0]

    @property
    def generated(self) -> bool:
        """Whether the data comes from the counter-based generator."""
        return bool(self.parameters.source == "generated")

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Rows of the data matrix, float32, shape (len(index), dims)."""
        if self.generated:
            return data.generated_rows(index, self.dims, self.seed, self.parameters.mean, self.parameters.exponent)
        return self._loaded[index]

    @cached_property
    def matrix(self) -> np.ndarray:
        """The whole data matrix on the host, float32, shape (points, dims)."""
        if not self.generated:
            return self._loaded
        whole = np.empty((self.points, self.dims), np.float32)

        def fill(block: slice) -> None:
            whole[block] = self.rows(np.arange(block.start, block.stop))

        in_blocks(fill, self.points, max(1, REFERENCE_BLOCK // self.dims))
        return whole

    def work(self, *which: str) -> Work:
        """Differences, squares and sums for two points, 6 operations per element."""
        elements = self.points * self.dims
        return Work(
            flops=6.0 * elements, read_bytes=4.0 * elements, write_bytes=8.0 * self.points,
            float_units=data.DISTANCE_UNITS,
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.work().flops / seconds / 1e9

    @cached_property
    def _reference(self) -> dict[str, np.ndarray]:
        pair = self.rows(np.array([self.high, self.low])).astype(np.float64)
        values = {"high_kernel": np.empty(self.points), "low_kernel": np.empty(self.points)}

        def fill(block: slice) -> None:
            x = self.rows(np.arange(block.start, block.stop)).astype(np.float64)
            for point, out in zip(pair, values.values(), strict=True):
                out[block] = np.exp(-np.float64(self.gamma) * ((x - point) ** 2).sum(axis=1))

        in_blocks(fill, self.points, max(1, REFERENCE_BLOCK // self.dims))
        return values

    def outputs(self, *which: str) -> dict[str, Output]:
        return dict.fromkeys(("high_kernel", "low_kernel"), Output(np.float32, (self.points,)))

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {
            name: compare(value, self._reference[name], self.points, max_abs=1e-5, relative_l2=1e-5)
            for name, value in outputs.items()
        }


class Extrema(Problem):
    """What the reductions of one vector share."""

    extrema: ClassVar[tuple[str, ...]]
    metric = Metric("reduction.rate", "GReductions/s", "higher", "elements reduced per second, each counted once")
    inputs_by_buffers = True
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"n": 1009},
        "quick": {"n": 1 << 23},
        "full": {"n": 1 << 27},
        "large": {"n": 1 << 30},
        "paper": {"n": 1 << 26},
    }
    headline = {"cpu": "full", "gpu": "large"}
    check_sizes = (
        {"n": 1009}, {"n": 4099}, {"n": 1}, {"n": 2053, "bits": 1}, {"n": 4099, "bits": 4}, {"n": 2053, "bits": 0},
        {"n": 2053, "bits": 8, "exponent": -142}, {"n": 2053, "exponent": 127},
    )  # fmt: skip

    class Parameters(BaseModel):
        """``n`` elements of 2^``bits`` distinct values: few bits make ties. 2 to the ``exponent`` scales them."""

        model_config = ConfigDict(extra="forbid")

        n: int = Field(ge=1, lt=2**31)
        bits: int = Field(24, ge=0, le=24)
        exponent: int = Field(0, ge=-149, le=127)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.n, self.bits = parameters.n, parameters.bits

    def part(self, block: slice) -> np.ndarray:
        """Elements of the vector, float32."""
        index = np.arange(block.start, block.stop, dtype=np.uint64)
        return data.generated(index, self.seed, 0.0, self.bits, self.parameters.exponent)

    @cached_property
    def vector(self) -> np.ndarray:
        """The whole vector on the host, float32, shape (n,)."""
        return np.concatenate(in_blocks(self.part, self.n, PART))

    def work(self, *which: str) -> Work:
        return Work(read_bytes=4.0 * self.n)

    def metric_value(self, seconds: float) -> float:
        return self.n / seconds / 1e9

    @cached_property
    def _reference(self) -> dict[str, Any]:
        def extrema(block: slice) -> tuple[float, int, float, int]:
            part = self.part(block)
            low, high = int(part.argmin()), int(part.argmax())
            return part[low], block.start + low, part[high], block.start + high

        parts = in_blocks(extrema, self.n, PART)
        least = min(parts, key=lambda part: (part[0], part[1]))
        greatest = min(parts, key=lambda part: (-part[2], part[3]))
        return {"min": least[0], "argmin": least[1], "max": greatest[2], "argmax": greatest[3]}

    def outputs(self, computes: str = "", *which: str) -> dict[str, Output]:
        values = {name: Output(np.float32, (1,)) for name in self.extrema}
        index = Output((np.uint32, np.int64), (1,))
        return values if computes == VALUE else {**values, **{f"arg{name}": index for name in self.extrema}}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {name: compare_exact(value, np.array([self._reference[name]])) for name, value in outputs.items()}


class ArgMin(Extrema):
    """Value and lowest index of the minimum of a vector."""

    name, title, extrema = "arg_min", "Arg-min of a vector", ("min",)
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32",), VALUE: ("fp32",)}


class ArgMax(Extrema):
    """Value and lowest index of the maximum of a vector."""

    name, title, extrema = "arg_max", "Arg-max of a vector", ("max",)


class ArgExtrema(Extrema):
    """Value and lowest index of the minimum and of the maximum of a vector."""

    name, title, extrema = "arg_extrema", "Arg-min and arg-max of a vector", ("min", "max")
