"""Rooflines of exhibits: roofs of datasheets and of measured ceilings, points at intensity and rate."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data
from claim_data import record
from report_page import words

from perfport.judge.exhibits import Exhibit
from perfport.model.work import Work
from perfport.report.parts.exhibit_plots import Drawing
from perfport.report.parts.exhibit_points import Points, points
from perfport.report.parts.exhibit_roofline import reached, roof, roofline
from perfport.store.collection import Collection

DRAWING = Drawing("name", "A title", "sparsity", "GFLOP/s", [], False)


def held(folder: Path, work: Work = data.WORK) -> Points:
    """Return the points of one variant at two sparsities, the higher with half of the operations."""
    records = [
        record("a", 0.05, parameters={"sparsity": x}, work=work.model_copy(update={"flops": work.flops * (1 - x)}))
        for x in (0.0, 0.5)
    ]
    collection = Collection([data.store(folder / "run", records)])
    exhibit = Exhibit.model_validate(
        {"number": "Figure 6", "title": "R", "kind": "roofline", "problem": "rows", "x": "sparsity", "series": ["a"]}
    )
    return points(exhibit, "demo", collection, collection.places[0], lambda _: None)


def test_roofs_of_profiles_and_of_the_device_are_named(tmp_path: Path) -> None:
    plot = roofline(held(tmp_path), DRAWING, ["k40m", "titan_xp"])
    assert plot
    shown = set(words(plot))
    assert {"NVIDIA Tesla K40m (datasheet)", "NVIDIA TITAN Xp (datasheet)", "this device (measured)", "a"} <= shown
    assert "points along sparsity" in plot.caption


def test_a_roof_is_the_bandwidth_of_the_mix_and_the_peak() -> None:
    only_reads = Work(flops=1, read_bytes=1e9)
    assert roof(only_reads, data.exact(data.CEILINGS)) == (pytest.approx(40e9), pytest.approx(400e9))
    assert roof(only_reads, data.exact({"dram_read": 40e9})) is None


def test_a_point_lies_at_its_intensity_and_its_rate(tmp_path: Path) -> None:
    along = [reached(held(tmp_path).panels[0].curves["a"][x]) for x in (0.0, 0.5)]
    assert along[0] and along[1]
    assert along[0][0] == pytest.approx(data.WORK.intensity) and along[1][0] == pytest.approx(data.WORK.intensity / 2)
    assert along[0][1] == pytest.approx(6e8 / 0.05, rel=0.02)


def test_without_useful_flops_there_is_no_roofline(tmp_path: Path) -> None:
    assert roofline(held(tmp_path, data.ONLY_BYTES), DRAWING, ["k40m"]) is None
