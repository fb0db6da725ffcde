"""Where a search begins: this device first, its vendor's others next, values that the variant takes."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest
import report_data as data

from perfport.machine.device_profile import user_folder
from perfport.model.device import DeviceInfo
from perfport.model.record import Interval
from perfport.tune import profiles
from perfport.tune.log import Result
from perfport.tune.seeds import seeds, vendor
from perfport.tune.target import Goal
from perfport.workload import discover

GPU = DeviceInfo.model_validate({**data.device(data.GPU), "vendor": "NVIDIA Corporation", "name": "NVIDIA H200"})
VARIANT = "face_detection/windows/tuned"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA Corporation", "nvidia"),
        ("NVIDIA", "nvidia"),
        ("Advanced Micro Devices, Inc.", "amd"),
        ("AMD", "amd"),
        ("Intel(R) Corporation", "intel"),
        ("Somebody", "somebody"),
    ],
)
def test_a_vendor_has_one_name(name: str, expected: str) -> None:
    assert vendor(name) == expected


@pytest.fixture
def goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Goal:
    monkeypatch.setattr(platformdirs, "user_config_dir", lambda name: str(tmp_path / name))
    workload = discover(only="face_detection")["face_detection"]
    return Goal(workload, workload.variant("windows", "tuned"), GPU, {"quick": 1.0})


def test_what_the_literature_gives_for_the_vendor_comes_first(goal: Goal) -> None:
    known = seeds(goal)
    assert known and all(config.keys() == goal.defaults.keys() for config in known)
    assert known[0]["work_group"] == 32 and {config["work_group"] for config in known} == {32, 64, 128}


def test_what_was_found_on_the_device_comes_before_that(goal: Goal) -> None:
    found = Result(
        device=GPU.id, variant=VARIANT, presets={"quick": 1.0}, tried=9, of=99,
        parameters={**goal.defaults, "work_group": 128}, next=[{**goal.defaults, "work_group": 256}],
        gain=Interval(value=2, low=2, high=2),
    )  # fmt: skip
    for name, work_group in (("NVIDIA H200", 128), ("NVIDIA X", 64)):
        info = GPU.model_copy(update={"name": name})
        own = found.model_copy(update={"parameters": {**goal.defaults, "work_group": work_group}})
        profiles.update(profiles.own_file(info), info, {VARIANT: own}, 1)
    assert len(list(user_folder().iterdir())) == 2
    known = seeds(goal)
    assert known[0] == {**goal.defaults, "work_group": 128}
    assert {**goal.defaults, "work_group": 256} in known
