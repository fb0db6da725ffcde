"""Rounding of whole numbers, as launch sizes and layouts need it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

Whole = TypeVar("Whole", int, np.ndarray)


def ceil_div(n: Whole, divisor: int) -> Whole:
    """Return n / divisor, rounded up; of NumPy's arrays, element by element."""
    return -(-n // divisor)


def round_up(n: Whole, multiple: int) -> Whole:
    """Return the least multiple that is not below n; of NumPy's arrays, element by element."""
    return ceil_div(n, multiple) * multiple
