"""Convolution operators: shapes, the ten of the source, operational intensity and index overhead by formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfport.workload import UsageError, ceil_div, nearest


@dataclass(frozen=True)
class Operator:
    """A two-dimensional convolution without bias; ``filters`` outputs of ``channels`` inputs, zero padding.

    Raises
    ------
    UsageError
        Where kernel, stride and padding leave no output.
    """

    channels: int
    filters: int
    kernel_height: int
    kernel_width: int
    height: int
    width: int
    stride: int = 1
    padding: int = 0

    def __post_init__(self) -> None:
        if self.out_height < 1 or self.out_width < 1:
            raise UsageError(
                f"stride {self.stride} and padding {self.padding} leave no output: a kernel of {self.kernel_height} x "
                f"{self.kernel_width} does not fit into {self.height} x {self.width}"
            )

    @property
    def out_height(self) -> int:
        """Rows of an output map."""
        return (self.height + 2 * self.padding - self.kernel_height) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of an output map."""
        return (self.width + 2 * self.padding - self.kernel_width) // self.stride + 1

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the weights."""
        return self.filters, self.channels, self.kernel_height, self.kernel_width

    @property
    def weights(self) -> int:
        """Number of weights, zeros included."""
        return self.filters * self.taps

    @property
    def taps(self) -> int:
        """Weights of one filter."""
        return self.channels * self.kernel_height * self.kernel_width

    @property
    def inputs(self) -> int:
        """Elements of one image."""
        return self.channels * self.height * self.width

    @property
    def pixels(self) -> int:
        """Positions of one output map."""
        return self.out_height * self.out_width

    @property
    def outputs(self) -> int:
        """Elements of one image's output."""
        return self.filters * self.pixels

    @property
    def fewest_products(self) -> float:
        """Products of the fastest known method over those of the direct one, with every weight.

        Winograd's minimal filtering over tiles of up to 6 x 6 outputs (A. Lavin, S. Gray, "Fast Algorithms for
        Convolutional Neural Networks", CVPR 2016), or FFTs of 16 x 16 or 32 x 32, whose half spectrum takes four
        products each; transforms are left out. 1 where a kernel has a stride or is a single tap.
        """
        kernel = self.kernel_height, self.kernel_width
        if self.stride > 1 or kernel == (1, 1):
            return 1.0
        winograd = [math.prod((m + side - 1) / m for side in kernel) for m in (2, 4, 6)]
        fft = [2 * math.prod(t / (t - side + 1) for side in kernel) for t in (16, 32) if t >= max(kernel)]
        return min(1.0, min(winograd + fft) / math.prod(kernel))

    def dense_flops(self, batch: int) -> float:
        """Operations with every weight, 2 for each multiply-add."""
        return 2.0 * self.weights * self.pixels * batch

    def intensity(self, batch: int, nonzero: int) -> float:
        """Operational intensity in FLOP/B: 2 nnz N H' W' over the bytes of input, output and non-zero weights."""
        return 2.0 * nonzero * batch * self.pixels / (4.0 * (batch * (self.inputs + self.outputs) + nonzero))


@dataclass(frozen=True)
class Tiles:
    """An operator's output maps in tiles of ``rows`` x ``columns``; the last ones may reach past the edge."""

    operator: Operator
    rows: int
    columns: int

    @cached_property
    def across(self) -> int:
        """Tiles in a row of a map."""
        return ceil_div(self.operator.out_width, self.columns)

    @cached_property
    def down(self) -> int:
        """Tiles in a column of a map."""
        return ceil_div(self.operator.out_height, self.rows)

    @cached_property
    def count(self) -> int:
        """Tiles of a map."""
        return self.across * self.down

    @property
    def input_rows(self) -> int:
        """Rows of the input that a tile needs."""
        return (self.rows - 1) * self.operator.stride + self.operator.kernel_height

    @property
    def input_columns(self) -> int:
        """Columns of the input that a tile needs."""
        return (self.columns - 1) * self.operator.stride + self.operator.kernel_width

    @property
    def input_size(self) -> int:
        """Elements of one channel that a tile needs, those outside of the image included."""
        return self.input_rows * self.input_columns

    @property
    def inside(self) -> float:
        """Elements of one channel of an image that its tiles need, summed over tiles, those outside left out."""
        o = self.operator
        rows = covered(o.height, np.arange(self.down) * self.rows * o.stride - o.padding, self.input_rows)
        columns = covered(o.width, np.arange(self.across) * self.columns * o.stride - o.padding, self.input_columns)
        return rows * columns


def covered(size: int, first: np.ndarray, count: int) -> float:
    """Return how many of ``count`` indices from each of ``first`` are of an axis of this size, 0 <= index < size."""
    return float(np.maximum(np.minimum(first + count, size) - np.maximum(first, 0), 0).sum())


def index_overhead(nonzero: int, rows: int, index_bytes: int) -> float:
    """Bytes of CSR's positions (column indices and row starts) over bytes of its FP32 values; 0 without values."""
    return index_bytes * (nonzero + rows + 1) / (4.0 * nonzero) if nonzero else 0.0


#: The source's table of shapes did not survive. These satisfy every constraint that its text states.
OPERATORS = {
    "lenet-conv1": Operator(1, 20, 5, 5, 28, 28),
    "lenet-conv2": Operator(20, 50, 5, 5, 12, 12),
    "cifar-conv2": Operator(32, 32, 5, 5, 16, 16, padding=2),
    "alexnet-conv1": Operator(3, 64, 11, 11, 224, 224, stride=4, padding=2),
    "alexnet-conv2": Operator(64, 64, 5, 5, 27, 27, padding=2),
    "resnet-conv1": Operator(64, 64, 3, 3, 56, 56, padding=1),
    "resnet-conv2": Operator(128, 128, 3, 3, 28, 28, padding=1),
    "vgg-conv1": Operator(3, 64, 3, 3, 224, 224, padding=1),
    "vgg-conv2": Operator(64, 64, 3, 3, 224, 224, padding=1),
    "vgg-conv3": Operator(128, 128, 3, 3, 112, 112, padding=1),
}


def known(name: str) -> str:
    """Return the name of one of `OPERATORS`. Raises `ValueError` for any other."""
    if name not in OPERATORS:
        raise ValueError(f"{name!r} is not one of {', '.join(OPERATORS)}{nearest(name, OPERATORS)}")
    return name
