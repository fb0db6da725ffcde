"""Rooflines: the roofs that exist, and points where traffic puts them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import report_data as data

from perfport.report.parts.ladder import ladders_of
from perfport.report.parts.rooflines import _point
from perfport.store.ratios import time_of


def drawn(folder: Path, part: str) -> list[str]:
    """Return all text of the one roofline whose file name contains ``part``."""
    (file,) = folder.glob(f"*{part}*roofline.svg")
    return [element.text or "" for element in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]


def test_roofline_has_the_levels_and_units_that_exist(demonstration: tuple[Path, str, list[Path]]) -> None:
    folder = demonstration[0] / "my report"
    gpu = drawn(folder, "tiles")
    for roof in ("DRAM 4.50 TB/s", "L2 7.50 TB/s", "issued (L1) 29.0 TB/s", "local memory 31.0 TB/s",
                 "FP32 FMA 62.0 TFLOP/s", "TF32 matrix 420 TFLOP/s", "compulsory 1.50 FLOP/B"):  # fmt: skip
        assert roof in gpu, roof
    assert not any("L3" in text or "INT32" in text or "dp4a" in text for text in gpu)
    cpu = drawn(folder, "rows-quick-opencl-pocl-0-fp32")
    assert "L3 90.0 GB/s" in cpu and "L2 300 GB/s" in cpu and not any("local memory" in text for text in cpu)
    assert "useful GFLOP/s (measured)" in cpu and "useful TFLOP/s (measured)" in gpu
    integer = drawn(folder, "argmin-quick-opencl-nvidia")
    assert "INT32 mad 33.0 Top/s" in integer and "dp4a 130 Top/s" in integer and "useful Top/s (measured)" in integer
    assert not any("FP32" in text or "FLOP" in text for text in integer)
    assert "dp4a" not in drawn(folder, "argmin-quick-opencl-pocl"), "no variant there names it"


def test_points_stand_at_useful_operations_per_byte_of_each_level(tmp_path: Path) -> None:
    (ladder,) = ladders_of([data.store(tmp_path / "results", data.gpu_ladder())])
    slopes = dict.fromkeys(("dram", "l2_read", "l1_read", "local_read"), 1e12)
    points = {row.label: _point(row, ladder, data.WORK, slopes) for row in ladder.measured}
    row = points["local_memory"]
    assert row.rate == pytest.approx(6e8 / time_of(row.row.record))
    expected = {"dram": 6e8 / (4e8 + 8e5), "l2_read": 1.5, "l1_read": 1.5, "local_read": 0.75}
    assert row.intensities == pytest.approx(expected)
    assert points["no_model"].intensities == {} and "local_read" not in points["vectorized"].intensities
    without_l2 = _point(row.row, ladder, data.WORK, {"dram": 1e12})
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
    assert set(_point(ladder.rows[0], ladder, data.WORK, slopes).intensities) == levels


def test_no_point_lies_above_its_roof(tmp_path: Path) -> None:
    records = [r for r in data.gpu_ladder() if r.variant_bound and not r.variant_bound.stale]
    (ladder,) = ladders_of([data.store(tmp_path / "results", records)])
    slopes = {"dram": 4.5e12, "l2_read": 7.5e12, "l1_read": 29e12, "local_read": 31e12}
    for row in ladder.measured:
        point = _point(row, ladder, data.WORK, slopes)
        assert all(point.rate <= slopes[level] * x for level, x in point.intensities.items()), row.label
