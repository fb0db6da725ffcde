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
from perfport.run.experiment import Experiment, digest, find, load

SHIPPED = sorted(file.name[:-5] for file in files("perfport.experiments").iterdir() if file.name.endswith(".yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_is_valid_and_found_by_name(name: str) -> None:
    assert load(find(name)).name == name


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "quick"])
def test_what_ships_is_measured_by_three_workers_so_that_intervals_hold_their_spread(name: str) -> None:
    """`quick` has one, and says why: it must end in two minutes."""
    assert load(find(name)).workers >= 3


#: Not for a machine with one CPU: what wants two devices of a kind, and OpenCV's use of a system-wide OpenCL.
NOT_QUICK = {"several_devices", "opencv_opencl"}


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
