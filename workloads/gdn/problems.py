"""The problems: forward, gamma gradient, the sums that end it, all three gradients, a training step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perfport.workload import (
    Metric,
    Output,
    OutputError,
    Problem,
    Sampled,
    UsageError,
    Work,
    ceil_div,
    compare,
    compare_signed,
    in_blocks,
    signs,
)

from . import data, reference
from .data import LayerParameters

ELEMENT_LIMIT = 2**31  # of channels x positions: kernels index them in 32 bits
WHOLE_MACS = 10**9  # up to here every position of an output is compared
SAMPLED_OUTPUTS = 50_000  # else about so many at random positions, the first and the last; all enter signed sums
REFERENCE_POSITIONS = 1 << 14  # positions that a float64 product takes at a time

FORWARD_TOLERANCE = 5e-6
GRADIENT_TOLERANCE = 2e-5
TF32_TOLERANCE = 1e-3
#: Products on matrix units for one useful product, within the tolerances of a class: operands in two parts, of which
#: the product of the two small ones is left out. (The ceiling of bf16 is also that of FP16.)
UNITS = {
    "fp32": {"fp32_fma": 1.0, "tf32_mma": 3.0, "bf16_mma": 3.0},
    "tf32": {"fp32_fma": 1.0, "tf32_mma": 1.0, "bf16_mma": 1.0},
}


class _Layer(Problem):
    """What the problems over a layer's feature maps share: inputs, how they lie in memory, the float64 reference."""

    Parameters = LayerParameters
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32", "tf32")}
    tolerances: ClassVar[dict[str, float]]  # of each output's relative L2 error, in FP32
    inputs_by_buffers = True
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"channels": 13, "height": 5, "width": 7, "batch": 2},
        "quick": {"channels": 32, "height": 64, "width": 64},
        "photographs": {"channels": 64, "height": 96, "width": 96, "source": "filter_bank"},
        "full": {"channels": 192, "height": 128, "width": 128},
        "large": {"channels": 192, "height": 128, "width": 128, "batch": 16},
        "odd": {"channels": 192, "height": 127, "width": 129, "batch": 16},
        "paper": {"channels": 256, "height": 128, "width": 128},
    }
    headline = {"cpu": "full", "gpu": "large"}
    check_sizes = (
        {"channels": 5, "height": 3, "width": 7, "batch": 2},
        {"channels": 12, "height": 4, "width": 6, "batch": 3},
        {"channels": 1, "height": 1, "width": 37},
        {"channels": 7, "height": 5, "width": 5, "layout": "nhwc", "inverse": True},
        {"channels": 5, "height": 3, "width": 7, "source": "equal"},
        {"channels": 6, "height": 4, "width": 9, "batch": 2, "source": "wide"},
    )

    def __init__(self, parameters: LayerParameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.channels, self.batch = parameters.channels, parameters.batch
        self.shape = (self.batch, self.channels, parameters.height, parameters.width)
        self.pixels = parameters.height * parameters.width
        self.positions = self.batch * self.pixels
        self.inverse, self.nhwc = parameters.inverse, parameters.layout == "nhwc"
        self._signs = signs(self.channels, seed + 4)
        self._expected_sums: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        if self.channels * self.positions >= ELEMENT_LIMIT:
            sizes = f"{self.channels} x {parameters.height} x {parameters.width} x {self.batch}"
            raise UsageError(f"{self.name}: expected channels x height x width x batch < {ELEMENT_LIMIT}, got {sizes}")
        if parameters.layer is None:
            self.gamma, self.beta = data.layer(self.channels, seed + 1, parameters.beta_min)
        else:
            self.gamma, self.beta = data.load_layer(Path(parameters.layer))
        where = self.name if parameters.layer is None else parameters.layer
        reference.check_arguments(np.ones((self.channels, 1), np.float32), self.gamma, self.beta, where)

    def _laid_out(self, maps: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(maps.transpose(0, 2, 3, 1)) if self.nhwc else maps

    @cached_property
    def w(self) -> np.ndarray:
        """The layer's input, float32, (batch, channels, height, width) or (batch, height, width, channels)."""
        return self._laid_out(data.maps(self.parameters.source, self.shape, self.seed))

    @cached_property
    def delta(self) -> np.ndarray:
        """The loss's gradient by the layer's output, float32, laid out as the input."""
        return self._laid_out(data.maps("generated", self.shape, self.seed + 2))

    @cached_property
    def d(self) -> np.ndarray:
        """D = z^(-1/2), which the forward pass saves, float32, laid out as the input."""
        out = np.empty_like(self.w)
        for image, values in zip(self.w, out, strict=True):
            squares = np.square(image).reshape((-1, self.channels) if self.nhwc else (self.channels, -1))
            z = squares @ self.gamma.T + self.beta if self.nhwc else self.gamma @ squares + self.beta[:, None]
            values[...] = (1 / np.sqrt(z)).reshape(values.shape)
        return out

    def columns(self, array: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return some positions of an array laid out as the input, as float64, shape (channels, len(positions))."""
        if self.nhwc:
            return array.reshape(self.positions, self.channels)[positions].T.astype(np.float64)
        image, pixel = np.divmod(positions, self.pixels)
        return array.reshape(self.batch, self.channels, self.pixels)[image, :, pixel].T.astype(np.float64)

    def _sampled(self, shape: tuple[int, ...]) -> Sampled:
        """Return where `columns` takes what is compared."""
        channel, (image, pixel) = np.arange(self.channels)[:, None], np.divmod(self.compared, self.pixels)
        of_image = (image * self.channels + channel) * self.pixels + pixel
        return Sampled(self.compared * self.channels + channel if self.nhwc else of_image, shape)

    @cached_property
    def compared(self) -> np.ndarray:
        """The positions whose outputs are compared: all, or a sample with the first and the last."""
        if self.channels**2 * self.positions <= WHOLE_MACS:
            return np.arange(self.positions)
        count = min(ceil_div(SAMPLED_OUTPUTS, self.channels), self.positions)
        sample = np.random.default_rng(self.seed + 3).integers(0, self.positions, count)
        return np.unique(np.concatenate([sample, [0, self.positions - 1]]))

    @cached_property
    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        return self.gamma.astype(np.float64), self.beta.astype(np.float64)

    @cached_property
    def reference_u(self) -> np.ndarray:
        """u at the positions compared, float64."""
        return self._reference("u", self.compared)

    @cached_property
    def reference_d(self) -> np.ndarray:
        """D at the positions compared, float64."""
        return self._reference("d", self.compared)

    def saved(self, positions: np.ndarray) -> np.ndarray:
        """The D that gradients start from, float64."""
        return self.columns(self.d, positions)

    @cached_property
    def reference_dw(self) -> np.ndarray:
        """dL/dw at the positions compared, float64."""
        return self._reference("dw", self.compared)

    def _reference(self, name: str, at: np.ndarray) -> np.ndarray:
        """u, D or dL/dw at some positions, float64, (channels, positions)."""
        w = self.columns(self.w, at)
        if name == "u":
            return reference.forward(w, *self._weights, self.inverse)
        if name == "d":
            return 1 / np.sqrt(reference.pool(w, *self._weights))
        delta = self.columns(self.delta, at)
        return reference.input_gradient(delta, w, self.saved(at), self._weights[0], self.inverse)

    def _signed(self, value: np.ndarray) -> np.ndarray:
        """Sums over the channels of each position of an array laid out as the input, with random signs, float64."""
        images = value.reshape(self.batch, self.pixels, -1) if self.nhwc else value.reshape(self.batch, -1, self.pixels)
        sums = "c,npc->np" if self.nhwc else "c,ncp->np"
        return np.concatenate(in_blocks(lambda part: np.einsum(sums, self._signs, images[part]), self.batch, 1)).ravel()

    def _check_all(self, name: str, value: np.ndarray, tolerance: float) -> OutputError:
        """Every position, by a sum over its channels; where these are small, relative to those of other positions."""
        if name not in self._expected_sums:
            sums, norms = np.empty((2, self.positions))  # of each position

            def fill(part: slice) -> None:
                columns = self._reference(name, np.arange(part.start, part.stop))
                sums[part], norms[part] = self._signs @ columns, np.linalg.norm(columns, axis=0)

            in_blocks(fill, self.positions, REFERENCE_POSITIONS)
            self._expected_sums[name] = sums, np.maximum(norms, np.sqrt(np.square(norms).mean()))
        return compare_signed(self._signed(value), *self._expected_sums[name], value.size, tolerance)

    @cached_property
    def _parameter_gradients(self) -> tuple[np.ndarray, np.ndarray]:
        def gradients(part: slice) -> tuple[np.ndarray, np.ndarray]:
            at = np.arange(part.start, part.stop)
            delta, w = self.columns(self.delta, at), self.columns(self.w, at)
            return reference.parameter_gradients(delta, w, self.saved(at), self.inverse)

        dgamma, dbeta = zip(*in_blocks(gradients, self.positions, REFERENCE_POSITIONS), strict=True)
        return np.sum(dgamma, axis=0), np.sum(dbeta, axis=0)

    @property
    def reference_dgamma(self) -> np.ndarray:
        """dL/dgamma, float64; every position counts."""
        return self._parameter_gradients[0]

    @property
    def reference_dbeta(self) -> np.ndarray:
        """dL/dbeta, float64; every position counts."""
        return self._parameter_gradients[1]

    def outputs(self, *which: str) -> dict[str, Output]:
        shapes = {"dgamma": (self.channels, self.channels), "dbeta": (self.channels,)}
        return {name: Output(np.float32, shapes.get(name, self.w.shape)) for name in self.tolerances}

    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        errors = {}
        for name, value in outputs.items():
            tolerance = TF32_TOLERANCE if precision == "tf32" else self.tolerances[name]
            expected, maps = getattr(self, f"reference_{name}"), name in ("u", "d", "dw")
            own, at = (self.columns(value, self.compared), self._sampled(value.shape)) if maps else (value, None)
            errors[name] = compare(own, expected, value.size, relative_l2=tolerance, sampled=at)
            if maps and len(self.compared) < self.positions:
                errors[f"{name}, signed sums"] = self._check_all(name, value, tolerance)
        return errors

    @property
    def map_bytes(self) -> float:
        """Bytes of one array of the input's size."""
        return 4.0 * self.channels * self.positions

    @property
    def macs(self) -> float:
        """Multiply-adds of one of the products."""
        return float(self.channels) ** 2 * self.positions

    @property
    def term_flops(self) -> int:
        """Operations of one t."""
        return 3 if self.inverse else 5

    def metric_value(self, seconds: float) -> float:
        return self.work().flops / seconds / 1e9


class Forward(_Layer):
    """u = w / sqrt(beta + gamma w^2), or times for the inverse; D = z^(-1/2) as well where ``training`` is set."""

    class Parameters(LayerParameters):
        """Those of a layer; ``training`` asks for D, which the backward pass needs."""

        training: bool = False

    name = "gdn_forward"
    title = "Divisive normalization, forward"
    metric = Metric("gdn.forward", "GFLOP/s", "higher", "useful FP32 rate: 2 N^2 operations per position")
    tolerances: ClassVar[dict[str, float]] = {"u": FORWARD_TOLERANCE, "d": FORWARD_TOLERANCE}
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        **_Layer.presets,
        "training": {**_Layer.presets["large"], "training": True},
    }

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.training = parameters.training

    def outputs(self, *which: str) -> dict[str, Output]:
        declared = super().outputs()
        if not self.training:
            del declared["d"]
        return declared

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        parameters = 4.0 * self.channels * (self.channels + 1)
        written = (2 if self.training else 1) * self.map_bytes
        return Work(
            flops=2 * self.macs, read_bytes=self.map_bytes + parameters, write_bytes=written,
            float_units=UNITS[precision],
        )  # fmt: skip


class GammaGradient(_Layer):
    """dL/dgamma[i,j] = sum_p t[i,p] w[j,p]^2 with t = -1/2 delta w D^3: what the source optimises."""

    name = "gdn_gamma_gradient"
    title = "Gradient of divisive normalization by gamma"
    metric = Metric("gdn.gamma_gradient", "GFLOP/s", "higher", "useful FP32 rate: 2 N^2 operations per position")
    # The first rungs write N x N x P words: 2.4 GB of one image at the preset "full".
    headline = {"cpu": "photographs", "gpu": "large"}
    figures: ClassVar[dict[str, tuple[str, ...]]] = {
        "Memory of a rung, and what fits the source's GTX 1080": (
            "replicated_operands", "wasted_bytes_per_operand", "bytes_needed", "largest_batch_gtx1080",
            "scratch_bytes", "peak_device_bytes",
        ),
    }  # fmt: skip
    tolerances: ClassVar[dict[str, float]] = {"dgamma": GRADIENT_TOLERANCE}

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        return Work(
            flops=2 * self.macs, read_bytes=3 * self.map_bytes, write_bytes=4.0 * self.channels**2,
            float_units=UNITS[precision],
        )  # fmt: skip


class Backward(_Layer):
    """All three gradients from delta, w, the saved D, and gamma."""

    name = "gdn_backward"
    title = "Divisive normalization, backward"
    metric = Metric("gdn.backward", "GFLOP/s", "higher", "useful FP32 rate: 4 N^2 operations per position")
    tolerances: ClassVar[dict[str, float]] = dict.fromkeys(("dw", "dgamma", "dbeta"), GRADIENT_TOLERANCE)

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        weights = 4.0 * self.channels**2
        written = self.map_bytes + weights + 4.0 * self.channels
        return Work(
            flops=4 * self.macs, read_bytes=3 * self.map_bytes + weights, write_bytes=written,
            float_units=UNITS[precision],
        )  # fmt: skip


class Step(_Layer):
    """A training step of the layer: forward, then all three gradients; D is saved in between."""

    name = "gdn_step"
    title = "Divisive normalization, forward and backward"
    metric = Metric("gdn.step", "GFLOP/s", "higher", "useful FP32 rate: 6 N^2 operations per position")
    tolerances: ClassVar[dict[str, float]] = {"u": FORWARD_TOLERANCE, **Backward.tolerances}

    def saved(self, positions: np.ndarray) -> np.ndarray:
        """D, not rounded: each variant saves its own."""
        return 1 / np.sqrt(reference.pool(self.columns(self.w, positions), *self._weights))

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        """All of it in one launch: the sums of dgamma need no step of their own (atomic additions)."""
        weights, vector = 4.0 * self.channels**2, 4.0 * self.channels
        return Work(
            flops=6 * self.macs, read_bytes=2 * self.map_bytes + weights + vector,
            write_bytes=2 * self.map_bytes + weights + vector, float_units=UNITS[precision],
        )  # fmt: skip


class Reduction(Problem):
    """sums[i,j] = sum_p raw[i,j,p]: what is left to do once the N x N products are in memory."""

    name = "gdn_reduction"
    title = "N x N sums of vectors of length P"
    metric = Metric("gdn.reduction", "GB/s", "higher", "bytes of the vectors per second")
    inputs_by_buffers = True
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"channels": 5, "positions": 77},
        "quick": {"channels": 32, "positions": 4096},
        "full": {"channels": 192, "positions": 16384},
        "large": {"channels": 256, "positions": 65536},
        "paper": {"channels": 256, "positions": 16384},
    }
    headline = {"cpu": "quick", "gpu": "paper"}
    check_sizes = ({"channels": 3, "positions": 77}, {"channels": 5, "positions": 260}, {"channels": 1, "positions": 1})

    class Parameters(BaseModel):
        """``channels``^2 vectors of ``positions`` generated values."""

        model_config = ConfigDict(extra="forbid")

        channels: int = Field(ge=1, le=16384)
        positions: int = Field(ge=1, lt=2**31)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.channels, self.positions = parameters.channels, parameters.positions
        self.vectors = self.channels**2

    def rows(self, vectors: np.ndarray) -> np.ndarray:
        """Some of the vectors, float32, shape (len(vectors), positions)."""
        index = vectors.astype(np.uint64)[:, None] * np.uint64(self.positions)
        return data.uniform(index + np.arange(self.positions, dtype=np.uint64), self.seed)

    def work(self, *which: str) -> Work:
        elements = float(self.vectors) * self.positions
        return Work(flops=elements, read_bytes=4 * elements, write_bytes=4.0 * self.vectors)

    def metric_value(self, seconds: float) -> float:
        return self.work().read_bytes / seconds / 1e9

    def _sums(self, block: slice) -> np.ndarray:
        return self.rows(np.arange(block.start, block.stop)).sum(axis=1, dtype=np.float64)

    @cached_property
    def _reference(self) -> np.ndarray:
        return np.concatenate(in_blocks(self._sums, self.vectors, max(1, (1 << 18) // self.positions)))

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"sums": Output(np.float32, (self.vectors,))}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {
            name: compare(value, self._reference, self.vectors, relative_l2=GRADIENT_TOLERANCE)
            for name, value in outputs.items()
        }
