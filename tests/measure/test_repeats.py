"""Samples of several fresh workers: numbered, joined, and an interval that holds what differs between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import report_data as data
from scipy.stats import t

from perfport.measure.intervals import block_medians, student_interval, summarise
from perfport.measure.repeats import joined, worker_medians, workers_of
from perfport.model.record import Timing


def timing(level: float, seed: int, first: int = 0) -> Timing:
    """Return what a worker measures, in rounds from the first."""
    found = data.record("a", level, clock="span", key=f"{seed}").timing
    assert found
    values = data.samples(level, seed, 9, 0.001)
    return found.model_copy(
        update={"span": values, "rounds": list(range(first, first + 9)), "summary": {"span": summarise(values)}}
    )


def test_workers_are_joined_in_turn() -> None:
    one = joined(timing(0.10, 1), timing(0.11, 2, 9))
    two = joined(one, timing(0.12, 3, 200))
    assert two.workers == [0] * 9 + [1] * 9 + [2] * 9
    assert two.rounds == [*range(18), *range(200, 209)], "as they were numbered"
    assert two.span[:9] == timing(0.10, 1).span and len(two.span) == 27
    record = data.record("a").model_copy(update={"timing": two})
    assert workers_of(record) == 3 and workers_of(data.record("a")) == 1 and workers_of(None) == 0
    assert worker_medians(record) == pytest.approx([0.10, 0.11, 0.12], rel=0.002)


def test_the_interval_holds_the_spread_between_workers() -> None:
    samples = [*timing(0.10, 1).span, *timing(0.11, 2).span, *timing(0.12, 3).span]
    workers = [0] * 9 + [1] * 9 + [2] * 9
    logs = np.log(block_medians(samples, workers))
    reach = t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    found = summarise(samples, workers)
    assert found.ci_low == pytest.approx(math.exp(logs.mean() - reach))
    assert found.ci_high == pytest.approx(math.exp(logs.mean() + reach))
    assert found.ci_low < min(samples) and found.ci_high > max(samples), "within each worker they lie closer"
    assert found.median == summarise(samples).median


def test_workers_that_agree_leave_the_interval_of_the_samples() -> None:
    values = data.samples(0.1, 4, 30, 0.01)
    alike = [*values, *values, *values]
    blocks = [number for number in range(3) for _ in values]
    apart, together = summarise(alike, blocks), summarise(alike)
    assert apart.effective == together.effective == 90
    assert (apart.ci_low, apart.ci_high) == (together.ci_low, together.ci_high)


def test_student_interval_against_scipy() -> None:
    values = [1.0, 2.0, 4.0, 4.5]
    low, high = t.interval(0.95, 3, np.mean(values), np.std(values, ddof=1) / 2)
    found = student_interval(values)
    assert (found.low, found.value, found.high) == pytest.approx((low, 2.875, high))


@pytest.mark.parametrize("met", [(True, True), (True, False), (False, True), (False, False)])
def test_the_target_is_met_where_every_worker_met_it(met: tuple[bool, bool]) -> None:
    earlier, later = (timing(0.1, seed).model_copy(update={"target_met": each}) for seed, each in enumerate(met, 1))
    assert joined(earlier, later).target_met is all(met)


def test_the_first_worker_of_all_is_number_zero() -> None:
    nothing = timing(0.1, 1).model_copy(update={"span": [], "rounds": [], "summary": {}})
    assert joined(nothing, timing(0.1, 2)).workers == [0] * 9


def test_busy_time_of_other_samples_is_not_split_by_worker() -> None:
    one, two = (
        timing(level, seed).model_copy(update={"busy": [level / 2] * 4}) for seed, level in ((1, 0.1), (2, 0.2))
    )
    made = joined(one, two)
    assert made.busy == [0.05] * 4 + [0.1] * 4 and made.summary["busy"] == summarise(made.busy)
    assert made.summary["span"] == summarise(made.span, [0] * 9 + [1] * 9) != summarise(made.span)
