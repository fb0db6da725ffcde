"""Which elements of a wrong output are off, for the author of the kernel: how many, the first, the worst, a pattern."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.mismatch import Element, Mismatch
from .blocks import BLOCK, in_blocks

#: Work-items of a vector, of a hardware thread, of a work-group: periods in which lanes of one may be off.
PERIODS = tuple(2**power for power in range(2, 11))
#: Residues of a period that are listed.
MOST_LANES = 4


@dataclass(frozen=True)
class Sampled:
    """Where the elements of a sample are in the output that it is taken from.

    Attributes
    ----------
    positions : array of int
        Index of each in the flat output, in the shape of the sample.
    shape : tuple of int
        Of the output.
    """

    positions: np.ndarray
    shape: tuple[int, ...]


def located(value: np.ndarray, expected: np.ndarray, limit: float, sampled: Sampled | None = None) -> Mismatch | None:
    """Return which elements differ from what is expected by more than a limit, or are not finite; None if none does.

    Parameters
    ----------
    value, expected : array, of one shape
    limit : float
        Absolute error of one element.
    sampled : Sampled, optional
        Where ``value`` is a sample: elements are named by their index in the output, and only a pattern of all is told.
    """
    flat, reference = value.reshape(-1), expected.reshape(-1)
    off = np.zeros(flat.size, bool)

    def part(block: slice) -> tuple[float, int]:
        with np.errstate(all="ignore"):
            error = np.abs(flat[block].astype(np.float64) - reference[block].astype(np.float64))
        off[block] = ~(error <= limit)
        error = np.where(np.isnan(error), np.inf, error)
        at = int(error.argmax())
        return float(error[at]), block.start + at

    found = in_blocks(part, flat.size, BLOCK)
    if not off.any():
        return None
    worst = max(found, key=lambda pair: (pair[0], -pair[1]))[1]

    def element(at: int) -> Element:
        return Element(index=_index(at, value.shape, sampled), got=_text(flat[at]), expected=_text(reference[at]))

    return _mismatch(off.reshape(value.shape), element(int(off.argmax())), element(worst), sampled is not None)


def not_finite(value: np.ndarray) -> Mismatch | None:
    """Return which elements of an array of floats are infinite or NaN; None if none is."""
    flat = value.reshape(-1)
    if all(in_blocks(lambda part: bool(np.isfinite(flat[part]).all()), flat.size, BLOCK)):
        return None
    off = ~np.isfinite(flat)
    at = int(off.argmax())
    first = Element(index=_index(at, value.shape, None), got=_text(flat[at]))
    return _mismatch(off.reshape(value.shape), first, first, False)


def _mismatch(off: np.ndarray, first: Element, worst: Element, part: bool) -> Mismatch:
    count = int(off.sum())
    every = "every element" if count == off.size else ""
    return Mismatch(
        off=count, compared=off.size, first=first, worst=worst, pattern=every or ("" if part else pattern(off))
    )


def _index(at: int, shape: tuple[int, ...], sampled: Sampled | None) -> list[int]:
    if sampled:
        at, shape = int(sampled.positions.reshape(-1)[at]), sampled.shape
    return [int(part) for part in np.unravel_index(at, shape)]


def _text(number: np.generic) -> str:
    """Return a value with the digits that tell it from its neighbours, in float32 at least."""
    return f"{float(number):.9g}" if isinstance(number, np.floating) else str(number)


def pattern(off: np.ndarray) -> str:
    """Return what elements that are off have in common, in words; empty where it is nothing that is looked for.

    Parameters
    ----------
    off : array of bool
        In the shape of the output; rows are what its last axis counts through.
    """
    if off.all():
        return "every element"
    flat = off.reshape(-1)
    if told := _series(np.flatnonzero(flat), flat.size, "element"):
        return told
    if off.ndim > 1:
        rows = off.reshape(-1, off.shape[-1])
        some = np.asarray(rows.any(axis=1))
        if (rows == some[:, None]).all():
            which = _series(np.flatnonzero(some), some.size, "row")
            return f"whole rows: {which or f'{int(some.sum())} of {some.size}'}"
        columns = np.asarray(rows.any(axis=0))
        if (rows == columns).all():
            which = _series(np.flatnonzero(columns), columns.size, "column")
            return f"in every row: {which or f'{int(columns.sum())} of {columns.size} columns'}"
    return _lanes(flat)


def _series(at: np.ndarray, count: int, noun: str) -> str:
    """Return one piece or an arithmetic sequence of some of ``count`` numbers in words; empty where it is neither."""
    if at.size == 1:
        return f"the last {noun}" if at[0] == count - 1 and count > 1 else f"one {noun}"
    steps = np.diff(at)
    first, last, step = int(at[0]), int(at[-1]), int(steps[0])
    if (steps != step).any():
        return ""
    if step == 1:
        if last == count - 1:
            return f"the last {at.size} {noun}s"
        return f"the first {at.size} {noun}s" if first == 0 else f"{noun}s {first} to {last}"
    if at.size < 3:
        return ""
    whole = first < step and last + step >= count
    return f"every {_ordinal(step)} {noun} from {first}" + ("" if whole else f" to {last}")


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _lanes(flat: np.ndarray) -> str:
    """Return which residues of a power of two the elements are; empty where more than half of them, or not all, are."""
    for period in PERIODS:
        if flat.size < 3 * period:
            break
        lanes = flat[:period]
        if 0 < 2 * lanes.sum() <= period and (flat == np.resize(lanes, flat.size)).all():
            named = np.flatnonzero(lanes)[:MOST_LANES].tolist()
            more = ", ..." if lanes.sum() > MOST_LANES else ""
            return f"every index i with i % {period} in {{{', '.join(map(str, named))}{more}}}"
    return ""
