"""The operator template for CUDA: its source with the template's weights as literals, its PTX kept on disk."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs

from perfport.backend.cuda import CudaBackend
from perfport.model.errors import UnsupportedError

from .operators import Operator
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


@dataclass(frozen=True)
class Template:
    """PTX of a template and the values that stand for its weights, shape (filters, C, R, S)."""

    ptx: str
    values: np.ndarray
    seconds: float
    cached: bool
    key: str


def tile_of(operator: Operator, shape: Shape) -> tuple[int, int]:
    """Rows and columns of the input that a work-group reads of one channel."""
    height = (shape.rows * shape.height - 1) * operator.stride + operator.kernel_height
    return height, (shape.columns - 1) * operator.stride + operator.kernel_width


def local_bytes(operator: Operator, shape: Shape) -> int:
    """Local memory of a work-group."""
    height, width = tile_of(operator, shape)
    return 4 * shape.buffers * height * width


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
        ptx = path.read_text()
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
    o = operator
    tile_height, tile_width = tile_of(o, shape)
    tile = tile_width * tile_height
    fetches = range(-(-tile // shape.items))
    across = -(-o.out_width // shape.columns)
    down = -(-o.out_height // (shape.rows * shape.height))
    buffers = shape.buffers

    def guarded(i: int) -> str:
        return "" if (i + 1) * shape.items <= tile else f"if (item < {tile - i * shape.items}) "

    code = [
        f"__kernel __launch_bounds__({shape.items}, {shape.resident})",
        "void operator_template(const float *__restrict__ in,",
        "        float *__restrict__ out, int first_filter) {",
        f"    LOCAL_ARENA(float, tiles, {buffers * tile});",
        f"    const int item = threadIdx.x, column = item % {shape.columns}, row = item / {shape.columns};",
        f"    const int across = blockIdx.x % {across} * {shape.columns};",
        f"    const int down = blockIdx.x / {across} % {down} * {shape.rows * shape.height};",
        f"    const int image = blockIdx.x / {across * down};",
        f"    const float *from = in + (size_t)image * {o.inputs};",
    ]
    for i in fetches:
        code += [
            f"    const int element{i} = item + {i * shape.items};",
            f"    const int y{i} = down * {o.stride} - {o.padding} + element{i} / {tile_width};",
            f"    const int x{i} = across * {o.stride} - {o.padding} + element{i} % {tile_width};",
            f"    const bool inside{i} = y{i} >= 0 && y{i} < {o.height} && x{i} >= 0 && x{i} < {o.width};",
            f"    const int at{i} = y{i} * {o.width} + x{i};",
        ]

    def fetch(c: int) -> list[str]:
        return [
            f"    {guarded(i)}next{i} = inside{i} ? from[at{i} + {c * o.height * o.width}] : 0.0f;" for i in fetches
        ]

    def put(c: int) -> list[str]:
        base = c % buffers * tile
        return [f"    {guarded(i)}tiles[{base} + element{i}] = next{i};" for i in fetches]

    code.append("    float " + ", ".join(f"next{i} = 0.0f" for i in fetches) + ";")
    pairs = [(k, b) for k in range(shape.filters) for b in range(shape.height)]
    # A zero that the compiler does not know: it would share its register with tiles' elements, and use that again.
    code.append('    float zero; asm volatile("mov.f32 %0, 0f00000000;" : "=f"(zero));')
    code.append("    float " + ", ".join(f"a{k}_{b} = zero" for k, b in pairs) + ";")
    code += [*fetch(0), *put(0), "    __syncthreads();"]
    first = f"row * {shape.height * o.stride * tile_width} + column * {o.stride}"
    window = sorted({b * o.stride + r for b in range(shape.height) for r in range(o.kernel_height)})
    for c in range(o.channels):
        more = c + 1 < o.channels
        if more and shape.prefetch:
            code += fetch(c + 1)
        code.append(f"    {{ const float *tile = tiles + {c % buffers * tile} + {first};")
        for s in range(o.kernel_width):
            code.append("    { " + " ".join(f"const float v{y} = tile[{y * tile_width + s}];" for y in window))
            for r in range(o.kernel_height):
                for k in range(shape.filters):
                    w = float(values[k, c, r, s]).hex()
                    code += [f"a{k}_{b} = fmaf(v{b * o.stride + r}, {w}f, a{k}_{b});" for b in range(shape.height)]
            code.append("    }")
        code.append("    }")
        if more and not shape.prefetch:
            code += ["    __syncthreads();", *fetch(c + 1)]
        if more:
            code += [*put(c + 1), "    __syncthreads();"]
    code += [
        f"    const int x = across + column, y = down + row * {shape.height};",
        f"    float *to = out + ((size_t)image * {o.filters} + first_filter) * {o.pixels} + y * {o.out_width} + x;",
    ]
    # Else the products of a single channel move into the branches of the stores.
    code += [f'    asm volatile("" : "+f"(a{k}_{b}));' for k, b in pairs]
    for b in range(shape.height):
        code.append(f"    if (x < {o.out_width} && y + {b} < {o.out_height}) {{")
        code += [f"        to[{k * o.pixels + b * o.out_width}] = a{k}_{b};" for k in range(shape.filters)]
        code.append("    }")
    code.append("}")
    return "\n".join(code)
