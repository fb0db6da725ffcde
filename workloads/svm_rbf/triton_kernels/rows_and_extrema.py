"""RBF rows and arg-extrema in Triton, as one writes them in an afternoon.

No package (there is no __init__.py): discovery imports packages, and Triton only who has it.
"""

import triton
import triton.language as tl


@triton.jit
def two_rows(matrix, high, low, out_high, out_low, points, dims, scale, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Both kernel values of a block of rows."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = rows < points
    to_high = tl.zeros((ROWS, COLUMNS), tl.float32)
    to_low = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, dims, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        wanted = columns < dims
        values = tl.load(
            matrix + rows[:, None] * dims + columns[None, :], mask=here[:, None] & wanted[None, :], other=0.0
        )
        from_high = values - tl.load(high + columns, mask=wanted, other=0.0)[None, :]
        from_low = values - tl.load(low + columns, mask=wanted, other=0.0)[None, :]
        to_high += from_high * from_high
        to_low += from_low * from_low
    tl.store(out_high + rows, tl.exp(tl.sum(to_high, 1) * scale), mask=here)
    tl.store(out_low + rows, tl.exp(tl.sum(to_low, 1) * scale), mask=here)


@triton.jit
def least(values, indices, LAST: tl.constexpr):
    """The least of a block, and the lowest index that has it."""
    value = tl.min(values, 0)
    return value, tl.min(tl.where(values == value, indices, LAST), 0)


@triton.jit
def parts(
    vector, part_values, part_indices, count, chunk,
    BLOCK: tl.constexpr, EXTREMA: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Extrema of a program's chunk; the greatest is the least of what is negated. FIRST: the sign of the first one."""
    program = tl.program_id(0)
    start = program.to(tl.int64) * chunk
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("inf"), tl.float32)
    at = tl.full((BLOCK,), LAST, tl.int32)
    other = tl.full((BLOCK,), float("inf"), tl.float32)
    other_at = tl.full((BLOCK,), LAST, tl.int32)
    for step in range(0, chunk, BLOCK):
        places = start + step + lanes
        inside = (step + lanes < chunk) & (places < count)
        values = tl.load(vector + places, mask=inside, other=0.0)
        signed = tl.where(inside, values * FIRST, float("inf"))
        less = signed < best
        best = tl.where(less, signed, best)
        at = tl.where(less, places.to(tl.int32), at)
        if EXTREMA == 2:
            signed = tl.where(inside, -values, float("inf"))
            less = signed < other
            other = tl.where(less, signed, other)
            other_at = tl.where(less, places.to(tl.int32), other_at)
    value, index = least(best, at, LAST)
    tl.store(part_values + program, value)
    tl.store(part_indices + program, index)
    if EXTREMA == 2:
        value, index = least(other, other_at, LAST)
        tl.store(part_values + tl.num_programs(0) + program, value)
        tl.store(part_indices + tl.num_programs(0) + program, index)


@triton.jit
def whole(
    part_values, part_indices, out_values, out_indices, programs,
    BLOCK: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """The extremum of all parts; a program for each extremum."""
    extremum = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < programs
    values = tl.load(part_values + extremum * programs + lanes, mask=inside, other=float("inf"))
    indices = tl.load(part_indices + extremum * programs + lanes, mask=inside, other=LAST)
    value, index = least(values, indices, LAST)
    tl.store(out_values + extremum, value * FIRST if extremum == 0 else -value)
    tl.store(out_indices + extremum, index.to(tl.int64))
