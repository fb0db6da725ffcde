"""The operator template for CUDA: its source with the template's weights as literals, its PTX kept on disk."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
    """What the template computes: ``columns`` x ``rows`` work-items, each ``height`` outputs of ``filters`` filters.

    Registers are limited so that ``resident`` work-groups fit a compute unit.
    """

    columns: int
    rows: int
    height: int
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
        return Tiles(operator, self.rows * self.height, self.columns)


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
    return 4 * shape.buffers * shape.tiles(operator).input_size


def filters_of(operator: Operator, height: int) -> int:
    """Filters of a template: the largest divisor of the operator's that keeps within the limits.

    Raises
    ------
    UnsupportedError
        Where one filter alone exceeds `TEMPLATE_LIMIT`.
    """
    most = min(FILTER_LIMIT, TEMPLATE_LIMIT // (operator.taps * height))
    if most < 1:
        raise UnsupportedError(
            f"the unrolled code of one filter has {operator.taps * height} multiply-adds, the limit of a template is "
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
        self.fetches = range(ceil_div(self.tiles.input_size, shape.items))  # of a work-item for each tile
        self.sums = [(k, b) for k in range(shape.filters) for b in range(shape.height)]

    def lines(self) -> Iterator[str]:
        yield from self._head()
        for i in self.fetches:
            yield from self._element(i)
        yield "    float " + ", ".join(f"next{i} = 0.0f" for i in self.fetches) + ";"
        # A zero that the compiler does not know: it would share its register with tiles' elements, and use that again.
        yield '    float zero; asm volatile("mov.f32 %0, 0f00000000;" : "=f"(zero));'
        yield "    float " + ", ".join(f"a{k}_{b} = zero" for k, b in self.sums) + ";"
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
        yield "        float *__restrict__ out, int first_filter) {"
        yield f"    LOCAL_ARENA(float, tiles, {shape.buffers * self.tiles.input_size});"
        yield f"    const int item = threadIdx.x, column = item % {shape.columns}, row = item / {shape.columns};"
        yield f"    const int across = blockIdx.x % {across} * {shape.columns};"
        yield f"    const int down = blockIdx.x / {across} % {down} * {shape.rows * shape.height};"
        yield f"    const int image = blockIdx.x / {across * down};"
        yield f"    const float *from = in + (size_t)image * {self.o.inputs};"

    def _element(self, i: int) -> Iterator[str]:
        """Where the element of a tile that a work-item fetches lies in the image."""
        o, width = self.o, self.tiles.input_columns
        yield f"    const int element{i} = item + {i * self.shape.items};"
        yield f"    const int y{i} = down * {o.stride} - {o.padding} + element{i} / {width};"
        yield f"    const int x{i} = across * {o.stride} - {o.padding} + element{i} % {width};"
        yield f"    const bool inside{i} = y{i} >= 0 && y{i} < {o.height} && x{i} >= 0 && x{i} < {o.width};"
        yield f"    const int at{i} = y{i} * {o.width} + x{i};"

    def _guarded(self, i: int) -> str:
        size, items = self.tiles.input_size, self.shape.items
        return "" if (i + 1) * items <= size else f"if (item < {size - i * items}) "

    def _fetch(self, c: int) -> Iterator[str]:
        """Read a tile of one channel into registers."""
        offset = c * self.o.height * self.o.width
        for i in self.fetches:
            yield f"    {self._guarded(i)}next{i} = inside{i} ? from[at{i} + {offset}] : 0.0f;"

    def _put(self, c: int) -> Iterator[str]:
        """Write it to local memory."""
        base = c % self.shape.buffers * self.tiles.input_size
        for i in self.fetches:
            yield f"    {self._guarded(i)}tiles[{base} + element{i}] = next{i};"

    def _channel(self, c: int) -> Iterator[str]:
        """Multiply-adds of one channel; a column of the window is read at a time."""
        o, height, width = self.o, self.shape.height, self.tiles.input_columns
        first = f"row * {height * o.stride * width} + column * {o.stride}"
        window = sorted({b * o.stride + r for b in range(height) for r in range(o.kernel_height)})
        yield f"    {{ const float *tile = tiles + {c % self.shape.buffers * self.tiles.input_size} + {first};"
        for s in range(o.kernel_width):
            yield "    { " + " ".join(f"const float v{y} = tile[{y * width + s}];" for y in window)
            for r in range(o.kernel_height):
                for k in range(self.shape.filters):
                    w = float(self.values[k, c, r, s]).hex()
                    for b in range(height):
                        yield f"a{k}_{b} = fmaf(v{b * o.stride + r}, {w}f, a{k}_{b});"
            yield "    }"
        yield "    }"

    def _stores(self) -> Iterator[str]:
        o, height = self.o, self.shape.height
        yield f"    const int x = across + column, y = down + row * {height};"
        at = f"((size_t)image * {o.filters} + first_filter) * {o.pixels} + y * {o.out_width} + x"
        yield f"    float *to = out + {at};"
        # Else the products of a single channel move into the branches of the stores.
        for k, b in self.sums:
            yield f'    asm volatile("" : "+f"(a{k}_{b}));'
        for b in range(height):
            yield f"    if (x < {o.out_width} && y + {b} < {o.out_height}) {{"
            for k in range(self.shape.filters):
                yield f"        to[{k * o.pixels + b * o.out_width}] = a{k}_{b};"
            yield "    }"
