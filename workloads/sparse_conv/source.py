"""Source generated for given weights: only the multiply-adds of non-zero weights, positions encoded in the code.

The code is OpenCL C in the kernel dialect, for every device; it goes down the columns of a channel's window
(`..walk`). A work-item computes WIDTH neighbouring outputs, as one vector, in ROWS rows of a block of filters, from
the padded input (``pad.cl``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfport.workload import ceil_div

from .operators import Operator
from .walk import Emitter, Product, Scan, Slice, Walk, Word

Offset = Callable[[int, int, int], int]  # channel, row, column of a window to words from its first input


@dataclass(frozen=True)
class Shape:
    """What a work-item computes: ``width`` outputs side by side, ``rows`` below each other, of ``filters`` filters."""

    width: int
    rows: int
    filters: int


@dataclass(frozen=True)
class Strip:
    """Columns of the output that vectors of one width cover: ``chunks`` of them side by side, from ``left`` on."""

    left: int
    width: int
    chunks: int

    @property
    def end(self) -> int:
        """The column behind the last vector, which may reach past the edge."""
        return self.left + self.width * self.chunks


def strips(columns: int, width: int, tail: bool) -> list[Strip]:
    """Cover columns by vectors of a width; of a ``tail`` the last ones by the narrowest vector that holds them."""
    whole, rest = divmod(columns, width)
    narrow = min(vector for vector in VECTORS if vector >= rest)
    if not tail or not rest or narrow == width:
        return [Strip(0, width, ceil_div(columns, width))]
    last = Strip(whole * width, narrow, 1)
    return [Strip(0, width, whole), last] if whole else [last]


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


VECTORS = (1, 4, 8, 16)

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
        const int x = LEFT + item % CHUNKS * WIDTH, y = item / CHUNKS % PARTS * ROWS, image = item / CHUNKS / PARTS;
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

    @property
    def walk(self) -> Walk:
        """The order of the code."""
        return Walk(self.shape.filters, self.shape.rows, self.operator.stride, Scan.DOWN)

    def programs(self, weights: np.ndarray, limit: int) -> list[Program]:
        """Generate the programs of a layer.

        Parameters
        ----------
        weights : array of float32, shape (K, C, R, S)
        limit : int
            Multiply-adds in the source of one program; one block alone may have more.
        """
        return [self._program(blocks) for blocks in self.walk.programs(weights, limit)]

    def _program(self, blocks: list[Slice]) -> Program:
        code = _Vectors(self)
        functions, cases = [], []
        for number, (first, block) in enumerate(blocks):
            functions.append(
                f"void block{number}(__global const float *RESTRICT from, __global float *RESTRICT to, int columns, "
                "int rows, int zero) {\n"
                + "".join(self.walk.code(block, code)) + "\n}\n"
            )  # fmt: skip
            to = f"to + {(first - blocks[0].first) * self.operator.pixels}"
            cases.append(f"        case {number}: block{number}(from, {to}, columns, rows, zero); break;")
        values = np.array(code.values, np.float32)
        source = PRELUDE + "".join(functions) + KERNEL.replace("CASES", "\n".join(cases))
        return Program(blocks[0].first, len(blocks), values.size * self.shape.rows, code.loads, values, source)


class _Vectors(Emitter):
    """Functions of a program's blocks: a line for each word, with its multiply-adds; a sum is a vector.

    Attributes
    ----------
    values : list of float
        The weights so far, in the order in which the code first uses them.
    loads : int
        Words (vectors) of the input that the code so far reads.
    """

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.values: list[float] = []
        self.loads = 0
        self.places: dict[tuple[int, tuple[int, int, int]], int] = {}  # of a block: filter and tap to place in values
        self.sums: list[list[str]] = []

    def start(self, filters: int) -> Iterator[str]:
        self.places.clear()
        self.sums = [[f"a{k}_{b}" for b in range(self.generator.shape.rows)] for k in range(filters)]
        yield "    VECTOR " + ", ".join(f"{name} = SPLAT(0.0f)" for row in self.sums for name in row) + ", x;"

    def load(self, words: Sequence[Word]) -> Iterator[str]:
        for word in words:
            self.loads += 1
            yield f"\n    x = LOAD(from + {self.generator.offset(word.channel, word.row, word.column)});"

    def multiply_add(self, word: Word, product: Product) -> str:
        key = product.filter, product.tap
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(product.weight)
        at_table = f"CONSTANT_AT(table, {self.places[key]}, zero)"
        weight = at_table if self.generator.table else f"{product.weight.hex()}f"
        a = self.sums[product.filter][product.row]
        return f" {a} = fma(x, SPLAT({weight}), {a});"

    def store(self) -> Iterator[str]:
        o, sums = self.generator.operator, self.sums
        names = [name for row in sums for name in row]
        yield "\n    if (columns == WIDTH && rows == ROWS) {"
        for k, row in enumerate(sums):
            for b, name in enumerate(row):
                yield f"\n        STORE({name}, to + {k * o.pixels + b * o.out_width});"
        yield "\n    } else {"
        yield f"\n        VECTOR sums[{len(names)}];"
        yield "\n        " + " ".join(f"sums[{i}] = {name};" for i, name in enumerate(names))
        yield f"\n        for (int k = 0; k < {len(sums)}; ++k)"
        yield "\n            for (int b = 0; b < rows; ++b) {"
        yield f"\n                __global float *p = to + k * {o.pixels} + b * OUT_WIDTH;"
        yield "\n                if (columns == WIDTH) STORE(sums[k * ROWS + b], p);"
        yield "\n                else STORE_PART(sums[k * ROWS + b], columns, p);"
        yield "\n            }"
        yield "\n    }"
