"""Roofs of several devices in one plot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from predict_data import two_devices

from perfport.judge.predict import Predictor, of_profile, targets
from perfport.report.parts.device_roofs import roofs_plot


def test_each_device_has_a_roof_and_what_it_reaches(tmp_path: Path) -> None:
    pair = Predictor(two_devices(tmp_path))
    devices = [*targets(pair)[:2], of_profile("gtx1080"), replace(of_profile("k40m"), ceilings={})]
    columns = [[pair.predict(key, device) for key in pair.sources] for device in devices]
    plot = roofs_plot(columns, "rows", "Roofs")
    assert plot and plot.name == "rows-roofs.svg"
    content = plot.content.decode()
    assert "cuda:nvidia (Chip A): " in content and content.count("(measured)") == 2
    assert "NVIDIA GeForce GTX 1080: " in content and "K40m" not in content  # no roof is known of it
    assert plot.content == roofs_plot(columns, "rows", "Roofs").content  # type: ignore[union-attr]


def test_a_problem_without_flops_has_none(tmp_path: Path) -> None:
    pair = Predictor(two_devices(tmp_path))
    columns = [[pair.predict(key, device) for key in pair.sources] for device in targets(pair)[:1]]
    for prediction in columns[0]:
        assert prediction.case.record.work
        prediction.case.record.work.flops = 0.0
    assert roofs_plot(columns, "rows", "Roofs") is None
