"""The float64 reference: products of gathered inputs with the weights."""

from __future__ import annotations

import numpy as np

from perfport.workload import in_blocks

from .operators import Operator

CHUNK_WORDS = 1 << 23  # float64 words gathered at a time


def outputs_at(operator: Operator, x: np.ndarray, weights: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return all filters' outputs at some positions.

    Parameters
    ----------
    x : array of float, shape (N, C, H, W)
    weights : array of float, shape (K, C, R, S)
    positions : array of int, shape (P,)
        Flat (image, row, column) of the output maps.

    Returns
    -------
    array of float64, shape (P, K)
    """
    matrix = weights.reshape(operator.filters, -1).astype(np.float64).T
    step = max(1, CHUNK_WORDS // operator.taps)
    parts = [gathered(operator, x, positions[i : i + step]) @ matrix for i in range(0, len(positions), step)]
    return np.concatenate(parts)


def gathered(operator: Operator, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rows of the im2col matrix at some positions, float64, shape (P, C R S)."""
    image, pixel = np.divmod(positions, operator.pixels)
    row, column = np.divmod(pixel, operator.out_width)
    rows = row[:, None] * operator.stride - operator.padding + np.arange(operator.kernel_height)
    columns = column[:, None] * operator.stride - operator.padding + np.arange(operator.kernel_width)
    inside = ((rows >= 0) & (rows < operator.height))[:, :, None]
    inside = inside & ((columns >= 0) & (columns < operator.width))[:, None, :]
    rows, columns = rows.clip(0, operator.height - 1), columns.clip(0, operator.width - 1)
    channels = np.arange(operator.channels)[None, :, None, None]
    values = x[image[:, None, None, None], channels, rows[:, None, :, None], columns[:, None, None, :]]
    return np.where(inside[:, None], values, 0.0).astype(np.float64).reshape(len(positions), -1)


def signed(operator: Operator, x: np.ndarray, weights: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return the sums over the filters of all outputs, with signs: the convolution with one filter, theirs.

    Parameters
    ----------
    x, weights : as of `outputs_at`
    signs : array of float64, shape (K,)

    Returns
    -------
    array of float64, shape (N, H' W')
    """
    o = operator
    taps = np.tensordot(signs, weights.astype(np.float64), 1).reshape(o.channels, -1).T
    pad, shape = o.padding, (o.kernel_height, o.kernel_width)
    sums = np.zeros((len(x), o.out_height, o.out_width))

    def fill(images: slice) -> None:
        for image, own in zip(x[images], sums[images], strict=True):
            maps = (taps @ image.reshape(o.channels, -1).astype(np.float64)).reshape(*shape, o.height, o.width)
            maps = np.pad(maps, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
            for row, column in np.ndindex(shape):
                rows = slice(row, row + o.stride * o.out_height, o.stride)
                columns = slice(column, column + o.stride * o.out_width, o.stride)
                own += maps[row, column, rows, columns][: o.out_height, : o.out_width]

    in_blocks(fill, len(x), 1)
    return sums.reshape(len(x), -1)


def convolution(operator: Operator, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return every output, float64, shape (N, K, H', W')."""
    positions = np.arange(len(x) * operator.pixels)
    outputs = outputs_at(operator, x, weights, positions).reshape(len(x), operator.pixels, operator.filters)
    return outputs.transpose(0, 2, 1).reshape(len(x), operator.filters, operator.out_height, operator.out_width)
