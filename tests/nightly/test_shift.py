"""What the cases of a device have in common: the machine's shift, and how far they scatter from run to run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from perfport.nightly.shift import common_shift, joined_freedom, run_variance, without_shifts


def test_the_middle_of_five_cases_is_the_machine() -> None:
    assert common_shift([0.03, 0.02, 0.04, 0.9, -0.5]) == 0.03
    assert common_shift([0.03] * 4) == 0 and common_shift([0.03] * 4, otherwise=0.01) == 0.01


@pytest.mark.parametrize(("factor", "taken"), [(1.099, True), (1.101, False), (1 / 1.099, True), (1 / 1.101, False)])
def test_more_than_ten_percent_are_not_laid_to_the_machine(factor: float, taken: bool) -> None:
    assert common_shift([math.log(factor)] * 5, otherwise=0.5) == (pytest.approx(math.log(factor)) if taken else 0.5)


def test_a_night_that_was_slow_as_a_whole_is_levelled() -> None:
    rng = np.random.default_rng(1)
    own, machine = rng.standard_normal(40), [0.0, 0.05, -0.02, 0.0, 0.0]
    series = [{night: level + machine[night] for night in range(5)} for level in own]
    series[0] = {1: series[0][1] + 0.2, 3: series[0][3], 4: series[0][4]}
    levelled = without_shifts(series)
    assert levelled[0] == pytest.approx({1: own[0] + 0.2, 3: own[0], 4: own[0]}), "what one case does is its own"
    assert all(np.ptp(list(each.values())) < 1e-12 for each in levelled[1:])
    assert levelled[1] == pytest.approx(dict.fromkeys(range(5), own[1]))
    assert without_shifts([{0: 1.0, 1: 1.05}] * 4) == [{0: 1.0, 1: 1.05}] * 4 and without_shifts([{}]) == [{}]


@pytest.mark.parametrize("effect", [0.0, 0.003, 0.01])
def test_the_scatter_between_runs_is_recovered(effect: float) -> None:
    rng = np.random.default_rng(2)
    workers = 0.003 * rng.standard_t(4, 4000)
    found = run_variance(workers + effect * rng.standard_normal(4000), [0.003**2] * 4000, [4] * 4000)
    assert math.sqrt(found) == pytest.approx(effect, rel=0.1, abs=0.0007)


def test_cases_that_changed_widen_the_scatter_little() -> None:
    rng = np.random.default_rng(3)
    differences = 0.01 * rng.standard_normal(1000)
    differences[:100] += 0.3
    assert math.sqrt(run_variance(differences.tolist(), [1e-8] * 1000, [4] * 1000)) == pytest.approx(0.0112, rel=0.1)


def test_four_cases_tell_nothing_of_runs() -> None:
    apart = [0.7, 0.5, 0.7, 0.5, 0.6]  # half of them 0.1 from their middle
    assert run_variance(apart[:4], [1e-6] * 4, [4] * 4) == 0
    assert run_variance(apart, [1e-6] * 5, [4] * 5) == pytest.approx(0.01 / norm.ppf(0.75) ** 2, rel=1e-3)


def test_degrees_of_freedom_of_a_sum_of_variances() -> None:
    assert joined_freedom(1e-6, 4, 0.0, 50) == pytest.approx(4)
    assert joined_freedom(1e-9, 4, 1.0, 37) == pytest.approx(37)
    assert joined_freedom(1.0, 4, 2.0, 37) == pytest.approx(9 / (1 / 4 + 4 / 37))
