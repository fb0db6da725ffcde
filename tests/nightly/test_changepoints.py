"""Change points that Otava finds."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from perfport.model.errors import UnavailableError
from perfport.nightly import changepoints


def test_otava_finds_a_step_and_needs_enough_nights() -> None:
    pytest.importorskip("otava", reason="the extra otava is not installed")
    rng = np.random.default_rng(1)
    logs = list(0.003 * rng.standard_normal(30) + np.where(np.arange(30) < 20, 0.0, 0.05))
    assert changepoints.change_points(logs, 0.02) == [20]
    assert changepoints.change_points(logs, 0.2) == []
    assert changepoints.change_points(logs[17:26], 0.02) == [], "nine values are too few"


def test_without_otava_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "otava.analysis", None)
    with pytest.raises(UnavailableError, match=r"perfport\[otava\]"):
        changepoints.change_points([0.0] * 20, 0.02)
