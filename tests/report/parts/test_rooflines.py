"""Rooflines: the roofs that exist, and points where traffic puts them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path


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
