"""Code of the pruned network's layers for one launch (``network.cl``): only the multiply-adds of non-zero weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from perfport.workload import ceil_div

from .walk import Emitter, Product, Scan, Walk, Word

MEETING = "    barrier(CLK_LOCAL_MEM_FENCE);"


def first_layer(weights: np.ndarray, side: int, plane: int) -> str:
    """Source of ``first_layer``: four convolutions of each filter, ReLU and their maximum.

    Parameters
    ----------
    weights : array of float32, shape (K, 1, R, S)
        R and S odd: the window of a pooled pixel is read in pairs.
    side, plane : int
        Words from row to row of the image, and from map to map of the pooled output.
    """
    return "\n".join(
        [
            "INLINE void first_layer(__local const float *from, __local float *to) {",
            *_first_layer(weights[:, 0], side, plane),
            "}\n",
        ]
    )


def _first_layer(weights: np.ndarray, side: int, plane: int) -> Iterator[str]:
    taps = [list(zip(*np.nonzero(own), strict=True)) for own in weights]
    corners = [(down, right) for down in (0, 1) for right in (0, 1)]
    used = {(r + down, (s + right) // 2) for own in taps for r, s in own for down, right in corners}
    for y, x in sorted(used):
        yield f"    const float2 v{y}_{x} = vload2(0, from + {y * side + 2 * x});"
    for k, own in enumerate(taps):
        for corner, (down, right) in enumerate(corners):
            yield f"    float a{k}_{corner} = 0.0f;"
            for r, s in own:
                word = f"v{r + down}_{(s + right) // 2}.{'xy'[(s + right) % 2]}"
                yield f"    a{k}_{corner} = fma({word}, {_literal(weights[k, r, s])}, a{k}_{corner});"
        yield f"    to[{k * plane}] = max(max(max(a{k}_0, a{k}_1), max(a{k}_2, a{k}_3)), 0.0f);"


def second_layer(weights: np.ndarray, side: int, block: int) -> str:
    """Source of ``second_layer``: the sums of all filters at one pixel.

    Parameters
    ----------
    weights : array of float32, shape (K, C, R, S)
    side : int
        Words from row to row of an input map.
    block : int
        Channels after which the work-items of a group meet, so that they run the same code.
    """
    walk = Walk(len(weights), 1, 1, Scan.ALONG, block)
    return "\n".join([*walk.code(weights, _Pixel(side)), "}\n"])


class _Pixel(Emitter):
    """Lines of the second layer: one word at a time from the pooled maps in local memory, sums in an array."""

    def __init__(self, side: int) -> None:
        self.side = side

    def start(self, filters: int) -> Iterator[str]:
        yield "INLINE void second_layer(__local const float *from, float *sums) {"
        yield "    float x;"

    def block(self, number: int) -> Iterator[str]:
        if number:
            yield MEETING

    def load(self, words: Sequence[Word]) -> Iterator[str]:
        for word in words:
            yield f"    x = from[{(word.channel * self.side + word.row) * self.side + word.column}];"

    def multiply_add(self, word: Word, product: Product) -> str:
        return f"    sums[{product.filter}] = fma(x, {_literal(product.weight)}, sums[{product.filter}]);"

    def store(self) -> Iterable[str]:
        return ()  # the caller has the sums


def last_layer(weights: np.ndarray, lanes: int, pixels: int, width: int) -> np.ndarray:
    """Pairs of place and value, shape (entries, lanes, 2): those of a class are dealt out over its lanes.

    Parameters
    ----------
    weights : array of float32, shape (classes, K, height, width) of the pooled maps
    lanes : int
        A multiple of the classes; lane ``class + i classes`` has a share of the class.
    pixels, width : int
        Words of a map ahead of pooling, and of its rows, of which every other one stands in the first half.
    """
    classes = len(weights)
    share = lanes // classes
    taps = [np.argwhere(own) for own in weights]
    table = np.zeros((max(1, *(ceil_div(len(own), share) for own in taps)), lanes, 2), np.float32)
    for number, own in enumerate(taps):
        filters, y, x = own.T
        entry, part = np.divmod(np.arange(len(own)), share)
        lane = number + part * classes
        table[entry, lane, 0] = filters * pixels + y * width + 2 * x
        table[entry, lane, 1] = weights[number][tuple(own.T)]
    return table


def _literal(value: float) -> str:
    return f"{float(value).hex()}f"
