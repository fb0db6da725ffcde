"""The problems: one pruned convolution, and a pruned network end to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perfport.workload import (
    Metric,
    Output,
    OutputError,
    Problem,
    Sampled,
    UsageError,
    Work,
    compare,
    compare_signed,
    in_blocks,
    signs,
)

from . import network, reference, weights
from .operators import OPERATORS, Operator, known

ELEMENT_LIMIT = 2**31  # of input, output and im2col's matrix of one image: kernels index them in 32 bits
WHOLE_MACS = 2 * 10**8  # up to here every output is compared
EXPONENTS = -149, 31  # of two, by which the values of a ``wide`` input are scaled
SAMPLED_OUTPUTS = 50_000  # else all filters at so many positions, the first and the last; all enter signed sums

TOLERANCE = 1e-5
TF32_TOLERANCE = 2e-3
#: Products on matrix units for one useful product, within the tolerance of a class: operands in two parts, of which the
#: product of the two small ones is left out.
PRODUCTS = {"fp32": 3.0, "tf32": 1.0}
MATRIX_ROWS = 8  # the shorter side of a matrix instruction (mma.sync m16n8k8)
#: What a dense convolution computes that keeps half the channels, half the filters or half of both: shares left out.
STRUCTURED = {"half channels": (0.5, 0.0), "half filters": (0.0, 0.5), "half of both": (0.5, 0.5)}


@dataclass(frozen=True)
class Layer:
    """What an engine convolves with: an operator, its pruned weights (K, C, R, S) in float32, images at a time."""

    name: str
    operator: Operator
    weights: np.ndarray
    batch: int

    @property
    def nonzero(self) -> int:
        """Number of weights that are not zero."""
        return int(np.count_nonzero(self.weights))

    @property
    def flops(self) -> float:
        """Useful operations: 2 for each non-zero weight and output position."""
        return 2.0 * self.nonzero * self.operator.pixels * self.batch

    def units(self, precision: str) -> dict[str, float]:
        """Return what an operation takes of each unit (`Work.float_units`).

        Scalar code may leave out every zero. Matrix units take the weights of `MATRIX_ROWS` filters together, without
        those that are zero in all of them (in a pattern without structure); or all, by a method of fewer products.
        """
        share = self.nonzero / self.operator.weights if self.nonzero else 1.0
        fast = self.operator.fewest_products / share
        matrix = PRODUCTS[precision] * min((1 - (1 - share) ** MATRIX_ROWS) / share, fast)
        return {"fp32_fma": min(1.0, fast), "tf32_mma": matrix, "bf16_mma": matrix}


class SparseConv(Problem):
    """y = x * w with pruned weights that are known when code is compiled."""

    class Parameters(BaseModel):
        """An operator by name (``operator``) or by its sizes; the share of zeros and how they are placed.

        ``weights`` is an .npz file with an array ``weights`` (K, C, R, S), which is pruned further unless ``sparsity``
        is 0. The input's values are ``generated``, or to verify with: ``equal``, or ``wide``, scaled by random powers
        of two from denormal ones on.
        """

        model_config = ConfigDict(extra="forbid")

        operator: Annotated[str, AfterValidator(known)] | None = None
        channels: int | None = Field(None, ge=1, le=4096)
        filters: int | None = Field(None, ge=1, le=4096)
        kernel_height: int | None = Field(None, ge=1, le=31)
        kernel_width: int | None = Field(None, ge=1, le=31)
        height: int | None = Field(None, ge=1, le=16384)
        width: int | None = Field(None, ge=1, le=16384)
        stride: int | None = Field(None, ge=1, le=16)
        padding: int | None = Field(None, ge=0, le=16)
        batch: int = Field(1, ge=1, le=4096)
        sparsity: float = Field(0.9, ge=0, le=1, allow_inf_nan=False)
        pruning: Literal["random", "magnitude", "channels", "filters", "both"] = "random"
        weights: str | None = None
        source: Literal["generated", "equal", "wide"] = "generated"

    name = "sparse_conv"
    results: ClassVar[dict[str, tuple[str, ...]]] = {"": ("fp32", "tf32"), **dict.fromkeys(STRUCTURED, ("fp32",))}
    title = "Convolution with pruned weights"
    metric = Metric("sparse_conv.rate", "GFLOP/s", "higher", "useful FP32 rate: 2 operations for each non-zero weight")
    figures: ClassVar[dict[str, tuple[str, ...]]] = {
        "Instructions deleted from the template (the source's table 3)": (
            "ptx_instructions_dense", "ptx_instructions_deleted", "multiply_adds_deleted",
            "machine_instructions_dense", "machine_instructions_deleted",
        ),
        "Code sizes and times to make the code (the source's table 4)": (
            "ptx_kib_dense", "ptx_kib", "cubin_kib_dense", "cubin_kib", "source_bytes",
            "template_s", "template_cached", "choose_s", "specialise_s", "generate_s", "assemble_s", "measure_s",
        ),
        "Intensity and overhead of indices": (
            "nonzero", "operational_intensity", "csr_index_overhead_16_bit", "csr_index_overhead_32_bit", "index_bytes",
        ),
    }  # fmt: skip
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "channels": 4, "filters": 6, "kernel_height": 3, "kernel_width": 3, "height": 10, "width": 12, "padding": 1,
            "batch": 2, "sparsity": 0.6,
        },
        "quick": {"operator": "cifar-conv2", "batch": 4},
        "full": {"operator": "resnet-conv1", "sparsity": 0.95},
        "large": {"operator": "vgg-conv2", "batch": 64},
        "paper": {"operator": "vgg-conv3", "batch": 64},
    }  # fmt: skip
    headline = {"cpu": "full", "gpu": "large"}
    check_sizes = (
        {
            "channels": 3, "filters": 5, "kernel_height": 3, "kernel_width": 2, "height": 7, "width": 9, "padding": 1,
            "batch": 2, "sparsity": 0.5,
        },
        {
            "channels": 4, "filters": 11, "kernel_height": 2, "kernel_width": 3, "height": 12, "width": 21, "stride": 2,
            "batch": 3, "sparsity": 0.75,
        },
        {  # several tiles of every variant, across and down
            "channels": 2, "filters": 3, "kernel_height": 3, "kernel_width": 3, "height": 35, "width": 37, "padding": 1,
            "sparsity": 0.5,
        },
        {
            "channels": 1, "filters": 1, "kernel_height": 1, "kernel_width": 1, "height": 1, "width": 1, "sparsity": 0,
        },
        {
            "channels": 2, "filters": 9, "kernel_height": 5, "kernel_width": 5, "height": 6, "width": 6, "stride": 3,
            "padding": 4, "sparsity": 0.9,
        },
        {
            "channels": 3, "filters": 5, "kernel_height": 2, "kernel_width": 3, "height": 7, "width": 9, "sparsity": 1,
            "source": "equal",
        },
        {
            "channels": 3, "filters": 7, "kernel_height": 3, "kernel_width": 3, "height": 8, "width": 9, "padding": 1,
            "sparsity": 0.6, "source": "wide",
        },
    )  # fmt: skip

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.operator = _operator(parameters)
        self.batch = parameters.batch
        sizes = {
            "the input": self.batch * self.operator.inputs,
            "the output": self.batch * self.operator.outputs,
            "im2col's matrix of one image": self.operator.taps * self.operator.pixels,
        }
        for what, elements in sizes.items():
            if elements >= ELEMENT_LIMIT:
                raise UsageError(
                    f"{what} must have fewer than {ELEMENT_LIMIT} elements; these parameters give {elements}"
                )
        if parameters.weights is None:
            self.dense = weights.random_weights(self.operator, seed + 1)
        else:
            self.dense = weights.load(Path(parameters.weights))
            weights.check(self.dense, self.operator, parameters.weights)
        pruned = weights.prune(self.dense, parameters.sparsity, parameters.pruning, seed + 2)
        self.layer = Layer(parameters.operator or "layer", self.operator, pruned, self.batch)

    @classmethod
    def data_decide_time(cls, parameters: Parameters) -> bool:
        # Generated code is the pattern of the weights: where they are drawn, or which of them are kept is.
        return parameters.weights is None or (parameters.sparsity > 0 and parameters.pruning == "random")

    def redrawn(self, seed: int) -> SparseConv:
        other = type(self)(self.parameters, seed)
        other.dense, other.layer = self.dense, self.layer
        return other

    @cached_property
    def x(self) -> np.ndarray:
        """The input, float32, shape (N, C, H, W), independent values in [-1, 1) where they are ``generated``."""
        o = self.operator
        shape = self.batch, o.channels, o.height, o.width
        if self.parameters.source == "equal":
            return np.ones(shape, np.float32)
        rng = np.random.default_rng(self.seed)
        values = rng.random(shape, np.float32)
        np.subtract(np.multiply(values, 2, out=values), 1, out=values)
        if self.parameters.source == "wide":
            np.ldexp(values, rng.integers(*EXPONENTS, shape, np.int32), out=values)
        return values

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the output."""
        return self.batch, self.operator.filters, self.operator.out_height, self.operator.out_width

    def structured(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Which filters and which channels stay under one of `STRUCTURED`, those of least norm gone; bool.

        An odd number of channels is not halved.
        """
        channels, filters = STRUCTURED[kind]
        channels *= self.operator.channels % 2 == 0
        return weights.kept(self.dense, 0, filters), weights.kept(self.dense, 1, channels)

    @cached_property
    def compared(self) -> np.ndarray:
        """Output positions that are compared: all, or a sample with the first and the last."""
        total = self.batch * self.operator.pixels
        if self.operator.weights * total <= WHOLE_MACS:
            return np.arange(total)
        count = max(SAMPLED_OUTPUTS // self.operator.filters, 200)
        sample = np.random.default_rng(self.seed + 3).integers(0, total, count)
        return np.unique(np.concatenate([sample, [0, total - 1]]))

    @cached_property
    def _expected(self) -> dict[str, np.ndarray]:
        return {}

    @cached_property
    def _expected_sums(self) -> dict[str, np.ndarray]:
        return {}

    def _used(self, kind: str) -> np.ndarray:
        """The weights: pruned, or structured (`STRUCTURED`)."""
        if not kind:
            return self.layer.weights
        filters, channels = self.structured(kind)
        return self.dense * filters[:, None, None, None] * channels[None, :, None, None]

    def expected(self, kind: str = "") -> np.ndarray:
        """Outputs at the positions compared, float64, (positions, filters): pruned, or structured (`STRUCTURED`)."""
        if kind not in self._expected:
            outputs = reference.outputs_at(self.operator, self.x, self._used(kind), self.compared)
            self._expected[kind] = outputs[:, self.structured(kind)[0]] if kind else outputs
        return self._expected[kind]

    def _check_all(self, value: np.ndarray, kind: str, tolerance: float) -> OutputError:
        """Every position, by a sum over its filters."""
        chosen = signs(self.operator.filters, self.seed + 4)
        if kind not in self._expected_sums:
            self._expected_sums[kind] = reference.signed(self.operator, self.x, self._used(kind), chosen)
        kept = chosen[self.structured(kind)[0]] if kind else chosen
        images = value.reshape(self.batch, len(kept), -1)
        own = np.concatenate(in_blocks(lambda part: np.einsum("k,nkp->np", kept, images[part]), self.batch, 1))
        norm = float(np.linalg.norm(self.expected(kind), axis=1).max()) or 1.0
        return compare_signed(own, self._expected_sums[kind], norm, value.size, tolerance)

    def outputs(self, computes: str = "", *which: str) -> dict[str, Output]:
        batch, filters, *size = self.shape
        kept = int(self.structured(computes)[0].sum()) if computes else filters
        return {"y": Output(np.float32, (batch, kept, *size))}

    def check(
        self, outputs: Mapping[str, np.ndarray], computes: str = "", precision: str = "fp32", /
    ) -> dict[str, OutputError]:
        image, pixel = np.divmod(self.compared, self.operator.pixels)
        tolerance = TF32_TOLERANCE if precision == "tf32" else TOLERANCE
        errors = {}
        for name, value in outputs.items():
            filters, pixels = value.size // (self.batch * self.operator.pixels), self.operator.pixels
            sample = value.reshape(self.batch, filters, pixels)[image, :, pixel]
            at = (image[:, None] * filters + np.arange(filters)) * pixels + pixel[:, None]
            errors[name] = compare(
                sample, self.expected(computes), value.size, relative_l2=tolerance, sampled=Sampled(at, value.shape)
            )
            if len(self.compared) < self.batch * self.operator.pixels:
                errors[f"{name}, signed sums"] = self._check_all(value, computes, tolerance)
        return errors

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        layer = replace(self.layer, weights=self._used(computes)) if computes else self.layer
        filters = self.structured(computes)[0].sum() if computes else self.operator.filters
        return Work(
            flops=layer.flops, read_bytes=4.0 * (self.batch * self.operator.inputs + layer.nonzero),
            write_bytes=4.0 * self.batch * filters * self.operator.pixels, float_units=layer.units(precision),
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.work().flops / seconds / 1e9


def _operator(parameters: SparseConv.Parameters) -> Operator:
    sizes = ("channels", "filters", "kernel_height", "kernel_width", "height", "width")
    given = [name for name in (*sizes, "stride", "padding") if getattr(parameters, name) is not None]
    if parameters.operator is not None:
        if given:
            raise UsageError(
                f"operator: {parameters.operator!r} has its own {', '.join(given)}; give the one or the other"
            )
        return OPERATORS[parameters.operator]
    if missing := [name for name in sizes if name not in given]:
        raise UsageError(f"without an operator's name, {', '.join(missing)} must be given too")
    chosen = {name: getattr(parameters, name) for name in given}
    return Operator(**chosen)


class PrunedNetwork(Problem):
    """A small network on digits, trained, pruned by magnitude and fine-tuned, then run end to end."""

    class Parameters(BaseModel):
        """``images`` test images at a time; ``sparsity`` of each layer's weights; ``weights`` trained or random."""

        model_config = ConfigDict(extra="forbid")

        images: int = Field(64, ge=1, le=1000)
        sparsity: float = Field(0.9, ge=0, lt=1, allow_inf_nan=False)
        weights: Literal["trained", "random"] = "trained"

    name = "pruned_network"
    title = "A pruned network end to end"
    metric = Metric("pruned_network.images", "images/s", "higher", "test images classified per second")
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"images": 2, "sparsity": 0.98, "weights": "random"},
        "quick": {"images": 64},
        "full": {"images": 256},
        "large": {"images": 1000},
        "paper": {"images": 64},
    }
    headline = {"cpu": "quick", "gpu": "large"}
    check_sizes = (
        {"images": 1, "sparsity": 0.95, "weights": "random"},
        {"images": 2, "sparsity": 0.98, "weights": "random"},
    )

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.batch = parameters.images
        if parameters.weights == "trained":
            self.trained = network.trained(parameters.sparsity)
        else:
            self.trained = network.untrained(parameters.sparsity, seed + 1)
        self.layers = [
            Layer(stage.name, stage.operator, pruned, self.batch)
            for stage, pruned in zip(network.STAGES, self.trained.pruned, strict=True)
        ]
        self.x, self.labels = network.test_images(self.batch, seed)

    @classmethod
    def data_decide_time(cls, parameters: Parameters) -> bool:
        return parameters.weights == "random"

    def redrawn(self, seed: int) -> PrunedNetwork:
        other = type(self)(self.parameters, seed)
        other.trained, other.layers = self.trained, self.layers
        return other

    @cached_property
    def expected(self) -> np.ndarray:
        """Logits in float64, shape (images, classes)."""
        return network.logits(self.trained.pruned, self.x)

    def accuracy(self, logits: np.ndarray) -> float:
        """Share of this problem's images that are classified right."""
        return float((logits.argmax(axis=1) == self.labels).mean())

    def outputs(self, *which: str) -> dict[str, Output]:
        return {"logits": Output(np.float32, self.expected.shape)}

    def check(self, outputs: Mapping[str, np.ndarray], *which: str) -> dict[str, OutputError]:
        return {
            name: compare(value.reshape(self.expected.shape), self.expected, value.size, relative_l2=TOLERANCE)
            for name, value in outputs.items()
        }

    def work(self, computes: str = "", precision: str = "fp32", /) -> Work:
        """All layers in one launch: an image needs nothing of another, and a work-group can take one through all."""
        nonzero, flops = sum(layer.nonzero for layer in self.layers), sum(layer.flops for layer in self.layers)
        taken = [{unit: layer.flops * each for unit, each in layer.units(precision).items()} for layer in self.layers]
        return Work(
            flops=flops, read_bytes=4.0 * (self.x.size + nonzero), write_bytes=4.0 * self.expected.size,
            float_units={unit: sum(layer[unit] for layer in taken) / flops for unit in taken[0]},
        )  # fmt: skip

    def metric_value(self, seconds: float) -> float:
        return self.batch / seconds
