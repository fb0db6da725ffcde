"""Published figures: every shipped one is whole and its problem exists; a bad file is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport import workload
from perfport.model import published
from perfport.model.errors import UsageError
from perfport.workload.discovery import CLAIMS

WORKLOADS = ("svm_rbf", "gdn", "face_detection", "vocab_tree", "sparse_conv")


@pytest.mark.parametrize("name", WORKLOADS)
def test_figures_ship_for_every_source(name: str) -> None:
    found = published.figures(name)
    assert found and all(figure.source and figure.unit for figure in found)
    assert all(figure.high is None or figure.high > figure.value for figure in found)


def test_figures_name_problems_that_exist() -> None:
    for found in workload.discover().values():
        assert {figure.problem for figure in found.published} <= set(found.problems)


def test_figures_of_one_setting_name_its_parameters() -> None:
    """A rate of frames, unlike one of operations, is that of one size of frames."""
    rates = [figure for name in WORKLOADS for figure in published.figures(name) if figure.unit == "frames/s"]
    assert rates and all({"width", "height", "step"} <= (figure.parameters or {}).keys() for figure in rates)


def test_exhibits_ship_for_every_source() -> None:
    assert {published.exhibits_file(name).name for name in WORKLOADS} == {f"{name}.yaml" for name in WORKLOADS}
    with pytest.raises(
        UsageError, match=r"'gdm' is no publication with exhibits \(did you mean 'gdn'\?\); there are: f"
    ):
        published.exhibits_file("gdm")


def test_inconsistencies_say_what_is_used_instead() -> None:
    found = published.inconsistencies()
    assert {entry.workload for entry in found} == set(WORKLOADS)
    assert all(entry.stated and entry.used for entry in found)


def test_figures_of_a_folder_are_read_where_none_ship(tmp_path: Path) -> None:
    (tmp_path / published.FILE).write_text(
        "- {problem: p, variant: a, device: d, value: 1, high: 2, unit: s, source: x}"
    )
    (figure,) = published.of_workload("mine", tmp_path)
    assert (figure.value, figure.high) == (1, 2)
    assert published.of_workload("svm_rbf", tmp_path) == list(published.figures("svm_rbf"))
    assert published.of_workload("mine", tmp_path / "none") == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("- {problem: p", "not valid YAML"),
        (
            "- {problem: p, variant: a, device: d, value: fast, unit: s, source: x}",
            "[0].value: input should be",
        ),
        ("- {problem: p, variant: a, device: d, value: 1, unit: s}", "[0].source: required key is missing"),
        (
            "- {problem: p, variant: a, device: d, value: 1, unit: s, source: x, speed: 3}",
            "[0].speed: unknown key; ",
        ),
        ("{problem: p}", "list"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "published.yaml"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"published\.yaml") as caught:
        published.read(file)
    assert complaint in str(caught.value)


def test_figures_and_claims_change_no_key(tmp_path: Path) -> None:
    one = workload.Workload("w", "t", tmp_path)
    (tmp_path / "problems.py").write_text("x = 1\n")
    before = one.source_digest()
    for name in (published.FILE, CLAIMS):
        (tmp_path / name).write_text("[]")
    assert one.source_digest() == before
    (tmp_path / "data.yaml").write_text("[]")
    assert one.source_digest() != before
