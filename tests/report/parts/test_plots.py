"""Plots: well formed, undated, linked."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import report_data as data
from report_page import report


def test_plots_are_well_formed_and_undated(demonstration: tuple[Path, str, list[Path]]) -> None:
    for file in demonstration[2][1:]:
        root = ElementTree.fromstring(file.read_bytes())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert b"dc:date" not in file.read_bytes()


def test_a_variants_picture_is_shown(tmp_path: Path) -> None:
    picture = {"jpeg": base64.b64encode(b"\xff\xd8 pixels").decode(), "caption": "What was found: 3"}
    markdown = report(tmp_path, [data.record("fast", extra={"picture": picture}), data.record("slow", 0.2)])
    assert picture["jpeg"] not in markdown and "| picture" not in markdown
    (file,) = (tmp_path / "report").glob("*-fast.jpg")
    assert file.read_bytes() == b"\xff\xd8 pixels" and f"report/{file.name})" in markdown
    assert "What was found: 3 (measured by fast" in markdown


def test_bars_are_by_speed_mark_peers_and_are_logarithmic_where_shares_are_small(tmp_path: Path) -> None:
    near = [data.record("slow", 0.030, rung=1), data.record("library", 0.020, role="peer"), data.record("fast", 0.012)]
    report(tmp_path / "near", near)
    far = [*near, data.record("slower", 9.0, rung=2)]
    report(tmp_path / "far", far)
    texts = {}
    for name in ("near", "far"):
        (file,) = (tmp_path / name / "report").glob("*share.svg")
        root = ElementTree.parse(file).getroot()
        assert float(root.attrib["width"].removesuffix("pt")) * 4 / 3 <= 900, "pixels"
        texts[name] = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    names = [text for text in texts["far"] if text.split(" ")[0] in ("fast", "library", "slow", "slower")]
    assert names == ["fast", "library (peer)", "slow", "slower"]
    assert "0.1" in texts["far"] and "0.1" not in texts["near"] and "20" in texts["near"] and "20" not in texts["far"]
