"""Predictions in the page: measured, published and modelled numbers are told apart, and what has none says why."""

from __future__ import annotations

import json
from pathlib import Path

from predict_data import two_devices

from perfport.judge.predict import Predictor
from perfport.report.parts.modelled import settings_by_device
from perfport.report.parts.predicted import told
from perfport.report.viewer.modelled import modelled


def test_each_number_says_what_it_is(tmp_path: Path) -> None:
    held = settings_by_device(Predictor(two_devices(tmp_path)))
    assert held
    for columns in held:
        made = modelled(columns)
        assert json.loads(json.dumps(made)) == made
        assert len(made["devices"]) == len(columns)
        for variant, cells in made["cells"].items():
            for column, (kind, value, low, high, why, marks) in zip(columns, cells, strict=True):
                said = told(column, variant)
                assert kind == said.kind and (value is None) == (said.value is None) and marks == said.marks.strip()
                if value is None:
                    assert why and kind not in ("measured", "published", "modelled")
                else:
                    assert low <= value <= high and (kind != "modelled" or why)
    kinds = {cells[0] for columns in held for row in modelled(columns)["cells"].values() for cells in row}
    assert {"measured", "modelled"} <= kinds


def test_a_profile_that_was_not_measured_has_no_measured_number(tmp_path: Path) -> None:
    (first, *_) = settings_by_device(Predictor(two_devices(tmp_path)))
    made = modelled(first)
    profiles = [at for at, column in enumerate(first) if not column[0].device.runtime]
    assert profiles and all(cells[at][0] != "measured" for cells in made["cells"].values() for at in profiles)
