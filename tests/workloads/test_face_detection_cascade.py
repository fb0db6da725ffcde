"""face_detection: the reader of cascade files takes OpenCV's, and answers everything else with its own error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfport.model.errors import UnavailableError, UsageError
from perfport.workloads.face_detection import cascade
from perfport.workloads.face_detection.cascade import FRACTION
from perfport.workloads.face_detection.variants import layout

TREE = "<_><internalNodes>{nodes}</internalNodes><leafValues>{leaves}</leafValues></_>"
TEXT = """<?xml version="1.0"?>
<opencv_storage><cascade type_id="opencv-cascade-classifier"><stageType>BOOST</stageType><featureType>HAAR</featureType>
<height>10</height><width>12</width>
<stages>
<_><stageThreshold>-0.5</stageThreshold><weakClassifiers>
<_><internalNodes>0 -1 0 -0.25</internalNodes><leafValues>0.5 -0.75</leafValues></_>
<_><internalNodes>1 0 1 0.125 -1 -2 0 0.5</internalNodes><leafValues>1 2 3</leafValues></_></weakClassifiers></_>
<_><stageThreshold>1.25</stageThreshold><weakClassifiers>
<_><internalNodes>-1 0 1 0.</internalNodes><leafValues>-1 1</leafValues></_></weakClassifiers></_></stages>
<features>
<_><rects><_>2 1 6 4 -1.</_><_>2 1 3 4 2.</_></rects><tilted>0</tilted></_>
<_><rects><_>5 1 3 2 -1.</_><_>5 1 3 1 2.</_><_>5 1 1 1 3.</_></rects><tilted>1</tilted></_></features>
</cascade></opencv_storage>
"""


def parse(text: str) -> cascade.Cascade:
    return cascade.parse(text.encode(), "mine.xml")


def test_a_small_cascade_is_read() -> None:
    read = parse(TEXT)
    assert (read.width, read.height, read.stages, read.nodes, read.stumps) == (12, 10, 2, 4, False)
    assert read.stage_first.tolist() == [0, 2, 3] and read.tree_first.tolist() == [0, 1, 3, 4]
    assert read.tilted.tolist() == [False, True, False, True]
    assert read.children.tolist() == [[0, -1], [1, 0], [-1, -2], [-1, 0]]
    assert (read.leaves / 2**FRACTION).tolist() == [0.5, -0.75, 1, 2, 3, -1, 1]
    assert read.stage_threshold[0] / 2**FRACTION == float(np.float32(-0.5) - np.float32(1e-5))
    assert read.weights[1].tolist() == [-1, 2, 3] and read.rectangles[0, 1].tolist() == [2, 1, 3, 4]
    assert read.area == 80
    upright, tilted = read.offsets(100, 5000)[:2, 0].tolist()
    assert upright == [102, 108, 502, 508]  # (2, 1), 6 wide, 4 high
    assert tilted == [5105, 5303, 5408, 5606]  # top (5, 1), left (3, 3), right (8, 4), bottom (6, 6)
    table = layout.nodes(read)
    assert table[["left", "right", "first_leaf", "unused", "tilted"]][1].tolist() == (1, 0, 2, 0, 1)
    assert table["threshold"][0] == np.float32(-0.25)


def test_leaves_of_stumps_lie_in_the_order_of_the_decision() -> None:
    text = re.sub(r"<_><internalNodes>1 0 1.*?</_>", "", TEXT)
    read = parse(text)
    leaves = layout.nodes(read)["leaves"] / 2**FRACTION
    assert read.stumps and leaves.tolist() == [[0.5, -0.75], [1, -1]]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TEXT, "", "not an XML file"),
        (TEXT, "not XML at all", "not an XML file"),
        ("</cascade>", "", "not an XML file"),
        ('"1.0"?', '"1.0" encoding="none-such"?', "not an XML file"),
        (TEXT, "<a/>", "element <cascade> is missing"),
        ("?>", '?><!DOCTYPE a [<!ENTITY b "c">]>', "expected XML without a document type"),
        ("<features>", "<features>" + "<_>" * 100, "at most 64 elements inside each other"),
        (TEXT, '<a><b type_id="opencv-haar-classifier"/></a>', "format before OpenCV 2"),
        ("HAAR", "LBP", "only HAAR is supported, got 'LBP'"),
        ("HAAR", "HOG", "only HAAR is supported, got 'HOG'"),
        ("BOOST", "TREE", "only BOOST is supported, got 'TREE'"),
        ("<width>12</width>", "", "element <width> is missing"),
        ("<width>12</width>", "<width>12.5</width>", "cascade.width: expected integers"),
        ("<width>12</width>", "<width>-3</width>", "got -3 x 10"),
        ("<width>12</width>", "<width>9999999</width>", "at most 32768 pixels"),
        ("<width>12</width>", "<width>1e400</width>", "finite numbers"),
        ("<width>12</width>", "<width>11 12</width>", "expected 1 numbers, got 2"),
        ("<stageThreshold>-0.5</stageThreshold>", "", r"stages\[0\]: element <stageThreshold> is missing"),
        ("<stageThreshold>-0.5", "<stageThreshold>low", r"stages\[0\].stageThreshold: expected numbers, got 'low'"),
        ("<stageThreshold>-0.5", "<stageThreshold>nan", "finite numbers"),
        ("0 -1 0 -0.25", "0 -1 0", "expected 4 numbers for each node"),
        ("0.5 -0.75", "0.5", "one leaf more than nodes"),
        ("0 -1 0 -0.25", "0 -1 2 -0.25", "feature 2 of 2"),
        ("0 -1 0 -0.25", "0 -1 -1 -0.25", "feature -1 of 2"),
        ("0 -1 0 -0.25", "0 -2 0 -0.25", "node 0 leads to 0 and -2"),
        ("1 0 1 0.125 -1 -2", "1 0 1 0.125 1 -2", "node 1 leads to 1 and -2"),
        ("<leafValues>1 2 3", "<leafValues>1 2 9e8", "do not fit the sum"),
        ("2 1 6 4 -1.", "2 1 11 4 -1.", r"features\[0\].rects\[0\]: rectangle \[2, 1, 11, 4\] is not inside"),
        ("2 1 6 4 -1.", "-1 1 6 4 -1.", "is not inside the window of 12 x 10"),
        ("2 1 6 4 -1.", "2 1 0 4 -1.", "is not inside"),
        ("5 1 3 2 -1.", "1 1 3 2 -1.", "tilted rectangle"),
        ("5 1 3 2 -1.", "5 1 3 9 -1.", "tilted rectangle"),
        ("2 1 6 4 -1.", "2 1 6 4 -0.5", "expected integers"),
        ("2 1 6 4 -1.", "2 1 6 4 0", "weight of 1 to 64"),
        ("2 1 6 4 -1.", "2 1 6 4 65", "weight of 1 to 64"),
        ("2 1 6 4 -1.", "2 1 6 4", "expected 5 numbers, got 4"),
    ],
)
def test_bad_files_are_named(old: str, new: str, expected: str) -> None:
    assert old in TEXT
    with pytest.raises(UsageError, match=expected) as caught:
        parse(TEXT.replace(old, new, 1))
    assert str(caught.value).startswith("mine.xml: ")


def test_a_cascade_without_stages_features_or_trees_is_refused() -> None:
    for pattern, expected in (
        (r"(?s)<stages>.*</stages>", "element <stages> is missing"), (r"(?s)(<stages>).*(</stages>)", "there are none"),
        (r"(?s)<features>.*</features>", "element <features> is missing"),
        (r"(?s)(<features>).*(</features>)", "feature 0 of 0"),
        (r"(?s)(<weakClassifiers>).*?(</weakClassifiers>)", "there are none"),
        (r"(?s)(<rects>).*?(</rects>)", "expected 1 to 3 rectangles, got 0"),
    ):  # fmt: skip
        groups = re.compile(pattern).groups
        with pytest.raises(UsageError, match=expected):
            parse(re.sub(pattern, r"\1\2" if groups else "", TEXT, count=1))


def test_files_by_name_and_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.xml"
    with pytest.raises(UsageError, match=r"mine\.xml: cannot be read"):
        cascade.load(str(path))
    path.write_text(TEXT)
    assert cascade.load(str(path)).stages == 2
    with monkeypatch.context() as patch:
        patch.setattr(cascade, "FILE_LIMIT", len(TEXT) - 1)
        with pytest.raises(UsageError, match=r"mine\.xml: expected at most [\d,]+ bytes, got"):
            cascade.load(str(path))
    monkeypatch.setattr(cascade, "folders", lambda: [tmp_path])
    path.rename(tmp_path / "haarcascade_mine.xml")
    assert cascade.load("mine").name == str(tmp_path / "haarcascade_mine.xml")
    with pytest.raises(UsageError, match="nor one of mine"):
        cascade.load("yours")
    monkeypatch.setattr(cascade, "folders", lambda: [])
    with pytest.raises(UnavailableError, match="opencv-python-headless"):
        cascade.load("mine")


PLACES = [match.span() for match in re.finditer(r"-?[\w.]+", TEXT)]


@settings(max_examples=300, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(PLACES), st.text(max_size=6) | st.integers().map(str)), min_size=1, max_size=3)
)
def test_changed_words_give_a_cascade_or_its_error(changes: list[tuple[tuple[int, int], str]]) -> None:
    text = TEXT
    for (begin, end), word in sorted(changes, reverse=True):
        text = text[:begin] + word + text[end:]
    check(text.encode(errors="surrogatepass"))


@settings(max_examples=200, derandomize=True)
@given(st.binary(max_size=60), st.integers(0, len(TEXT)), st.integers(0, 40))
def test_changed_bytes_give_a_cascade_or_its_error(inserted: bytes, at: int, removed: int) -> None:
    content = TEXT.encode()
    check(content[:at] + inserted + content[at + removed :])
    check(inserted)


def check(content: bytes) -> None:
    """Whatever is accepted stays inside its window and ends."""
    try:
        read = cascade.parse(content, "mine.xml")
    except UsageError:
        return
    pitch, plane = 100, 100 * (read.height + 1)
    offsets = read.offsets(pitch, plane) - plane * read.tilted[:, None, None] * (read.weights != 0)[:, :, None]
    assert offsets.min() >= 0
    assert (offsets // pitch).max() <= read.height and (read.width > 99 or (offsets % pitch).max() <= read.width)
    assert len(read.leaves) == read.nodes + len(read.tree_first) - 1
