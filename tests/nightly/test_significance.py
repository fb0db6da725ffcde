"""Moderated variances, and control of false discoveries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from perfport.nightly.significance import Prior, discoveries, usual


def test_the_usual_variance_is_recovered() -> None:
    rng = np.random.default_rng(1)
    freedom, prior, own = 2, 8.0, 4e-6
    true = own * prior / rng.chisquare(prior, 20000)  # each case's own variance scatters about the usual one
    found = usual(list(true * rng.chisquare(freedom, true.size) / freedom), [freedom] * true.size)
    assert found.variance == pytest.approx(own, rel=0.05)
    assert found.freedom == pytest.approx(prior, rel=0.15)


def test_the_moments_of_the_logarithms_are_solved_for() -> None:
    """Equations of section 6.2: mean and variance of e = log s^2 - digamma(d/2) + log(d/2), with trigamma inverted."""
    freedoms = np.array([1, 2, 3, 5] * 10)
    variances = 1e-2 * np.random.default_rng(4).lognormal(0, 2.5, freedoms.size)
    e = np.log(variances) - digamma(freedoms / 2) + np.log(freedoms / 2)
    excess = e.var(ddof=1) - polygamma(1, freedoms / 2).mean()
    found = usual(variances.tolist(), freedoms.tolist())
    assert polygamma(1, found.freedom / 2) == pytest.approx(excess, rel=1e-9)
    expected = np.exp(e.mean() + digamma(found.freedom / 2) - np.log(found.freedom / 2))
    assert found.variance == pytest.approx(expected)
    total = found.freedom + 3
    moderated = (found.freedom * found.variance + 3 * 5e-6) / total
    assert found.moderated(5e-6, 3) == (pytest.approx(moderated), pytest.approx(total))


def test_equal_variances_are_taken_for_equal() -> None:
    rng = np.random.default_rng(2)
    found = usual(list(1e-6 * rng.chisquare(4, 400) / 4), [4] * 400)
    assert found.freedom > 20
    moderated, freedom = found.moderated(1e-8, 4)
    assert moderated == pytest.approx(1e-6, rel=0.3) and freedom > 20


def test_few_cases_stand_for_themselves() -> None:
    assert usual([1e-6] * 4, [2] * 4).moderated(9e-6, 2) == (9e-6, 2)


def test_five_cases_tell_what_is_usual() -> None:
    assert usual([1e-6] * 5, [2] * 5).moderated(9e-6, 2)[0] < 2e-6


def test_a_clock_that_never_varies_has_the_spread_of_its_resolution() -> None:
    assert Prior(1e-6, 0.0).moderated(0.0, 4) == (1e-8, 4), "one part in ten thousand"


def test_discoveries_follow_the_step_up_rule() -> None:
    # Benjamini and Hochberg 1995, section 3.2: 15 p-values, 4 of which are rejected at 0.05.
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1,
    ]
    assert discoveries(p, 0.05) == [True] * 4 + [False] * 11
    shuffled = np.random.default_rng(3).permutation(15)
    assert [discoveries([p[i] for i in shuffled], 0.05)[list(shuffled).index(i)] for i in range(5)] == [True] * 4 + [
        False
    ]
    assert discoveries([], 0.05) == [] and discoveries([0.04, 0.04], 0.05) == [True, True]
