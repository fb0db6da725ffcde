"""Roofs and points: every variant stands at its useful operations per byte, below the roofs that bound it."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_data as data

from perfport.report.parts.ladder import ladders_of
from perfport.report.parts.roofs import placed
from perfport.store.ratios import time_of


def test_points_stand_at_useful_operations_per_byte_of_each_level(tmp_path: Path) -> None:
    (ladder,) = ladders_of([data.store(tmp_path / "results", data.gpu_ladder())])
    slopes = dict.fromkeys(("dram", "l2_read", "l1_read", "local_read"), 1e12)
    points = {row.label: placed(row, ladder, data.WORK, slopes) for row in ladder.measured}
    row = points["local_memory"]
    assert row.rate == pytest.approx(6e8 / time_of(row.row.record))
    expected = {"dram": 6e8 / (4e8 + 8e5), "l2_read": 1.5, "l1_read": 1.5, "local_read": 0.75}
    assert row.intensities == pytest.approx(expected)
    assert points["no_model"].intensities == {} and "local_read" not in points["vectorized"].intensities
    without_l2 = placed(row.row, ladder, data.WORK, {"dram": 1e12})
    assert set(without_l2.intensities) == {"dram"}, "a level without a roof has no point"


@pytest.mark.parametrize(("cache", "device", "levels"), [
    ("cold", data.GPU, {"dram", "l2_read", "l1_read", "local_read"}),
    ("warm", data.GPU, {"l2_read", "l1_read", "local_read"}),
    ("cold", data.POCL, {"dram", "l2_read"}), ("warm", data.POCL, {"l2_read"}),
])  # fmt: skip
def test_points_are_only_where_the_level_bounds(tmp_path: Path, cache: str, device: str, levels: set[str]) -> None:
    traffic = data.levels(l2_bytes=2, global_read=3, local_read=1)
    record = data.record("a", 0.03, rung=1, cache=cache, device=device, traffic=traffic)
    (ladder,) = ladders_of([data.store(tmp_path / "results", [record])])
    slopes = dict.fromkeys(("dram", "l3_read", "l2_read", "l1_read", "local_read"), 1e12)
    assert set(placed(ladder.rows[0], ladder, data.WORK, slopes).intensities) == levels


def test_no_point_lies_above_its_roof(tmp_path: Path) -> None:
    records = [r for r in data.gpu_ladder() if r.variant_bound and not r.variant_bound.stale]
    (ladder,) = ladders_of([data.store(tmp_path / "results", records)])
    slopes = {"dram": 4.5e12, "l2_read": 7.5e12, "l1_read": 29e12, "local_read": 31e12}
    for row in ladder.measured:
        point = placed(row, ladder, data.WORK, slopes)
        assert all(point.rate <= slopes[level] * x for level, x in point.intensities.items()), row.label
