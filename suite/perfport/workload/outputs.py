"""What variants have to leave, and its comparison with the float64 reference."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.errors import shown
from ..model.mismatch import Mismatch
from ..model.record import OutputError
from .blocks import BLOCK, in_blocks
from .mismatch import Sampled, located, not_finite

#: How many tolerances of their norm the sum of some outputs with random signs may be off: such a sum of rounding errors
#: is about their norm, and its largest among 10^9 some 6 times that.
SIGNED_LIMIT = 16.0


@dataclass(frozen=True)
class Output:
    """An output as its problem declares it.

    Attributes
    ----------
    dtype : numpy dtype, or a tuple of them
        What it may be held in; of several, kernels leave the first and libraries another.
    shape : tuple of int or None
        None where the data decide the length.
    partial : bool
        Only a part is written, and `Problem.check` knows which; every other output is written whole.
    """

    dtype: Any
    shape: tuple[int | None, ...]
    partial: bool = False

    @property
    def dtypes(self) -> tuple[np.dtype, ...]:
        """Every dtype that it may have."""
        return tuple(map(np.dtype, self.dtype if isinstance(self.dtype, tuple) else (self.dtype,)))

    def flaw(self, value: np.ndarray) -> str | None:
        """Return what is wrong with a value's form: dtype, shape; None if nothing is."""
        if value.dtype not in self.dtypes:
            return f"dtype {value.dtype}, expected {' or '.join(map(str, self.dtypes))}"
        if len(value.shape) != len(self.shape) or any(
            length not in (None, given) for length, given in zip(self.shape, value.shape, strict=True)
        ):
            return f"shape {value.shape}, expected ({', '.join('any' if n is None else str(n) for n in self.shape)})"
        return None

    def holes(self, value: np.ndarray) -> Mismatch | None:
        """Return which elements are not finite, of a value of this form that is written whole; None if all are."""
        return not_finite(value) if not self.partial and value.dtype.kind == "f" else None


def flaws(declared: Mapping[str, Output], outputs: Mapping[str, np.ndarray]) -> dict[str, OutputError]:
    """Return an entry for each output that is missing, not declared, of another form than declared, or not finite."""
    reasons: dict[str, str | None] = dict.fromkeys(declared.keys() - outputs.keys(), "no such output was left")
    holes: dict[str, Mismatch] = {}
    for name, value in outputs.items():
        expected = f"expected {', '.join(declared)}"
        reasons[name] = declared[name].flaw(value) if name in declared else f"not an output of the problem; {expected}"
        if not reasons[name] and (found := declared[name].holes(value)):
            holes[name] = found
            reasons[name] = f"{found.off} of {value.size} elements are not finite (unwritten outputs are NaN)"
    sizes = {name: value.size for name, value in outputs.items()}
    return {
        name: OutputError(
            max_abs=_json(np.inf), relative_l2=_json(np.inf), checked=0, total=sizes.get(name, 0), tolerance={},
            passed=False, detail=reason, mismatch=holes.get(name),
        )
        for name, reason in sorted(reasons.items()) if reason
    }  # fmt: skip


def compare(
    value: np.ndarray,
    expected: np.ndarray,
    total: int,
    *,
    max_abs: float | None = None,
    relative_l2: float | None = None,
    sampled: Sampled | None = None,
) -> OutputError:
    """Compare floating-point outputs.

    Parameters
    ----------
    value : array
        What the variant computed.
    expected : array of float64, same shape
    total : int
        Elements of the whole output, where ``value`` is a sample of it.
    max_abs, relative_l2 : float, optional
        Tolerances; the relative L2 error is the norm of the difference over the norm of the reference.
    sampled : Sampled, optional
        Where the elements of ``value`` are in the output, where it is a sample.

    Returns
    -------
    OutputError
        Not passed if a tolerance is exceeded or any element is not finite (an unwritten, poisoned one is NaN).
    """
    if value.shape != expected.shape:
        tolerance = {"max_abs": max_abs or 0.0}
        detail = f"shape {value.shape}, expected {expected.shape}"
        return OutputError(
            max_abs=np.inf, relative_l2=np.inf, checked=0, total=total, tolerance=tolerance, passed=False, detail=detail
        )
    bad, worst, error, norm = _differences(value.reshape(-1), expected.reshape(-1))
    if bad:
        worst = relative = np.inf
    else:
        relative = error / (norm or 1.0)
    tolerance = {
        name: limit for name, limit in (("max_abs", max_abs), ("relative_l2", relative_l2)) if limit is not None
    }
    passed = not bad and all(
        {"max_abs": worst, "relative_l2": relative}[name] <= limit for name, limit in tolerance.items()
    )
    unwritten = f"{bad} elements are not finite (unwritten outputs are NaN)" if bad else None
    # Errors of this size in every element would just pass a tolerance of the norm: where it is missed, some are larger.
    even = [] if relative_l2 is None or not value.size else [relative_l2 * (norm or 1.0) / math.sqrt(value.size)]
    limit = min([*even, *([] if max_abs is None else [max_abs])], default=0.0)
    return OutputError(
        max_abs=_json(worst), relative_l2=_json(relative), checked=value.size, total=total,
        tolerance=tolerance, passed=passed, detail=unwritten,
        mismatch=None if passed else located(value, expected, limit, sampled),
    )  # fmt: skip


def _differences(value: np.ndarray, expected: np.ndarray) -> tuple[int, float, float, float]:
    """Return how many differences are not finite, the largest, the norm of all, and the norm of what is expected."""

    def part(block: slice) -> tuple[int, float, float, float]:
        difference = value[block] - expected[block].astype(np.float64, copy=False)
        bad = difference.size - int(np.isfinite(difference).sum())
        worst = max(difference.max(initial=0.0), -difference.min(initial=0.0))
        return bad, float(worst), float(np.linalg.norm(difference)), float(np.linalg.norm(expected[block]))

    bad, worst, errors, norms = zip(*in_blocks(part, value.size, BLOCK), strict=True) if value.size else ([],) * 4
    return sum(bad), max(worst, default=0.0), math.hypot(*errors), math.hypot(*norms)


def signs(count: int, seed: int) -> np.ndarray:
    """Return random signs, float64, +1 or -1, for `compare_signed`."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], count)


def compare_signed(
    sums: np.ndarray, expected: np.ndarray, norms: np.ndarray | float, total: int, tolerance: float
) -> OutputError:
    """Compare sums of outputs with random signs, so that each output of a large array enters, and none can hide.

    R. Freivalds, "Probabilistic Machines Can Use Less Running Time", IFIP Congress 1977: where outputs are linear in
    weights, their sum costs a part of what they cost.

    Parameters
    ----------
    sums, expected : array of float64
    norms : array of float64, or float
        The L2 norm of the outputs in each sum, or of those in a typical one: what the tolerance is relative to.
    total : int
        Elements of the whole output.
    tolerance : float
        The relative L2 error that single outputs may have.
    """
    return compare(sums / norms, expected / norms, total, max_abs=SIGNED_LIMIT * tolerance)


def compare_exact(value: np.ndarray, expected: np.ndarray) -> OutputError:
    """Compare outputs that must be equal: indices, labels, extreme values."""
    same = bool(np.array_equal(value, expected))
    detail, worst, mismatch = None, 0.0, None
    if value.shape != expected.shape:
        detail, worst = _apart(value, expected), np.inf
    elif not same:
        detail = f"got {value.ravel()[:4].tolist()}, expected {expected.ravel()[:4].tolist()}"
        with np.errstate(all="ignore"):
            difference = np.abs(value.astype(np.float64) - expected)
        worst = float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0))
        mismatch = located(value, expected, 0.0)
    relative = 0.0 if same else 1.0
    return OutputError(
        max_abs=_json(worst), relative_l2=relative, checked=value.size, total=value.size,
        tolerance={"exact": 0.0}, passed=same, detail=detail, mismatch=mismatch,
    )  # fmt: skip


def _apart(value: np.ndarray, expected: np.ndarray) -> str:
    """Say how outputs of different shapes differ: the shapes, and the first row that is not the same."""
    detail = f"shape {value.shape}, expected {expected.shape}"
    if value.ndim != expected.ndim or value.shape[1:] != expected.shape[1:]:
        return detail
    both = min(len(value), len(expected))
    different = (value[:both] != expected[:both]).any(axis=tuple(range(1, value.ndim)))
    row = int(different.argmax()) if different.any() else both
    got, wanted = (shown(rows[row].tolist()) if row < len(rows) else "none" for rows in (value, expected))
    return f"{detail}; row {row}: got {got}, expected {wanted}"


def digest_of(outputs: Mapping[str, np.ndarray]) -> bytes:
    """Return a key by which equal outputs are known: names, forms and bytes."""
    digest = hashlib.sha256()  # for which processors have instructions
    for name in sorted(outputs):
        value = np.ascontiguousarray(outputs[name])
        digest.update(f"{name} {value.dtype} {value.shape} ".encode())
        digest.update(b"".join(_digests(value.reshape(-1).view(np.uint8))))
    return digest.digest()


def _digests(octets: np.ndarray) -> list[bytes]:
    return in_blocks(lambda part: hashlib.sha256(octets[part].data).digest(), octets.size, BLOCK)


def _json(number: float) -> float:
    """JSON has no infinity: the largest float stands for it."""
    return min(number, float(np.finfo(np.float64).max))
