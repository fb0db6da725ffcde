"""Widths of intervals: conformal quantiles that hold what they say, on problems that were left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predict_data import SLOW, device, source, streaming

from perfport.judge.predict.devices import Relation
from perfport.judge.predict.model import Estimate, carry_over
from perfport.judge.predict.widths import (
    ARITHMETIC_PRIOR,
    CONFIDENCE,
    ENOUGH,
    PRIOR,
    Residual,
    Widths,
    coverage,
    kind_of,
    quantile,
)


def estimate(**change: object) -> Estimate:
    """Return an estimate of 1 s on a sibling; keywords replace its fields."""
    found = carry_over(source(1e-3, streaming(4e9), device()), device("sibling", ceilings=SLOW))
    assert found
    return replace(found, **{"seconds": 1.0, "binding": "dram", **change})  # type: ignore[arg-type]


def residuals(offs: Sequence[float], problem: str = "w/p", half: float = 0.1) -> list[Residual]:
    """Return residuals that are off by such logarithms."""
    return [Residual(estimate(), half, math.exp(off), "target", problem) for off in offs]


def test_the_quantile_is_that_of_a_further_value() -> None:
    assert quantile(range(1, 20)) == 18  # the place ceil(20 x 0.9)
    assert quantile([3.0, 1.0]) == 3.0
    with pytest.raises(IndexError):
        quantile([])


@given(st.integers(0, 2**31 - 1))
def test_quantiles_hold_nine_tenths_of_what_comes(seed: int) -> None:
    draw = np.random.default_rng(seed)
    held, tries = 0, 400
    for _ in range(tries):
        values = np.abs(draw.standard_cauchy(41))  # heavy tails do not matter
        held += bool(values[-1] <= quantile(list(values[:-1])))
    assert 0.82 < held / tries < 0.97


def test_few_residuals_set_no_width() -> None:
    offs = [0.2] * (ENOUGH - 1)
    assert Widths.of(residuals(offs)).scale == {}
    assert Widths.of(residuals([*offs, 0.2])).scale == {kind_of(estimate()): pytest.approx(2.0)}


def test_a_width_is_scaled_by_the_parts_of_the_estimate() -> None:
    widths = Widths.of(residuals([0.2] * ENOUGH))
    assert widths.half(estimate(), 0.1) == pytest.approx(0.2) and widths.half(estimate(), 0.3) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("relation", "binding", "half"),
    [
        (Relation.SIBLING, "dram", PRIOR[Relation.SIBLING]),
        (Relation.GENERATION, "dram", PRIOR[Relation.GENERATION]),
        (Relation.GENERATION, "fp32_fma", ARITHMETIC_PRIOR),
        (Relation.VENDOR, "fp32_fma", PRIOR[Relation.VENDOR]),
        (Relation.KIND, "dram", None),
    ],
)
def test_without_live_pairs_the_public_table_gives_the_least_width(
    relation: Relation, binding: str, half: float | None
) -> None:
    assert Widths().half(estimate(relation=relation, binding=binding), 0.01) == half
    if half is not None:
        assert Widths().half(estimate(relation=relation, binding=binding), 2.0) == 2.0


def test_what_the_host_drives_has_a_width_from_live_pairs_alone() -> None:
    driven = source(1e-3, streaming(4e9), device(), clock="wall")
    assert driven.by_host and Widths().half(estimate(source=driven), 0.1) is None
    assert kind_of(estimate(source=driven)) != kind_of(estimate())


def test_widths_are_judged_on_problems_that_did_not_make_them() -> None:
    # Two problems; the residuals of the second are ten times as large. Were its own to count, they would be held.
    found = coverage(residuals([0.01] * 40, "w/easy") + residuals([0.5] * 40, "w/hard"))
    (each,) = found
    assert (each.residuals, each.cases, each.held) == (80, 80, 40)
    alike = coverage(residuals([0.1] * 40, "w/a") + residuals([0.1] * 40, "w/b"))[0]
    assert alike.within_quarter == 1.0
    assert alike.median_error == pytest.approx(1 - math.exp(-0.1))


def test_coverage_of_like_problems_is_what_is_claimed() -> None:
    draw = np.random.default_rng(3)
    mixed = [each for p in range(10) for each in residuals(list(draw.normal(0, 0.2, 60)), f"w/{p}")]
    share = coverage(mixed)[0].share
    assert share is not None and abs(share - CONFIDENCE) < 0.05


def test_without_others_of_its_kind_a_problem_has_the_public_width() -> None:
    (each,) = coverage(residuals([0.05] * 30))
    assert each.cases == 30 and each.held == 30  # 0.13 of Hopper boards
    (wide,) = coverage(residuals([0.2] * 30))
    assert wide.held == 0
