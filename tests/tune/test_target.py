"""What the command's argument stands for: names, experiment files, sizes with weights; mistakes are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
import tunable_workload as tunable
import yaml

from perfport.backend.offline import opencl_info
from perfport.model.device import DeviceInfo
from perfport.model.errors import UsageError
from perfport.tune.target import target
from perfport.workload import Workload, discover

CPU = DeviceInfo.model_validate(data.device(data.POCL))


@pytest.fixture
def workloads(tmp_path: Path) -> dict[str, Workload]:
    return discover([tunable.write(tmp_path)])


def experiment(folder: Path, **more: Any) -> Path:
    path = folder / "own.yaml"
    study = {"workload": "tunable", "problem": "double", "presets": ["quick", "more"]}
    path.write_text(yaml.safe_dump({"name": "own", "experiments": [study], **more}))
    return path


@pytest.mark.parametrize("text", ["tunable", "tunable/double", tunable.VARIANT])
def test_variants_with_tunables_are_meant_at_the_headline_size(workloads: dict[str, Workload], text: str) -> None:
    (goal,) = target(text, workloads).goals(workloads, [CPU])
    assert goal.name == tunable.VARIANT and goal.presets == {"quick": 1.0}
    assert goal.defaults == {"turns": 64, "fault": "none"} and goal.space.size == 18


def test_all_are_the_variants_of_every_workload() -> None:
    known = discover()
    info = opencl_info("cpu")
    everything = {goal.name for goal in target("all", known).goals(known, [info])}
    apart = {goal.name for name in known for goal in target(name, known).goals(known, [info])}
    assert everything == apart and {name.split("/")[0] for name in everything} == set(known)


def test_a_peer_is_tuned_where_it_is_named(workloads: dict[str, Workload]) -> None:
    (goal,) = target("tunable/double/library", workloads).goals(workloads, [CPU])
    assert goal.variant.role == "peer"


def test_an_experiment_says_what_and_how(workloads: dict[str, Workload], tmp_path: Path) -> None:
    own = target(str(experiment(tmp_path)), workloads)
    assert own.name == "own" and own.goals(workloads, [CPU])[0].presets == {"quick": 1.0, "more": 1.0}
    tune = {"variants": ["library"], "objective": "worst", "presets": {"more": 2.0}, "budget": 5.0, "seed": 9}
    chosen = target(str(experiment(tmp_path, tune=tune)), workloads)
    (goal,) = chosen.goals(workloads, [CPU])
    assert (goal.variant.name, goal.presets) == ("library", {"more": 2.0})
    assert (chosen.options.objective, chosen.options.budget, chosen.options.seed) == ("worst", 5.0, 9)


def test_entries_of_one_problem_have_their_sizes_together(workloads: dict[str, Workload], tmp_path: Path) -> None:
    entries = [{"workload": "tunable", "problem": "double", "presets": [preset]} for preset in ("quick", "more")]
    own = target(str(experiment(tmp_path, experiments=entries)), workloads)
    (goal,) = own.goals(workloads, [CPU])
    assert goal.presets == {"quick": 1.0, "more": 1.0}


def test_an_experiment_and_its_entries_say_where(workloads: dict[str, Workload], tmp_path: Path) -> None:
    entries = [{"workload": "tunable", "problem": "double", "devices": ["opencl:pocl"]}]
    own = target(str(experiment(tmp_path, devices=["opencl"], experiments=entries)), workloads)
    other = CPU.model_copy(update={"id": "opencl:intel:0"})
    assert own.devices == ("opencl",)
    assert [goal.device.id for goal in own.goals(workloads, [CPU, other])] == [CPU.id]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tunabel", "nor is it a workload"),
        ("tunable/dobule", "did you mean 'double'?"),
        ("tunable/double/trusn", "did you mean 'turns'?"),
        ("tunable/double/bare", "no variant with tunables is left"),
    ],
)
def test_mistakes_are_named(workloads: dict[str, Workload], text: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        target(text, workloads).goals(workloads, [CPU])
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("tune", "told"),
    [
        ({"presets": {"huge": 1.0}}, "unknown tunable/double: preset 'huge'"),
        ({"presets": {"quick": 0}}, "greater than 0"),
        ({"variants": ["turns", "trusn"]}, "tune.variants: unknown variant 'trusn' (did you mean 'turns'?)"),
        ({"objective": "best"}, "tune.objective"),
        ({"budget": float("inf")}, "tune.budget"),
        ({"strategy": "x"}, "tune.strategy: unknown key"),
    ],
)
def test_mistakes_of_a_file_are_named(
    workloads: dict[str, Workload], tmp_path: Path, tune: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError) as raised:
        target(str(experiment(tmp_path, tune=tune)), workloads).goals(workloads, [CPU])
    assert told in str(raised.value)
