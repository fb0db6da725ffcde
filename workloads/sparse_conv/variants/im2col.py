"""im2col and a matrix product, dense or over compressed sparse rows, written as kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from perfport.workload import Buffer, Traffic, Tunable, UnsupportedError, ceil_div, round_up

from ..operators import covered
from ..weights import compressed
from .engine import Convolution

MATRIX_SHARE = 4  # the matrix takes at most this part of the device's memory
MATRIX_BYTES = 1 << 33  # ... and no more than this
COLUMN_LIMIT = 1_000_000  # cuSPARSE has returned zeros in silence above 1 048 560 columns


class Im2col(Convolution):
    """The matrix, for as many images at a time as fit into memory."""

    GROUP: ClassVar[dict[str, Tunable]] = {
        "group": Tunable({"cpu": 64, "gpu": 256}, (64, 128, 256), "work-items per work-group of im2col"),
    }

    def prepare(self) -> None:
        o, info = self.operator, self.device.info
        image_bytes = 4 * o.taps * o.pixels
        free = min((info.memory_bytes - self.device.allocated) // MATRIX_SHARE, info.max_alloc_bytes, MATRIX_BYTES)
        if image_bytes > free:
            raise UnsupportedError(
                f"im2col's matrix of one image needs {image_bytes} bytes, {info.id} has {free} for it"
            )
        self.images = max(
            1, min(self.batch, free // image_bytes, COLUMN_LIMIT // o.pixels, 2**31 // (o.taps * o.pixels))
        )
        self.matrix: Buffer = self.setup.scratch(image_bytes * self.images)
        self.kernel = self.setup.kernel("im2col.cl", "im2col", **self.sizes)
        self.group = self.tunables.get("group", 256)
        self.prepare_product()

    def prepare_product(self) -> None:
        """Compile what multiplies."""
        raise NotImplementedError

    def multiply(self, first: int, columns: int) -> None:
        """Enqueue the product of the weights with the matrix of the images from ``first`` on."""
        raise NotImplementedError

    def product_traffic(self, columns: int) -> Traffic:
        """What `multiply` causes."""
        raise NotImplementedError

    def launch(self) -> None:
        o = self.operator
        for first in range(0, self.batch, self.images):
            images = min(self.images, self.batch - first)
            groups = ceil_div(images * o.pixels, self.group)
            arguments = (self.source, self.matrix, np.int32(first), np.int32(images))
            self.device.launch(self.kernel, (groups, o.taps), (self.group, 1), *arguments)
            self.multiply(first, images * o.pixels)

    def traffic(self) -> Traffic:
        o = self.operator
        down = np.arange(o.out_height) * o.stride - o.padding
        across = np.arange(o.out_width) * o.stride - o.padding
        rows = [covered(o.height, down + r, 1) for r in range(o.kernel_height)]
        columns = [covered(o.width, across + s, 1) for s in range(o.kernel_width)]
        read = 4.0 * self.batch * o.channels * sum(rows) * sum(columns)
        matrix = 4.0 * o.taps * o.pixels * self.batch
        unrolled = Traffic(global_read=read, global_write=matrix, dram_read=self.input_bytes, dram_write=matrix)
        counts = [min(self.images, self.batch - first) for first in range(0, self.batch, self.images)]
        return Traffic.total(unrolled, *(self.product_traffic(images * o.pixels) for images in counts))

    @property
    def product_sizes(self) -> dict[str, int]:
        """Macros of ``product.cl``."""
        o = self.operator
        return {"FILTERS": o.filters, "TAPS": o.taps, "PIXELS": o.pixels}


class DenseProduct(Im2col):
    """A tiled product with operands in local memory (``product.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = {
        **Im2col.GROUP,
        "tile": Tunable({"cpu": 32, "gpu": 64}, (16, 32, 64, 128), "filters and columns of a work-group"),
        "side": Tunable({"cpu": 4, "gpu": 4}, (2, 4, 8), "filters and columns of a work-item"),
        "depth": Tunable(8, (4, 8, 16), "taps per step"),
    }

    def prepare_product(self) -> None:
        self.weights = self.upload("dense", self.layer.weights)
        self.product: Any = self.setup.kernel("product.cl", "product", DENSE=1, **self.product_sizes)

    def multiply(self, first: int, columns: int) -> None:
        tile, side = self.tunables["tile"], self.tunables["side"]
        groups = (ceil_div(columns, tile), ceil_div(self.operator.filters, tile))
        arguments = (self.weights, self.matrix, self.result, np.int32(first), np.int32(columns))
        self.device.launch(self.product, groups, ((tile // side) ** 2, 1), *arguments)

    def product_traffic(self, columns: int) -> Traffic:
        o, tile, side, depth = self.operator, self.tunables["tile"], self.tunables["side"], self.tunables["depth"]
        across, down = ceil_div(columns, tile), ceil_div(o.filters, tile)
        steps = round_up(o.taps, depth)
        words = float(across * down) * steps * tile
        return Traffic(
            flops=2 * words * tile, local_write=8 * words, local_read=4 * words * tile * 2 / side,
            global_read=4.0 * o.taps * (columns * down + o.filters * across), global_write=4.0 * o.filters * columns,
            dram_read=4.0 * o.taps * (columns + o.filters), dram_write=4.0 * o.filters * columns,
        )  # fmt: skip


class SparseProduct(Im2col):
    """A sum over compressed sparse rows for each column of the matrix (``product.cl``)."""

    TUNABLES: ClassVar[dict[str, Tunable]] = Im2col.GROUP

    def prepare_product(self) -> None:
        rows = compressed(self.layer.weights)
        taps, values = np.append(rows.taps, np.int32(0)), np.append(rows.values, np.float32(0))  # never empty
        self.arrays = [self.upload("starts", rows.starts), self.upload("taps", taps), self.upload("values", values)]
        self.product: Any = self.setup.kernel("product.cl", "product", **self.product_sizes)

    def multiply(self, first: int, columns: int) -> None:
        groups = (ceil_div(columns, self.group), self.operator.filters)
        arguments = (*self.arrays, self.matrix, self.result, np.int32(first), np.int32(columns))
        self.device.launch(self.product, groups, (self.group, 1), *arguments)

    def product_traffic(self, columns: int) -> Traffic:
        o, nonzero = self.operator, self.layer.nonzero
        return Traffic(
            flops=2.0 * columns * nonzero, global_read=4.0 * columns * (3 * nonzero + 2 * o.filters),
            global_write=4.0 * o.filters * columns, dram_write=4.0 * o.filters * columns,
            dram_read=4.0 * o.taps * columns + 8 * nonzero,
        )  # fmt: skip
