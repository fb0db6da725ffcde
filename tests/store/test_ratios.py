"""Ratios: which times are paired, on which clock."""

from __future__ import annotations

import pytest
import report_data as data

from perfport.store.ratios import compare, time_of


def test_samples_without_rounds_are_not_paired() -> None:
    base, other = data.record("a", 0.02), data.record("b", 0.01, n=9)
    assert base.timing and other.timing
    other.timing.rounds = []
    found = compare(base, other)
    assert found and found.ratio.value == pytest.approx(time_of(base) / time_of(other))


def test_samples_of_two_runs_are_never_paired() -> None:
    """A common trend in both cancels only where they were taken side by side."""
    base, other = data.record("a", 0.02, noise=0.0), data.record("b", 0.02, noise=0.0)
    assert base.timing and other.timing
    trend = [0.02 + 0.001 * i for i in range(15)]
    for record in (base, other):
        assert record.timing
        record.timing.span = trend
    paired, apart = compare(base, other), compare(base, other.model_copy(update={"run": "another"}))
    assert paired and apart
    assert paired.ratio.high == 1.0 and apart.ratio.high > 1.3
    elsewhere = other.model_copy(deep=True)
    elsewhere.identity.parameters = {"points": 1}
    further = compare(base, elsewhere)
    assert further and further.ratio == apart.ratio
