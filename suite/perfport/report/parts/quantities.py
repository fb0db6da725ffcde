"""Numbers as a reader wants them: sensible digits, units, one scale per column."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median_low

from ...measure.roofline import impossible
from ...model.record import CONFIDENCE, Bound, Interval, Summary
from .markdown import NONE

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_PREFIXED = re.compile("[kMGT](?=[A-Z])|M(?=[b-df-hj-np-tv-xz])")
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits; whole digits are never dropped below a million."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    exponent = _exponent(value)
    if not -5 < exponent < 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(digits - 1 - exponent, 0)}f}"


def column(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Return numbers of one table column with equal decimals, so that they line up.

    The smallest gets ``digits`` significant digits; numbers more than five decades apart are formatted one by one.
    """
    sizes = [abs(v) for v in values if v and math.isfinite(v)]
    if not sizes or max(sizes) > 1e5 * min(sizes) or min(sizes) < 1e-4 or max(sizes) >= 1e7:
        return [significant(value, digits) for value in values]
    decimals = max(digits - 1 - _exponent(min(sizes)), 0)
    return [NONE if v is None or not math.isfinite(v) else f"{v:.{decimals}f}" for v in values]


def time_scale(values: Sequence[float | None]) -> tuple[float, str]:
    """Return the factor and unit in which a column of seconds reads best."""
    known = [v for v in values if v and math.isfinite(v)]
    typical = median_low(known) if known else 1.0
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if typical < limit:
            return factor, unit
    return 1.0, "s"


def seconds(value: float | None, digits: int = 4) -> str:
    """Return a time with the unit that suits it."""
    if value is None or not math.isfinite(value):
        return NONE
    factor, unit = time_scale([value])
    return f"{significant(value * factor, digits)} {unit}"


def scaled(value: float | None, unit: str, digits: int = 3) -> str:
    """Return a quantity with a decimal prefix: ``85.2 GB/s``."""
    if value is None or not math.isfinite(value):
        return NONE
    factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(value) >= f), (1.0, ""))
    return f"{significant(value / factor, digits)} {prefix}{unit}"


def rate(value: float | None, unit: str, digits: int = 3) -> str:
    """Return a metric in the prefix that suits it, whatever prefix its unit has: ``103 TFLOP/s`` of 103000 GFLOP/s.

    A letter is taken for a prefix where no English word could begin so: before a capital (GFLOP), and M before a
    consonant (Mpoints).
    """
    if unit == "s":
        return seconds(value, digits)
    if value is None or not unit.endswith("/s"):
        return f"{significant(value, digits)} {unit}".strip()
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[unit[0]] if _PREFIXED.match(unit) else 1.0
    stem = unit[1:] if factor > 1 else unit
    shown = scaled(value * factor, "", digits)  # "13.6 M", or "203 " below a thousand
    apart = (factor == 1.0 or stem[0].islower()) and not shown.endswith(" ")
    return f"{shown} {stem}" if apart else f"{shown}{stem}"


def ceiling(value: float | None, unit: str) -> str:
    """Return the value of a ceiling: a rate with a decimal prefix, or a time."""
    return seconds(value, 3) if unit == "s" else scaled(value, unit)


def size(nbytes: float | None) -> str:
    """Return a memory size with a binary prefix."""
    if nbytes is None:
        return NONE
    factor, unit = next(((f, u) for f, u in _BINARY if nbytes >= f), (1, "B"))
    amount = nbytes / factor
    return f"{amount:.0f} {unit}" if amount == int(amount) else f"{significant(amount)} {unit}"


def percent(share: float | None, unit: bool = True) -> str:
    """Return a share (1.0 is 100 %) with one decimal, more where it is small."""
    if share is None or not math.isfinite(share):
        return NONE
    value = 100 * share
    small = 0 < abs(value) < 0.995
    return (significant(value, 2) if small else f"{value:.1f}") + (" %" if unit else "")


def interval(found: Interval, digits: int = 3, confidence: float = CONFIDENCE) -> str:
    """Return ``value (low–high)``, all with the decimals that suit the value; the confidence where it is below 95 %."""
    parts = (found.value, found.low, found.high)
    if found.value > 0 and -3 < _exponent(found.value) < 6:
        decimals = max(digits - 1 - _exponent(found.value), 0)
        value, low, high = (f"{part:.{decimals}f}" for part in parts)
    else:
        value, low, high = (significant(part, digits) for part in parts)
    return f"{value} ({low}–{high}{_level(confidence)})"


def time_interval(found: Interval) -> str:
    """Return a time with its interval, in the unit that suits it."""
    factor, unit = time_scale([found.value])
    return f"{interval(Interval(value=found.value * factor, low=found.low * factor, high=found.high * factor))} {unit}"


def noise(summary: Summary, unit: str = "") -> str:
    """Return half of a median's interval in % of the median; the confidence where it is below 95 %."""
    return significant(100 * summary.half_width, 2) + unit + _level(summary.confidence)


def _level(confidence: float) -> str:
    return "" if confidence >= CONFIDENCE else f" at {percent(confidence)}"


def share(bound: Bound | None, stale_mark: str = " †") -> str:
    """Return the share of a bound with its interval; one that cannot be is an error and says so loudly."""
    if bound is None:
        return NONE
    estimate = bound.share
    shown = f"{percent(estimate.value)} ({percent(estimate.low, unit=False)}–{percent(estimate.high, unit=False)})"
    if impossible(bound):
        return f"**ERROR: {shown}, above the bound**"
    return shown + (stale_mark if bound.stale else "")
