"""The operator template for CUDA: its source with the template's weights as literals, its PTX kept on disk."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import platformdirs

from perfport.backend.cuda import CudaBackend
from perfport.workload import UnsupportedError, ceil_div

from .operators import Operator, Tiles
from .specialise import template_values

#: Multiply-adds of a template. NVRTC takes 4 s for this number and four times as long for twice as many.
TEMPLATE_LIMIT = 18_432
FILTER_LIMIT = 32
SEED = 7


@dataclass(frozen=True)
class Shape:
    """What the template computes: ``columns`` x ``rows`` work-items, each BN x BH x BW x BK outputs.

    Attributes
    ----------
    columns, rows : int
        Work-items of a group across and down.
    images, height, width, filters : int
        Outputs of a work-item: images, rows below each other, columns ``columns`` apart, filters.
    resident : int
        Work-groups that a compute unit must have registers for.
    prefetch : bool
        The next tile is fetched while the present one is used.
    """

    columns: int
    rows: int
    images: int
    height: int
    width: int
    filters: int
    resident: int
    prefetch: bool

    @property
    def items(self) -> int:
        """Work-items of a group."""
        return self.columns * self.rows

    @property
    def buffers(self) -> int:
        """Tiles in local memory."""
        return 2 if self.prefetch else 1

    def tiles(self, operator: Operator) -> Tiles:
        """Return the tiles of an operator, one for each work-group."""
        return Tiles(operator, self.rows * self.height, self.columns * self.width)


@dataclass(frozen=True)
class Template:
    """PTX of a template and the values that stand for its weights, shape (filters, C, R, S)."""

    ptx: str
    values: np.ndarray
    seconds: float
    cached: bool
    key: str


def local_bytes(operator: Operator, shape: Shape) -> int:
    """Local memory of a work-group."""
    return 4 * shape.buffers * shape.images * shape.tiles(operator).input_size


def filters_of(operator: Operator, outputs: int, limit: int = FILTER_LIMIT) -> int:
    """Filters of a template: the largest divisor of the operator's that keeps within the limits.

    Parameters
    ----------
    operator : Operator
    outputs : int
        Of a work-item for each filter.
    limit : int
        Filters at most.

    Raises
    ------
    UnsupportedError
        Where one filter alone exceeds `TEMPLATE_LIMIT`.
    """
    most = min(limit, TEMPLATE_LIMIT // (operator.taps * outputs))
    if most < 1:
        raise UnsupportedError(
            f"the unrolled code of one filter has {operator.taps * outputs} multiply-adds, the limit of a template is "
            f"{TEMPLATE_LIMIT}"
        )
    return max(count for count in range(1, most + 1) if operator.filters % count == 0)


def compiled(operator: Operator, shape: Shape, target: str) -> Template:
    """Return the PTX of a template, from the user's cache folder where it was compiled before."""
    values = template_values(shape.filters * operator.taps, SEED).reshape(shape.filters, *operator.shape[1:])
    text = source(operator, shape, values)
    backend = CudaBackend()
    key = hashlib.sha256("\0".join((text, target, backend.compiler)).encode()).hexdigest()[:24]
    path = cache_folder() / f"template-{key}.ptx"
    started = time.perf_counter()
    if path.exists():
        ptx = path.read_text(errors="replace")  # of a damaged one, the pass or the assembler says so
        return Template(ptx, values, time.perf_counter() - started, True, key)
    ptx = backend.ptx("template.cu", text, {}, target)
    seconds = time.perf_counter() - started
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{time.monotonic_ns()}")
    part.write_text(ptx)
    part.replace(path)
    return Template(ptx, values, seconds, False, key)


def cache_folder() -> Path:
    """Where templates are kept."""
    return Path(platformdirs.user_cache_dir("perfport")) / "sparse_conv"


def source(operator: Operator, shape: Shape, values: np.ndarray) -> str:
    """CUDA source of a template: straight-line code over channels, columns and rows of the kernel, and filters."""
    return "\n".join(_Source(operator, shape, values).lines())


class _Source:
    def __init__(self, operator: Operator, shape: Shape, values: np.ndarray) -> None:
        self.o, self.shape, self.values = operator, shape, values
        self.tiles = shape.tiles(operator)
        self.size = shape.images * self.tiles.input_size  # words of a tile
        self.fetches = range(ceil_div(self.size, shape.items))  # of a work-item for each tile
        self.outputs = list(product(range(shape.images), range(shape.height), range(shape.width)))
        self.sums = {(k, at): f"a{k}_" + "_".join(map(str, at)) for k in range(shape.filters) for at in self.outputs}

    def lines(self) -> Iterator[str]:
        yield from self._head()
        for i in self.fetches:
            yield from self._element(i)
        yield "    float " + ", ".join(f"next{i} = 0.0f" for i in self.fetches) + ";"
        # A zero that the compiler does not know: it would share its register with tiles' elements, and use that again.
        yield '    float zero; asm volatile("mov.f32 %0, 0f00000000;" : "=f"(zero));'
        yield "    float " + ", ".join(f"{name} = zero" for name in self.sums.values()) + ";"
        yield from self._fetch(0)
        yield from self._put(0)
        yield "    __syncthreads();"
        for c in range(self.o.channels):
            more = c + 1 < self.o.channels
            if more and self.shape.prefetch:
                yield from self._fetch(c + 1)
            yield from self._channel(c)
            if more and not self.shape.prefetch:
                yield "    __syncthreads();"
                yield from self._fetch(c + 1)
            if more:
                yield from self._put(c + 1)
                yield "    __syncthreads();"
        yield from self._stores()
        yield "}"

    def _head(self) -> Iterator[str]:
        """The kernel's parameters, and where a work-item and its tile are."""
        shape, across, down = self.shape, self.tiles.across, self.tiles.down
        yield f"__kernel __launch_bounds__({shape.items}, {shape.resident})"
        yield "void operator_template(const float *__restrict__ in,"
        yield "        float *__restrict__ out, int first_filter, int batch) {"
        yield f"    LOCAL_ARENA(float, tiles, {shape.buffers * self.size});"
        yield f"    const int item = threadIdx.x, column = item % {shape.columns}, row = item / {shape.columns};"
        yield f"    const int across = blockIdx.x % {across} * {shape.columns * shape.width};"
        yield f"    const int down = blockIdx.x / {across} % {down} * {shape.rows * shape.height};"
        yield f"    const int image = blockIdx.x / {across * down} * {shape.images}, images = batch - image;"
        yield f"    const float *from = in + (size_t)image * {self.o.inputs};"

    def _element(self, i: int) -> Iterator[str]:
        """Where the element of a tile that a work-item fetches lies in the image."""
        o, width, plane = self.o, self.tiles.input_columns, self.tiles.input_size
        yield f"    const int element{i} = item + {i * self.shape.items};"
        yield f"    const int n{i} = {f'element{i} / {plane}' if self.shape.images > 1 else 0};"
        yield f"    const int place{i} = element{i} - n{i} * {plane};"
        yield f"    const int y{i} = down * {o.stride} - {o.padding} + place{i} / {width};"
        yield f"    const int x{i} = across * {o.stride} - {o.padding} + place{i} % {width};"
        there = f"n{i} < images && " if self.shape.images > 1 else ""
        yield f"    const bool inside{i} = {there}y{i} >= 0 && y{i} < {o.height} && x{i} >= 0 && x{i} < {o.width};"
        yield f"    const int at{i} = n{i} * {o.inputs} + y{i} * {o.width} + x{i};"

    def _guarded(self, i: int) -> str:
        size, items = self.size, self.shape.items
        return "" if (i + 1) * items <= size else f"if (item < {size - i * items}) "

    def _fetch(self, c: int) -> Iterator[str]:
        """Read a tile of one channel into registers."""
        offset = c * self.o.height * self.o.width
        for i in self.fetches:
            yield f"    {self._guarded(i)}next{i} = inside{i} ? from[at{i} + {offset}] : 0.0f;"

    def _put(self, c: int) -> Iterator[str]:
        """Write it to local memory."""
        base = c % self.shape.buffers * self.size
        for i in self.fetches:
            yield f"    {self._guarded(i)}tiles[{base} + element{i}] = next{i};"

    def _channel(self, c: int) -> Iterator[str]:
        """Multiply-adds of one channel; a column of the window is read at a time."""
        o, shape, pitch = self.o, self.shape, self.tiles.input_columns
        first = f"row * {shape.height * o.stride * pitch} + column * {o.stride}"
        rows = sorted({b * o.stride + r for b in range(shape.height) for r in range(o.kernel_height)})
        yield f"    {{ const float *tile = tiles + {c % shape.buffers * self.size} + {first};"
        for s in range(o.kernel_width):
            yield "    {"
            for n, y, v in product(range(shape.images), rows, range(shape.width)):
                at = n * self.tiles.input_size + y * pitch + v * shape.columns * o.stride + s
                yield f"const float v{n}_{y}_{v} = tile[{at}];"
            for r in range(o.kernel_height):
                for k in range(shape.filters):
                    w = float(self.values[k, c, r, s]).hex()
                    for n, b, v in self.outputs:
                        a = self.sums[k, (n, b, v)]
                        yield f"{a} = fmaf(v{n}_{b * o.stride + r}_{v}, {w}f, {a});"
            yield "    }"
        yield "    }"

    def _stores(self) -> Iterator[str]:
        o, shape = self.o, self.shape
        yield f"    const int x = across + column, y = down + row * {shape.height};"
        at = f"((size_t)image * {o.filters} + first_filter) * {o.pixels} + y * {o.out_width} + x"
        yield f"    float *to = out + {at};"
        # Else the products of a single channel move into the branches of the stores.
        for name in self.sums.values():
            yield f'    asm volatile("" : "+f"({name}));'
        for n, b, v in self.outputs:
            right = v * shape.columns
            there = f"{n} < images && " if n else ""
            yield f"    if ({there}x + {right} < {o.out_width} && y + {b} < {o.out_height}) {{"
            first = n * o.outputs + b * o.out_width + right
            for k in range(shape.filters):
                yield f"        to[{first + k * o.pixels}] = {self.sums[k, (n, b, v)]};"
            yield "    }"
