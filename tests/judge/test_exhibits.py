"""Exhibits: shipped ones name what exists, bad ones say file, key, what is expected and what is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
import yaml
from claim_data import claim

from perfport import workload
from perfport.judge import exhibits
from perfport.judge.exhibits import Cited, Exhibit, Series, Source, find, read
from perfport.model import published
from perfport.model.errors import UsageError
from perfport.run.experiment import Study, load
from perfport.run.experiment import find as find_experiment
from perfport.workload import Problem

SOURCES = ("face_detection", "gdn", "sparse_conv", "svm_rbf", "vocab_tree")
CURVES = {"number": "Figure 1", "title": "Rates", "kind": "curves", "problem": "rows", "x": "points", "series": ["a"]}


def exhibit(**change: Any) -> Exhibit:
    """Return an exhibit of curves of one variant, but for the changes."""
    return Exhibit.model_validate({**CURVES, **change})


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two published figures of the demonstration."""
    known = tuple(
        published.Figure(problem="rows", variant=name, device="hd5870", value=value, unit="GFLOP/s", source="a paper")
        for name, value in (("a", 33.7), ("b", 65.7))
    )
    monkeypatch.setattr(published, "figures", lambda name: known if name == "demo" else ())


def write(folder: Path, *listed: dict[str, Any]) -> Path:
    file = folder / "demo.yaml"
    file.write_text(yaml.safe_dump({"workload": "demo", "citation": "A paper", "exhibits": list(listed)}))
    return file


@pytest.mark.parametrize("name", SOURCES)
def test_shipped_exhibits_name_problems_variants_and_parameters_that_exist(name: str) -> None:
    source, known = find(name), workload.discover(only=name)[name]
    assert source.workload == name and source.exhibits
    for each in source.exhibits:
        if each.kind == "ratios":
            continue
        problem, variants = known.problem(each.problem), known.variants[each.problem]
        sides = [side for series in each.series for side in (series, series.over) if side]
        for variant in (variant for side in sides for variant in side.variants):
            assert variant in variants, (each.number, variant)
        tunables = {name for variant in variants.values() for name in variant.tunables}
        parameters = set(problem.Parameters.model_fields)
        assert parameters.union(tunables).issuperset(each.x), each.number
        assert parameters.issuperset(each.parameters), each.number


def values_of(study: Study, problem: type[Problem], axis: str) -> set[Any]:
    """What an entry of an experiment has on an axis."""
    presets = [problem.presets[name] for name in study.presets or ()]
    given = study.parameters.get(axis, study.tunables.get(axis, [preset[axis] for preset in presets if axis in preset]))
    return set(given if isinstance(given, list) else [given])


@pytest.mark.parametrize("name", SOURCES)
def test_the_guide_says_of_every_exhibit_how_it_is_reproduced(name: str) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "papers.md").read_text()
    section = guide.partition(f"(`paper_{name}`)")[2].partition("\n#")[0]
    assert [each.number for each in find(name).exhibits if each.number not in section] == []


@pytest.mark.parametrize("name", SOURCES)
def test_the_experiment_of_a_study_has_values_for_every_curve(name: str) -> None:
    """At least two of them, so that there is a curve, and those that the source has where it names them."""
    studies, known = load(find_experiment(f"paper_{name}")).experiments, workload.discover(only=name)[name]
    for each in find(name).exhibits:
        if each.kind == "curves":
            (axis,) = each.x
            mine = [study for study in studies if study.problem == each.problem]
            values = set().union(*(values_of(study, known.problem(each.problem), axis) for study in mine))
            assert len(values) >= 2 and values.issuperset(each.values), (each.number, each.title)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "pie"}, "kind: input should be 'curves', 'bars', 'roofline', 'table' or 'ratios', got 'pie'"),
        ({"x": []}, "kind 'curves' needs one 'x', a parameter or tunable, got none"),
        ({"series": []}, "kind 'curves' needs 'problem' and 'series'"),
        ({"series": [{"label": "a"}]}, "expected either 'variant' or 'best: true', got neither"),
        ({"series": ["a", "a"]}, "two series are called 'a'; 'label' tells them apart"),
        ({"series": [{"variant": "a", "y": "speedup"}]}, "expected 'over' with y 'speedup', and only there"),
        ({"series": [{"variant": "a", "over": {"variant": "b"}, "y": "time"}]}, "expected 'over' with y 'speedup'"),
        ({"published": [{"variant": "a", "series": "aa"}]}, "no series is called 'aa' (did you mean 'a'?)"),
        ({"devices": ["k40m"]}, "'devices' belong to kind 'roofline', got 'curves'"),
        ({"y": "extra.n / time"}, "y: string should match pattern"),
        ({"kind": "ratios"}, "kind 'ratios' is made of 'claims' alone"),
        ({"colour": "red"}, "colour: unknown key; allowed: number, title, kind"),
        ({"claims": ["ona"]}, "exhibits[0].claims[0]: expected a claim of 'demo', got 'ona' (did you mean 'one'?)"),
        ({"profiles": ["h20"]}, "exhibits[0].profiles[0]: expected a device profile, got 'h20'"),
        ({"kind": "roofline", "devices": ["K40"]}, "exhibits[0].devices[0]: expected a device profile, got 'K40'"),
        ({"published": [{"variant": "c"}]}, "exhibits[0].published[0]: expected part of a published figure of 'demo'"),
    ],
)
@pytest.mark.usefixtures("figures")
def test_a_wrong_definition_says_where_and_what(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    file = write(tmp_path, {**CURVES, **change})
    with pytest.raises(UsageError, match=r"demo\.yaml") as caught:
        read(file, {"demo": [claim()]})
    assert complaint in str(caught.value)


@pytest.mark.usefixtures("figures")
def test_a_right_definition_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, {**CURVES, "claims": ["one"], "published": [{"variant": "b", "unit": "FLOP"}]})
    source = read(file, {"demo": [claim()]})
    assert isinstance(source, Source)
    assert source.exhibits[0].series[0].variant == ["a"]
    assert [figure.value for figure in published.figures("demo") if Cited(variant="b").takes(figure)] == [65.7]


def test_a_publication_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"'svm' is no publication with exhibits.*there are: face_detection, gdn"):
        exhibits.find("svm")


def test_a_series_is_called_by_its_label_or_by_what_it_is_made_of() -> None:
    assert Series(variant=["a"]).title == "a"
    assert Series.model_validate({"best": True, "over": {"variant": "b"}}).title == "best variant over b"
    assert Series.model_validate({"variant": "a", "tunables": {"n": 1}, "label": "one"}).title == "one"


def test_the_best_is_neither_a_peer_nor_a_control_arm() -> None:
    best = Series(best=True)
    roles = {role: best.takes(data.record("a", role=role), {}) for role in ("rung", "beyond", "control", "peer")}
    assert roles == {"rung": True, "beyond": True, "control": False, "peer": False}
    assert not best.takes(data.record("a"), {"points": 3})


def test_a_speed_up_is_what_a_series_with_a_reference_shows() -> None:
    over = exhibit(series=["a", {"variant": "b", "over": {"variant": "a"}}], y="time")
    assert [over.quantity(series) for series in over.series] == ["time", "speedup"]
