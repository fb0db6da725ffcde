"""Experiment files: what ships is valid, names resolve, errors carry their key path (tests/cli has the messages)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from perfport import workload
from perfport.model.errors import UsageError, nearest
from perfport.run.experiment import Experiment, Span, digest, find, load

SHIPPED = sorted(file.name[:-5] for file in files("perfport.experiments").iterdir() if file.name.endswith(".yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_is_valid_and_found_by_name(name: str) -> None:
    assert load(find(name)).name == name


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "quick"])
def test_what_ships_is_measured_by_three_workers_so_that_intervals_hold_their_spread(name: str) -> None:
    """`quick` has one, and says why: it must end in two minutes."""
    assert load(find(name)).workers >= 3


@pytest.mark.parametrize("name", sorted(workload.discover([])))
def test_a_study_runs_by_its_name_with_every_size_of_its_source(name: str) -> None:
    """Each problem that has the source's size is in the file of the study, for a GPU and at sizes for a CPU."""
    found = workload.discover([])[name]
    of_source = {problem for problem, cls in found.problems.items() if "paper" in cls.presets}
    for file, kind in ((f"paper_{name}", "gpu"), (f"paper_{name}_cpu", "cpu")):
        experiment = load(find(file))
        assert experiment.devices == [kind] and {study.workload for study in experiment.experiments} == {name}
        assert experiment.report.follows == name
        assert of_source <= {study.problem for study in experiment.experiments}
    sizes = {study.problem for study in load(find(f"paper_{name}")).experiments if "paper" in (study.presets or ())}
    assert of_source <= sizes


#: Not for a machine with one CPU: what wants two devices of a kind, and OpenCV's use of a system-wide OpenCL.
NOT_QUICK = {"several_devices", "source_devices", "opencv_opencl"}


def test_quick_has_every_ladder_the_best_variants_and_the_peers_that_install_in_seconds() -> None:
    """What runs on a CPU after the README's first command; at least one variant of what goes beyond a source."""
    chosen = {(study.workload, study.problem): set(study.variants or ()) for study in load(find("quick")).experiments}
    for name, found in workload.discover([]).items():
        for problem, variants in found.variants.items():
            here = {
                variant.name: variant.role
                for variant in variants.values()
                if not {"cuda", "gpu", "ptx", "mma"} & set(variant.needs) and "torch" not in variant.modules
                and variant.name not in NOT_QUICK
            }  # fmt: skip
            listed = chosen.pop((name, problem))
            assert listed <= set(here)
            assert {name for name, role in here.items() if role in ("rung", "peer")} <= listed
            assert {here[name] for name in listed} >= set(here.values()) - {"control"}, problem
    assert not chosen


def spread(tmp_path: Path, text: str) -> list[float]:
    path = tmp_path / "axis.yaml"
    path.write_text(
        f"name: axis\nexperiments: [{{workload: svm_rbf, problem: rbf_rows, parameters: {{points: {text}}}}}]"
    )
    values = load(path).experiments[0].parameters["points"]
    assert isinstance(values, list)
    return values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{from: 1000, to: 1_000_000, steps: 4, scale: log}", [1000, 10_000, 100_000, 1_000_000]),
        ("{from: 1, to: 4, steps: 10}", [1, 2, 3, 4]),
        ("{from: 0.1, to: 0.9, steps: 9}", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
    ],
)
def test_an_axis_is_said_by_its_ends(tmp_path: Path, text: str, values: list[float]) -> None:
    assert spread(tmp_path, text) == values


@given(
    start=st.integers(1, 10**6),
    more=st.integers(1, 10**6),
    steps=st.integers(2, 50),
    scale=st.sampled_from(["linear", "log"]),
)
def test_an_axis_has_both_ends_ascends_and_keeps_to_integers(start: int, more: int, steps: int, scale: str) -> None:
    values = Span.model_validate({"from": start, "to": start + more, "steps": steps, "scale": scale}).values()
    assert values[0] == start and values[-1] == start + more
    assert values == sorted(set(values)) and len(values) <= steps
    assert all(type(value) is int for value in values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{from: 10, to: 10, steps: 2}", "expected 'to' above 'from', got 10 and 10"),
        ("{from: 0, to: 10, steps: 2, scale: log}", "expected 'from' above 0 on a logarithmic scale, got 0"),
        ("{from: 1, to: 10, steps: 1}", "steps"),
        ("{from: 1, to: 10}", "steps"),
        ("{from: 1, till: 10, steps: 3}", "till: unknown key; allowed: from, to, steps, scale"),
        ("{from: 1, to: .inf, steps: 3}", "to"),
        ("{from: 1, to: 10, steps: 3, scale: cubic}", "'linear' or 'log'"),
    ],
)
def test_an_axis_that_is_none_is_refused_by_its_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        spread(tmp_path, text)
    assert "experiments[0].parameters.points: " in str(error.value) and says in str(error.value)


def test_a_file_comes_before_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find("quick").parent != Path()
    (tmp_path / "quick").write_text("")
    assert find("quick") == Path("quick")


def test_defaults_and_overrides(tmp_path: Path) -> None:
    study = {"workload": "w", "problem": "p", "measurement": {"min_samples": 9}, "timeout": 5}
    path = tmp_path / "e.yaml"
    path.write_text(yaml.safe_dump({"name": "e", "experiments": [study], "measurement": {"cache": "warm"}}))
    found = load(path)
    assert (found.devices, found.timeout, found.seed, found.report.path) == (["all"], 120.0, 1, None)
    assert found.measurement.cache == "warm" and found.experiments[0].profiles is None
    assert found.experiments[0].measurement == {"min_samples": 9}


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("name: e\ntimeout: -1\nexperiments: [{workload: w, problme: p}]\n")
    with pytest.raises(UsageError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3 and all(line.startswith(f"{path}: ") for line in lines)
    assert any("experiments[0].problem: required key is missing" in line for line in lines)


def test_a_report_can_follow_only_a_publication_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("name: e\nreport: {follows: svm_rfb}\nexperiments: [{workload: w, problem: p}]\n")
    with pytest.raises(UsageError, match=r"e\.yaml: report\.follows: 'svm_rfb' is no publication .*mean 'svm_rbf'\?"):
        load(path)


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a")
    two.write_text("a")
    same = digest(one) == digest(two)
    two.write_text("b")
    assert same and digest(one) != digest(two)


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)


@given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=5))
def test_nearest_names_an_allowed_one_or_nothing(name: str, allowed: list[str]) -> None:
    hint = nearest(name, allowed)
    assert hint == "" or any(repr(one) in hint for one in allowed)
    assert name not in allowed or repr(name) in hint


def test_schema_knows_every_key() -> None:
    schema = Experiment.model_json_schema()
    assert schema["additionalProperties"] is False and set(schema["required"]) == {"name", "experiments"}
