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


@dataclass(frozen=True)
class Generator:
    """What source is generated for.

    Attributes
    ----------
    operator : Operator
    shape : Shape
    offset : callable
        Words from the first input of an output's window to input (channel, row, column) of it.
    table : bool
        Values are read from constant memory (``table``) in place of literals.
    """

    operator: Operator
    shape: Shape
    offset: Offset
    table: bool

    def programs(self, weights: np.ndarray, limit: int) -> list[Program]:
        """Generate the programs of a layer.

        Parameters
        ----------
        weights : array of float32, shape (K, C, R, S)
        limit : int
            Multiply-adds in the source of one program; one block alone may have more.
        """
        groups: list[list[tuple[int, np.ndarray]]] = []
        size = limit + 1
        for first in range(0, self.operator.filters, self.shape.filters):
            block = weights[first : first + self.shape.filters]
            statements = int(np.count_nonzero(block)) * self.shape.rows
            size += statements
            if size > limit:
                groups.append([])
                size = statements
            groups[-1].append((first, block))
        return [self._program(blocks) for blocks in groups]

    def _program(self, blocks: list[tuple[int, np.ndarray]]) -> Program:
        values: list[float] = []
        functions, cases, loads = [], [], 0
        for number, (first, block) in enumerate(blocks):
            code: list[str] = []
            for line in self._block(block, values):
                loads += "LOAD" in line
                code.append(line)
            functions.append(
                f"void block{number}(__global const float *RESTRICT from, __global float *RESTRICT to, int columns, "
                "int rows, int zero) {\n"
                + "\n".join(code) + "\n}\n"
            )  # fmt: skip
            to = f"to + {(first - blocks[0][0]) * self.operator.pixels}"
            cases.append(f"        case {number}: block{number}(from, {to}, columns, rows, zero); break;")
        statements = len(values) * self.shape.rows
        source = PRELUDE + "".join(functions) + KERNEL.replace("CASES", "\n".join(cases))
        return Program(blocks[0][0], len(blocks), statements, loads, np.array(values, np.float32), source)

    def _block(self, block: np.ndarray, values: list[float]) -> Iterator[str]:
        """Lines of one block's function: sums, one load for each input that any weight needs, multiply-adds, stores."""
        sums = [[f"a{k}_{b}" for b in range(self.shape.rows)] for k in range(len(block))]
        yield "    VECTOR " + ", ".join(f"{name} = SPLAT(0.0f)" for row in sums for name in row) + ", x;"
        for c in range(self.operator.channels):
            for s in range(self.operator.kernel_width):
                names: dict[tuple[int, int], str] = {}
                for r, k in zip(*np.nonzero(block[:, c, :, s].T), strict=True):
                    value = float(block[k, c, r, s])
                    at = f"CONSTANT_AT(table, {len(values)}, zero)" if self.table else f"{value.hex()}f"
                    names[int(r), int(k)] = at
                    values.append(value)
                uses: dict[int, list[str]] = {}
                for (r, k), name in names.items():
                    for b, a in enumerate(sums[k]):
                        row = r + b * self.operator.stride
                        uses.setdefault(row, []).append(f"{a} = fma(x, SPLAT({name}), {a});")
                for row in sorted(uses):
                    yield f"    x = LOAD(from + {self.offset(c, row, s)}); " + " ".join(uses[row])
        yield from self._stores(sums)

    def _stores(self, sums: list[list[str]]) -> Iterator[str]:
        pixels, width = self.operator.pixels, self.operator.out_width
        names = [name for row in sums for name in row]
        yield "    if (columns == WIDTH && rows == ROWS) {"
        for k, row in enumerate(sums):
            for b, name in enumerate(row):
                yield f"        STORE({name}, to + {k * pixels + b * width});"
        yield "    } else {"
        yield f"        VECTOR sums[{len(names)}];"
        yield "        " + " ".join(f"sums[{i}] = {name};" for i, name in enumerate(names))
        yield f"        for (int k = 0; k < {len(sums)}; ++k)"
        yield "            for (int b = 0; b < rows; ++b) {"
        yield f"                __global float *p = to + k * {pixels} + b * OUT_WIDTH;"
        yield "                if (columns == WIDTH) STORE(sums[k * ROWS + b], p);"
        yield "                else STORE_PART(sums[k * ROWS + b], columns, p);"
        yield "            }"
        yield "    }"
