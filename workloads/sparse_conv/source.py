"""Source generated for given weights: only the multiply-adds of non-zero weights, positions encoded in the code.

The code is OpenCL C in the kernel dialect, for every device. A work-item computes WIDTH neighbouring outputs, as one
vector, in ROWS rows of a block of filters, from the padded input (``pad.cl``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .operators import Operator

Offset = Callable[[int, int, int], int]  # channel, row, column of a window to words from its first input


@dataclass(frozen=True)
class Shape:
    """What a work-item computes: ``width`` outputs side by side, ``rows`` below each other, of ``filters`` filters."""

    width: int
    rows: int
    filters: int


@dataclass(frozen=True)
class Program:
    """Consecutive blocks of filters whose code is compiled together.

    Attributes
    ----------
    first : int
        First filter.
    blocks : int
    statements : int
        Multiply-adds in the source.
    loads : int
        Words (vectors) of the input that a work-item of each block reads, summed over the blocks.
    values : array of float32
        The non-zero weights in the order of the code.
    source : str
    """

    first: int
    blocks: int
    statements: int
    loads: int
    values: np.ndarray
    source: str


VECTORS = {1: "float", 4: "float4", 8: "float8", 16: "float16"}

PRELUDE = """
#if WIDTH == 1
#define VECTOR float
#define HINT
#define SPLAT(w) (w)
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define STORE_PART(v, n, p) (*(p) = (v))
#else
#define VECTOR CONCAT(float, WIDTH)
#define HINT EXPLICIT_VECTORS(VECTOR)
#define SPLAT CONCAT(SPLAT_FLOAT, WIDTH)
#define LOAD(p) CONCAT(vload, WIDTH)(0, (p))
#define STORE(v, p) CONCAT(vstore, WIDTH)((v), 0, (p))
#define CONCAT(a, b) CONCAT_(a, b)
#define CONCAT_(a, b) a##b
/* The first n < WIDTH components. */
void STORE_PART(VECTOR v, int n, __global float *p) {
#if WIDTH == 16
    float8 v8 = v.lo;
    if (n & 8) { vstore8(v8, 0, p); p += 8; v8 = v.hi; }
#elif WIDTH == 8
    float8 v8 = v;
#endif
#if WIDTH >= 8
    float4 v4 = v8.lo;
    if (n & 4) { vstore4(v4, 0, p); p += 4; v4 = v8.hi; }
#else
    float4 v4 = v;
#endif
    if ((n & 3) > 0) p[0] = v4.x;
    if ((n & 3) > 1) p[1] = v4.y;
    if ((n & 3) > 2) p[2] = v4.z;
}
#endif
"""

KERNEL = """
__kernel HINT REQD_GROUP(GROUP) void sparse(__global const float *RESTRICT padded, __global float *RESTRICT out,
                                            int zero) {
    const int item = get_global_id(0);
    if (item < ITEMS) {
        const int x = item % CHUNKS * WIDTH, y = item / CHUNKS % PARTS * ROWS, image = item / CHUNKS / PARTS;
        __global const float *from = padded + (size_t)image * (CHANNELS * PLANE) + y * STRIDE * LINE + x;
        __global float *to = out + ((size_t)image * FILTERS + FIRST) * (OUT_HEIGHT * OUT_WIDTH) + y * OUT_WIDTH + x;
        const int columns = min(OUT_WIDTH - x, WIDTH), rows = min(OUT_HEIGHT - y, ROWS);
        switch (get_group_id(1)) {
CASES
        }
    }
}
"""


def programs(
    operator: Operator, weights: np.ndarray, shape: Shape, offset: Offset, limit: int, table: bool
) -> list[Program]:
    """Generate the programs of a layer.

    Parameters
    ----------
    weights : array of float32, shape (K, C, R, S)
    shape : Shape
    offset : callable
        Words from the first input of an output's window to input (channel, row, column) of it.
    limit : int
        Multiply-adds in the source of one program; one block alone may have more.
    table : bool
        Values are read from constant memory (``table``) in place of literals.
    """
    found: list[Program] = []
    pending: list[tuple[int, np.ndarray]] = []

    def close() -> None:
        if pending:
            found.append(_program(operator, pending, shape, offset, table))
            pending.clear()

    size = 0
    for first in range(0, operator.filters, shape.filters):
        block = weights[first : first + shape.filters]
        statements = int(np.count_nonzero(block)) * shape.rows
        if size + statements > limit:
            close()
            size = 0
        pending.append((first, block))
        size += statements
    close()
    return found


def _program(
    operator: Operator, blocks: list[tuple[int, np.ndarray]], shape: Shape, offset: Offset, table: bool
) -> Program:
    values: list[float] = []
    functions, cases, loads = [], [], 0
    for number, (first, block) in enumerate(blocks):
        code: list[str] = []
        for line in _block(operator, block, shape, offset, values, table):
            loads += "LOAD" in line
            code.append(line)
        functions.append(
            f"void block{number}(__global const float *RESTRICT from, __global float *RESTRICT to, int columns, "
            "int rows, int zero) {\n"
            + "\n".join(code) + "\n}\n"
        )  # fmt: skip
        to = f"to + {(first - blocks[0][0]) * operator.pixels}"
        cases.append(f"        case {number}: block{number}(from, {to}, columns, rows, zero); break;")
    statements = len(values) * shape.rows
    source = PRELUDE + "".join(functions) + KERNEL.replace("CASES", "\n".join(cases))
    return Program(blocks[0][0], len(blocks), statements, loads, np.array(values, np.float32), source)


def _block(
    operator: Operator, block: np.ndarray, shape: Shape, offset: Offset, values: list[float], table: bool
) -> Iterator[str]:
    """Lines of one block's function: sums, one load for each input that any weight needs, multiply-adds, stores."""
    filters, stride = len(block), operator.stride
    sums = [[f"a{k}_{b}" for b in range(shape.rows)] for k in range(filters)]
    yield "    VECTOR " + ", ".join(f"{name} = SPLAT(0.0f)" for row in sums for name in row) + ", x;"
    for c in range(operator.channels):
        for s in range(operator.kernel_width):
            names: dict[tuple[int, int], str] = {}
            for r, k in zip(*np.nonzero(block[:, c, :, s].T), strict=True):
                value = float(block[k, c, r, s])
                names[int(r), int(k)] = f"CONSTANT_AT(table, {len(values)}, zero)" if table else f"{value.hex()}f"
                values.append(value)
            uses: dict[int, list[str]] = {}
            for (r, k), name in names.items():
                for b in range(shape.rows):
                    a = sums[k][b]
                    uses.setdefault(r + b * stride, []).append(f"{a} = fma(x, SPLAT({name}), {a});")
            for row in sorted(uses):
                yield f"    x = LOAD(from + {offset(c, row, s)}); " + " ".join(uses[row])
    names_flat = [name for row in sums for name in row]
    yield "    if (columns == WIDTH && rows == ROWS) {"
    for k in range(filters):
        for b in range(shape.rows):
            yield f"        STORE({sums[k][b]}, to + {k * operator.pixels + b * operator.out_width});"
    yield "    } else {"
    yield f"        VECTOR sums[{len(names_flat)}];"
    yield "        " + " ".join(f"sums[{i}] = {name};" for i, name in enumerate(names_flat))
    yield f"        for (int k = 0; k < {filters}; ++k)"
    yield "            for (int b = 0; b < rows; ++b) {"
    yield f"                __global float *p = to + k * {operator.pixels} + b * OUT_WIDTH;"
    yield "                if (columns == WIDTH) STORE(sums[k * ROWS + b], p);"
    yield "                else STORE_PART(sums[k * ROWS + b], columns, p);"
    yield "            }"
    yield "    }"
