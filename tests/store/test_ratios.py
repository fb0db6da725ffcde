"""Ratios: which times are paired, on which clock."""

from __future__ import annotations

import numpy as np
import pytest
import report_data as data
from scipy.stats import t

from perfport.measure.intervals import Verdict
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


def test_too_few_samples_for_95_percent_are_never_called_different() -> None:
    three, four = ([data.record(name, time, n=n) for name, time in (("a", 0.02), ("b", 0.01))] for n in (3, 4))
    few, enough = compare(*three), compare(*four)
    assert few and enough and few.ratio.low > 1.9 and few.ratio.confidence == pytest.approx(0.9)
    assert few.verdict is Verdict.AMBIGUOUS and enough.verdict is Verdict.FASTER


@pytest.mark.parametrize("run", ["demo", "another"])
def test_a_ratio_of_several_workers_holds_their_spread(run: str) -> None:
    base, other = data.record("a", 0.02, n=27, noise=0.001), data.record("b", 0.01, n=27, noise=0.001, run=run)
    assert base.timing and other.timing
    base.timing.span = [span * (1, 1.05, 1.1)[i // 9] for i, span in enumerate(base.timing.span)]
    base.timing.workers = other.timing.workers = [i // 9 for i in range(27)]
    found = compare(base, other)
    logs = np.log([1, 1.05, 1.1])
    assert found and np.log(found.ratio.high / found.ratio.low) == pytest.approx(
        2 * t.ppf(0.975, 2) * logs.std(ddof=1) / 3**0.5, rel=0.02
    )
