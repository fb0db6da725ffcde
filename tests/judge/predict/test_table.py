"""Predictions as rows: a number only where there is one, and its kind beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_data import two_devices

from perfport.judge.predict import COLUMNS, Outcome, Predictor, find_target, of_profile, targets
from perfport.judge.predict import table as predictions
from perfport.judge.predict.table import figure_of, row, rows
from perfport.model.published import Figure


@pytest.fixture
def pair(tmp_path: Path) -> Predictor:
    """Two chips with the same cases."""
    return Predictor(two_devices(tmp_path))


def test_a_number_has_its_kind_and_without_ground_there_is_none(pair: Predictor) -> None:
    found = list(rows(pair))
    assert len(found) == 6 * len(targets(pair)) and all(set(each) <= set(COLUMNS) for each in found)
    for each in found:
        shown = each["outcome"] in (Outcome.MEASURED, Outcome.MODELLED)
        assert shown == ("seconds" in each) == ("provenance" in each) == ("value" in each)
        assert shown == (each["reason"] is None)
    assert {each["outcome"] for each in found} >= {"measured", "modelled"}
    kinds = {(each["provenance"], each["confidence"]) for each in found if "provenance" in each}
    assert kinds == {("measured", 0.95), ("modelled", 0.9)}


def test_what_is_too_wide_has_no_number(pair: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfport.judge.predict.predictor.WIDEST", 1.0001)
    refused = [row(each) for each in pair.predictions(of_profile("gtx1080"))]
    assert {each["outcome"] for each in refused} == {"no ground"}
    assert all("seconds" not in each and "spans a factor of" in each["reason"] for each in refused)


def test_published_figures_stand_in_a_column_of_their_own(pair: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = Figure(problem="rows", variant="v1", device="hd5870", value=7.5, unit="GFLOP/s", source="somebody")
    monkeypatch.setattr(predictions, "figures", lambda workload: (stated,))
    far = [row(each) for each in pair.predictions(of_profile("hd5870"))]
    assert {each["variant"]: each["published"] for each in far} == {"v0": None, "v1": 7.5, "v2": None}
    assert all(figure_of(each) is None for each in pair.predictions(find_target(pair, "Chip A")))
    other = stated.model_copy(update={"unit": "s"})
    monkeypatch.setattr(predictions, "figures", lambda workload: (other,))
    assert all(figure_of(each) is None for each in pair.predictions(of_profile("hd5870")))
