"""Rounding of whole numbers, as launch sizes and layouts need it."""

from __future__ import annotations


def ceil_div(n: int, divisor: int) -> int:
    """Return n / divisor, rounded up; of NumPy's arrays, element by element."""
    return -(-n // divisor)


def round_up(n: int, multiple: int) -> int:
    """Return the least multiple that is not below n."""
    return ceil_div(n, multiple) * multiple
