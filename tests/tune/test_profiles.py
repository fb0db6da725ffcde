"""Profiles are written without a change to what others wrote, and are then defaults of the devices that they name."""

from __future__ import annotations

import logging
from pathlib import Path

import jsonschema
import platformdirs
import pytest
import report_data as data
import tunable_workload as tunable
import yaml

from perfport.machine import device_profile
from perfport.machine.device_profile import DeviceProfile, load_profile, parameters_at, tuned
from perfport.machine.tuned import Size
from perfport.model.device import DeviceInfo
from perfport.model.errors import UsageError
from perfport.model.record import Interval
from perfport.run import plan
from perfport.run.defaults import Defaults, describe
from perfport.run.experiment import Experiment
from perfport.run.listing import device_rows
from perfport.tune import profiles, tune
from perfport.tune.log import DEFAULTS_BEST, NOTHING_FASTER, WITHIN_NOISE, Result
from perfport.tune.seeds import seeds
from perfport.tune.target import Goal
from perfport.workload import Workload, discover

CPU = DeviceInfo.model_validate(data.device(data.POCL))
INTEL = DeviceInfo.model_validate({**data.device(data.INTEL), "name": CPU.name})
OTHER = CPU.model_copy(update={"name": "another processor"})
GAIN = Interval(value=1.5, low=1.25, high=1.7512345)
TURNS = Result(
    device=CPU.id, variant=tunable.VARIANT, presets={"quick": 1.0}, parameters={"turns": 4, "fault": "none"},
    next=[{"turns": 512, "fault": "none"}], gain=GAIN, share=0.4, tried=7, of=18,
)  # fmt: skip
MORE = TURNS.model_copy(update={"presets": {"more": 1.0}, "parameters": {"turns": 512, "fault": "none"}})
STANDS = TURNS.model_copy(
    update={"presets": {"more": 1.0}, "parameters": None, "next": [], "gain": None, "reason": NOTHING_FASTER}
)
QUICK, ANYWHERE = {"n": 20000}, Size({}, {})


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder of profiles, empty."""
    monkeypatch.setattr(platformdirs, "user_config_dir", lambda name: str(tmp_path / "config" / name))
    return device_profile.user_folder()


@pytest.fixture
def workloads(tmp_path: Path) -> dict[str, Workload]:
    return discover([tunable.write(tmp_path)])


def test_a_new_profile_holds_what_was_found_and_how(own: Path) -> None:
    path = profiles.own_file(CPU)
    assert path.parent == own
    profiles.check(path, CPU)
    assert profiles.update(path, CPU, {tunable.VARIANT: TURNS}, seed=3) == [tunable.VARIANT]
    profile = load_profile(path)
    assert (
        profile.kind == "cpu"
        and load_profile(path.stem).tuned == profile.tuned
        and profile.names(CPU.name)
        and not profile.names(OTHER.name)
    )
    (found,) = profile.tuned["opencl:pocl"][tunable.VARIANT]
    assert found.parameters == {"turns": 4, "fault": "none"} and found.next == [{"turns": 512, "fault": "none"}]
    assert (found.tried, found.of, found.seed, found.driver, found.presets) == (7, 18, 3, "3.1", {"quick": 1.0})
    assert found.gain.low == 1.25 and found.gain.high == 1.751 and found.share == 0.4 and found.commit and found.date


def test_what_others_wrote_stays_byte_for_byte(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "h200.yaml"
    shipped = profiles.split(
        (Path(device_profile.__file__).parents[3] / "device_profiles" / path.name).read_text(), path
    )[0]
    path.write_text(shipped)
    gpu = CPU.model_copy(update={"id": "cuda:nvidia:0", "name": "NVIDIA H200"})
    profiles.update(path, gpu, {tunable.VARIANT: TURNS}, 1)
    assert path.read_text().startswith(shipped.rstrip() + "\ntuned:\n")
    opencl = gpu.model_copy(update={"id": "opencl:nvidia:0"})
    another = TURNS.model_copy(update={"parameters": {"turns": 64, "fault": "none"}})
    profiles.update(path, opencl, {tunable.VARIANT: another}, 1)
    profiles.update(path, gpu, {"w/p/other": TURNS, "w/p/none": TURNS.model_copy(update={"parameters": None})}, 1)
    tuned_ = load_profile(path).tuned
    assert set(tuned_["cuda:nvidia"]) == {tunable.VARIANT, "w/p/other"}
    assert tuned_["cuda:nvidia"][tunable.VARIANT][0].parameters["turns"] == 4
    assert tuned_["opencl:nvidia"][tunable.VARIANT][0].parameters["turns"] == 64
    assert path.read_text().startswith(shipped.rstrip())


def test_without_a_winner_nothing_is_written(own: Path) -> None:
    path = profiles.own_file(CPU)
    assert profiles.update(path, CPU, {"w/p/v": TURNS.model_copy(update={"parameters": None})}, 1) == []
    assert not path.exists()


def test_a_profile_of_another_device_is_refused(own: Path) -> None:
    path = profiles.own_file(CPU)
    profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1)
    with pytest.raises(UsageError, match="expected a pattern that finds 'another processor'"):
        profiles.check(path, OTHER)
    path.write_text(path.read_text() + "notes: []\n")
    with pytest.raises(UsageError, match="tuned: expected as the last key"):
        profiles.check(path, CPU)


@pytest.mark.parametrize("change", [("\ntuned:", '\n"tuned":'), ("\ntuned:", "\ntuned :")])
def test_a_block_that_could_not_be_replaced_is_refused_before_a_search(own: Path, change: tuple[str, str]) -> None:
    path = profiles.own_file(CPU)
    profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1)
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(UsageError, match="tuned"):
        profiles.check(path, CPU)


def test_a_new_profile_is_of_one_device(tmp_path: Path) -> None:
    path, equal = tmp_path / "new.yaml", INTEL.model_copy(update={"id": "opencl:intel:1"})
    profiles.check_shared({CPU.id: path, INTEL.id: path, equal.id: path}, [CPU, INTEL, equal])
    with pytest.raises(UsageError, match=r"expected one device for a new profile, got .*another processor"):
        profiles.check_shared({INTEL.id: path, OTHER.id: path}, [INTEL, OTHER])


@pytest.mark.parametrize("gains", [(1.5, 1.2), (1.2, 1.5)])
def test_of_equal_devices_the_greater_gain_is_written(tmp_path: Path, gains: tuple[float, float]) -> None:
    path, equal = tmp_path / "new.yaml", CPU.model_copy(update={"id": CPU.id[:-1] + "1"})
    results = [
        TURNS.model_copy(update={"device": device.id, "gain": Interval(value=gain, low=gain, high=gain)})
        for device, gain in zip((CPU, equal), gains, strict=True)
    ]
    assert tune._write(results, [CPU, equal], {CPU.id: path, equal.id: path}, 1) == {path: [tunable.VARIANT]}
    ((_, variants),) = load_profile(path).tuned.items()
    assert variants[tunable.VARIANT][0].gain.value == 1.5


def test_parameters_are_defaults_where_they_were_found(own: Path, workloads: dict[str, Workload]) -> None:
    profiles.update(profiles.own_file(CPU), CPU, {tunable.VARIANT: TURNS}, 1)
    variant = workloads["tunable"].variant("double", "turns")
    code, found = {"turns": 64, "fault": "none"}, {"turns": 4, "fault": "none"}
    assert Defaults(CPU).of("tunable", variant, QUICK) == found
    for others in (Defaults(CPU, own=True), Defaults(INTEL), Defaults(OTHER)):
        assert others.of("tunable", variant, QUICK) == code
    ((name, _),) = tuned(CPU)[tunable.VARIANT]
    assert name == profiles.own_file(CPU).stem


def test_of_several_profiles_the_first_counts(own: Path) -> None:
    other = TURNS.model_copy(update={"parameters": {"turns": 512, "fault": "none"}})
    for name, results in (("a", {tunable.VARIANT: TURNS}), ("b", {tunable.VARIANT: other, "w/p/other": other})):
        profiles.update(own / f"{name}.yaml", CPU, results, 1)
    known = {variant: (name, each.parameters["turns"]) for variant, ((name, each),) in tuned(CPU).items()}
    assert known == {tunable.VARIANT: ("a", 4), "w/p/other": ("b", 512)}


def test_devices_say_what_is_tuned(own: Path) -> None:
    rows = [row["tuned"] for row in device_rows([CPU, OTHER])]
    assert rows == ["", ""]
    profiles.update(profiles.own_file(CPU), CPU, {tunable.VARIANT: TURNS, "w/p/other": TURNS}, 1)
    named = profiles.own_file(CPU).stem
    assert [row["tuned"] for row in device_rows([CPU, OTHER, INTEL])] == [f"2 by {named}", "", ""]


@pytest.mark.parametrize("parameters", [{"turns": 5, "fault": "none"}, {"turns": 4, "gone": 1}])
def test_parameters_that_the_variant_no_longer_takes_do_not_count(
    own: Path, workloads: dict[str, Workload], parameters: dict[str, int | str]
) -> None:
    old = TURNS.model_copy(update={"parameters": parameters})
    profiles.update(profiles.own_file(CPU), CPU, {tunable.VARIANT: old}, 1)
    variant = workloads["tunable"].variant("double", "turns")
    assert Defaults(CPU).of("tunable", variant, QUICK) == {"turns": 64, "fault": "none"}


def cases(
    workloads: dict[str, Workload], native: bool = False, said: int | None = None, **study: object
) -> list[tuple[int, str | None]]:
    """The turns and the profile of each planned case, and that the run says what the defaults were."""
    entry = {"workload": "tunable", "problem": "double", "presets": ["quick"], "variants": ["turns"], **study}
    entry = {name: value for name, value in entry.items() if value is not None}
    expected = said or (64 if native or study.get("profiles") else 4)
    definition = Experiment.model_validate({"name": "x", "experiments": [entry]})
    groups = plan.make(definition, "x", workloads, [CPU], 1, native=native)
    assert [each["turns"] for each in describe(groups)[CPU.id].values()] == [expected]
    return [(case.identity.tunables["turns"], case.identity.profile) for case in groups[0].cases]


def test_a_run_takes_them_unless_it_names_profiles_or_is_told_not_to(own: Path, workloads: dict[str, Workload]) -> None:
    path = profiles.own_file(CPU)
    profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1)
    assert cases(workloads) == [(4, None)]
    assert cases(workloads, native=True) == [(64, None)]
    assert cases(workloads, profiles=["native", path.stem]) == [(64, None), (4, path.stem)]
    assert cases(workloads, tunables={"turns": [512]}) == [(512, None)]


@pytest.mark.parametrize(("n", "turns"), [(1, 4), (20_000, 4), (28_000, 4), (29_000, 512), (40_000, 512), (10**9, 512)])
def test_of_what_was_found_at_several_sizes_the_nearest_counts(
    own: Path, workloads: dict[str, Workload], n: int, turns: int
) -> None:
    path = profiles.own_file(CPU)
    for result in (TURNS, MORE):
        profiles.update(path, CPU, {tunable.VARIANT: result}, 1)
    assert [each.presets for each in load_profile(path).tuned["opencl:pocl"][tunable.VARIANT]] == [
        {"more": 1.0}, {"quick": 1.0},
    ]  # fmt: skip
    variant = workloads["tunable"].variant("double", "turns")
    assert Defaults(CPU).of("tunable", variant, {"n": n})["turns"] == turns
    assert Defaults(CPU, own=True).of("tunable", variant, {"n": n})["turns"] == 64
    sizes = {"presets": None, "parameters": {"n": [n]}}
    assert cases(workloads, said=turns, **sizes) == [(turns, None)]
    assert cases(workloads, said=64, profiles=["native", path.stem], **sizes) == [(64, None), (turns, path.stem)]


def test_that_the_code_s_defaults_stand_at_a_size_is_kept(own: Path, workloads: dict[str, Workload]) -> None:
    path = profiles.own_file(CPU)
    assert profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1) == [tunable.VARIANT]
    assert profiles.update(path, CPU, {tunable.VARIANT: STANDS}, 1) == [tunable.VARIANT]
    entries = load_profile(path).tuned["opencl:pocl"][tunable.VARIANT]
    assert [each.parameters for each in entries] == [{}, TURNS.parameters]
    assert entries[0].gain == Interval(value=1.0, low=1.0, high=1.0)
    variant = workloads["tunable"].variant("double", "turns")
    assert Defaults(CPU).of("tunable", variant, {"n": 40000})["turns"] == 64
    assert Defaults(CPU).of("tunable", variant, {"n": 20000})["turns"] == 4
    assert [row["tuned"] for row in device_rows([CPU])] == [f"1 by {path.stem}"]
    # a winner takes the place of what stood at its sizes, and nothing takes the place of a winner
    profiles.update(path, CPU, {tunable.VARIANT: MORE}, 1)
    assert profiles.update(path, CPU, {tunable.VARIANT: STANDS}, 1) == []
    assert profiles.update(own / "other.yaml", CPU, {tunable.VARIANT: STANDS}, 1) == [], "nor in another profile"
    assert not (own / "other.yaml").exists()
    entries = load_profile(path).tuned["opencl:pocl"][tunable.VARIANT]
    assert [each.parameters for each in entries] == [MORE.parameters, TURNS.parameters]


def test_a_winner_stays_in_a_profile_that_is_no_device_s_default_either(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.yaml"
    profiles.update(path, CPU, {tunable.VARIANT: MORE}, 1)
    profiles.update(path, CPU, {tunable.VARIANT: STANDS}, 1)
    (entry,) = load_profile(path).tuned["opencl:pocl"][tunable.VARIANT]
    assert entry.parameters == MORE.parameters


def test_an_entry_for_one_preset_comes_before_one_for_several(own: Path, workloads: dict[str, Workload]) -> None:
    path, variant = profiles.own_file(CPU), workloads["tunable"].variant("double", "turns")
    both = MORE.model_copy(update={"presets": {"more": 1.0, "quick": 3.0}})
    for result in (both, TURNS.model_copy(update={"presets": {"quick": 2.0}})):
        profiles.update(path, CPU, {tunable.VARIANT: result}, 1)
    assert Defaults(CPU).of("tunable", variant, QUICK)["turns"] == 4
    assert Defaults(CPU).of("tunable", variant, {"n": 40000})["turns"] == 512
    entries = load_profile(path).tuned["opencl:pocl"][tunable.VARIANT]
    assert [each.presets for each in entries] == [{"quick": 1.0}, both.presets], "the weight of one preset says nothing"


def test_without_a_size_each_entry_counts(own: Path) -> None:
    path = profiles.own_file(CPU)
    for result in (TURNS, MORE):
        profiles.update(path, CPU, {tunable.VARIANT: result}, 1)
    known = parameters_at(load_profile(path), tunable.VARIANT, "opencl:pocl", None)
    assert known == [MORE.parameters, TURNS.parameters]


@pytest.mark.parametrize(
    ("reason", "answer"),
    [(NOTHING_FASTER, {}), (DEFAULTS_BEST, {}), (WITHIN_NOISE, {}), ("the budget was too small to try any", None)],
)
def test_a_search_answers_where_it_could_compare(reason: str, answer: dict[str, int] | None) -> None:
    assert STANDS.model_copy(update={"reason": reason}).answer == answer
    assert TURNS.answer == TURNS.parameters


def test_editors_take_one_entry_or_a_list(own: Path) -> None:
    path, schema = profiles.own_file(CPU), DeviceProfile.model_json_schema()
    for result in (TURNS, MORE):
        profiles.update(path, CPU, {tunable.VARIANT: result}, 1)
        jsonschema.validate(yaml.safe_load(path.read_text()), schema)
    broken = yaml.safe_load(path.read_text())
    broken["tuned"]["opencl:pocl"][tunable.VARIANT] = "fast"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_two_entries_for_the_same_sizes_are_refused(own: Path) -> None:
    path = profiles.own_file(CPU)
    profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1)
    head, held = profiles.split(path.read_text(), path)
    one = held["opencl:pocl"][tunable.VARIANT]
    held["opencl:pocl"][tunable.VARIANT] = [one, {**one, "seed": 2}]
    path.write_text(profiles.joined(head, held))
    with pytest.raises(UsageError, match=r"expected one entry for each choice of presets, got two for \{quick: 1\}"):
        load_profile(path)


def test_another_driver_gets_the_nearest_family(own: Path) -> None:
    path = profiles.own_file(CPU)
    profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1)
    profile = load_profile(path)
    for family in ("opencl:intel", "cuda:nvidia"):
        assert parameters_at(profile, tunable.VARIANT, family, ANYWHERE) == [TURNS.parameters]
    assert parameters_at(profile, "w/p/v", "opencl:pocl", ANYWHERE) == [{}]


def test_a_broken_profile_of_the_user_is_named_and_left_out(own: Path, caplog: pytest.LogCaptureFixture) -> None:
    own.mkdir(parents=True)
    (own / "broken.yaml").write_text("name: 7\n")
    with caplog.at_level(logging.WARNING):
        assert tuned(CPU) == {}
    assert "broken.yaml" in caplog.text


def test_a_search_begins_with_what_is_known(own: Path, workloads: dict[str, Workload]) -> None:
    goal = Goal(workloads["tunable"], workloads["tunable"].variant("double", "turns"), OTHER, {"quick": 1.0})
    assert seeds(goal) == []
    profiles.update(profiles.own_file(CPU), CPU, {tunable.VARIANT: TURNS}, 1)
    odd = TURNS.model_copy(update={"parameters": {"turns": 300, "fault": "gone"}, "next": []})
    profiles.update(profiles.own_file(OTHER), OTHER, {tunable.VARIANT: odd}, 1)
    assert [config["turns"] for config in seeds(goal)] == [512, 4, 512]
    assert seeds(goal)[0]["fault"] == "none"


def test_a_value_in_a_profile_must_be_one(own: Path) -> None:
    path = profiles.own_file(CPU)
    profiles.update(path, CPU, {tunable.VARIANT: TURNS}, 1)
    content = yaml.safe_load(path.read_text())
    content["tuned"]["opencl:pocl"][tunable.VARIANT]["parameters"]["turns"] = [1]
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UsageError, match=r"tuned\.opencl:pocl\.tunable/double/turns\[0\]\.parameters\.turns"):
        load_profile(path)
