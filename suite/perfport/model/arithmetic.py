"""Arithmetic that all packages share: whole numbers rounded up, as launch sizes and layouts need it, and means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Whole = TypeVar("Whole", int, np.ndarray)


def ceil_div(n: Whole, divisor: int) -> Whole:
    """Return n / divisor, rounded up; of NumPy's arrays, element by element."""
    return -(-n // divisor)


def round_up(n: Whole, multiple: int) -> Whole:
    """Return the least multiple that is not below n; of NumPy's arrays, element by element."""
    return ceil_div(n, multiple) * multiple


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of values of at least 0: zero if one of them is, as of a clock too coarse."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if all(values) else 0.0
