"""The matrix: how many cases, in which groups, and what changes a case's key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from perfport import workload
from perfport.model.device import DeviceInfo
from perfport.model.errors import InfrastructureError, UsageError
from perfport.run import keys, plan
from perfport.run.cases import Case, Group
from perfport.run.experiment import Experiment
from perfport.run.plan import select_devices

LIMITS = {
    "compute_units": 4,
    "memory_bytes": 1 << 30,
    "max_alloc_bytes": 1 << 28,
    "local_memory_bytes": 1 << 15,
    "max_work_group": 256,
}
WORKLOADS = workload.discover()


def info(identifier: str, kind: str = "cpu", **change: Any) -> DeviceInfo:
    backend = identifier.split(":")[0]
    fields = {
        "id": identifier,
        "backend": backend,
        "platform": "P",
        "name": "N",
        "chip": "c",
        "kind": kind,
        "driver": "1",
    }
    return DeviceInfo.model_validate({**fields, **LIMITS, **change})


POCL, INTEL, GPU = info("opencl:pocl:0"), info("opencl:intel:0"), info("cuda:nvidia:0", "gpu")


def study(**change: Any) -> dict[str, Any]:
    return {"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"], "variants": ["vectorized"], **change}


def groups(
    *studies: dict[str, Any],
    devices: tuple[DeviceInfo, ...] = (POCL,),
    seed: int = 1,
    patterns: Sequence[str] = (),
    **keys: Any,
) -> list[Group]:
    experiment = Experiment.model_validate({"name": "e", "experiments": list(studies), **keys})
    return plan.make(experiment, "e.yaml", WORKLOADS, list(devices), seed, patterns=patterns)


def cases(*args: Any, **keys: Any) -> list[Case]:
    return [case for group in groups(*args, **keys) for case in group.cases]


def test_axes_multiply() -> None:
    found = groups(
        study(
            presets=["tiny", "quick"], variants=["vectorized", "image", "row_streams"], tunables={"group": [32, 64]},
            parameters={"mean": [0.0, 1.0, 2.0]},
        ),
        devices=(POCL, GPU),
    )  # fmt: skip
    assert len(found) == 2 * 2 * 3, "one group per device, preset and parameters"
    assert {len(group.cases) for group in found} == {6}
    assert [group.device.id for group in found] == [POCL.id] * 6 + [GPU.id] * 6
    keys = [case.key for group in found for case in group.cases]
    assert len(set(keys)) == len(keys)


def test_all_variants_by_default_and_a_pattern_narrows() -> None:
    every = cases({"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"]})
    assert {case.identity.variant for case in every} == set(WORKLOADS["svm_rbf"].variants["rbf_rows"])
    some = cases({"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"]}, patterns=["rows/column_major"])
    assert {case.identity.variant for case in some} == {
        "column_major", "column_major_unpadded", "column_major_recomputed"
    }  # fmt: skip
    assert {case.key for case in some} < {case.key for case in every}, "a filter changes no key"


def test_patterns_add_up_and_each_has_to_name_something() -> None:
    ladder = {"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"]}
    some = cases(ladder, patterns=["rows/vectorized_points", "local_", "rows/local"])
    assert sorted(case.identity.variant for case in some) == ["local_memory", "vectorized_points"]
    with pytest.raises(UsageError, match="no case is left by -b 'rows/lokal'"):
        cases(ladder, patterns=["rows/vectorized", "rows/lokal"])


def test_all_mistakes_are_told_at_once_a_line_each() -> None:
    """Names of variants and presets in every entry; then the values of every entry."""
    with pytest.raises(UsageError) as names:
        cases(study(variants=["colum_major", "imaje"], presets=["tinny"]), study(), study(workload="svm"))
    assert [line.split(": ")[1:3] for line in str(names.value).splitlines()] == [
        ["experiments[0].variants", "unknown variant 'colum_major' (did you mean 'column_major'?); allowed"],
        ["experiments[0].variants", "unknown variant 'imaje' (did you mean 'image'?); allowed"],
        ["experiments[0].presets", "unknown preset 'tinny' (did you mean 'tiny'?); allowed"],
        ["experiments[2].workload", "unknown workload 'svm' (did you mean 'svm_rbf'?); allowed"],
    ]
    with pytest.raises(UsageError) as values:
        cases(study(parameters={"points": -1}), study(), study(parameters={"pints": 3}))
    lines = str(values.value).splitlines()
    assert len(lines) == 2 and "experiments[0].parameters.points" in lines[0] and "[2].parameters.pints" in lines[1]


def test_tunables_default_by_kind_of_device() -> None:
    (cpu,), (gpu,) = cases(study(), devices=(POCL,)), cases(study(), devices=(GPU,))
    assert (cpu.identity.tunables, gpu.identity.tunables) == ({"group": 64}, {"group": 256})


def test_a_tunable_is_an_axis_only_where_a_variant_has_it() -> None:
    found = cases(study(variants=["vectorized", "cooperative_rows"], tunables={"lanes": [8, 16, 32]}))
    assert [case.identity.variant for case in found] == ["vectorized"] + ["cooperative_rows"] * 3


def test_a_value_has_to_be_one_of_every_variant_that_has_the_tunable() -> None:
    """Peers have tunables of one name with values of their own."""
    known = workload.discover()["svm_rbf"].variants["rbf_rows"]
    first, second = (known[name].tunables["form"].values for name in ("torch_cpu", "torch_gemm"))
    assert not set(first) & set(second)
    for variants in (["torch_cpu", "torch_gemm"], ["torch_gemm", "torch_cpu"]):
        with pytest.raises(
            UsageError, match=f"form: '{first[0]}' is not allowed for torch_gemm; allowed: .*{second[0]}"
        ):
            cases(study(variants=variants, tunables={"form": [first[0]]}))


def test_profiles_are_compiled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "parameters_for", lambda profile, workload: {"group": 32, "pitch_multiple": 16})
    native, profiled = cases(study(variants=["column_major"], profiles=["native", "hd7970"]))
    assert (native.identity.profile, native.identity.tunables, native.macros) == (None, {"group": 64}, {})
    assert (profiled.identity.profile, profiled.identity.tunables) == ("hd7970", {"group": 32})
    assert profiled.macros == {"pitch_multiple": 16} and native.key != profiled.key
    (later,) = cases(study(variants=["column_major"], profiles=["titan_xp"]))
    assert later.identity.profile == "titan_xp", "whatever its name"


def test_too_many_cases_name_the_entry_that_has_most_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_CASES", 5)
    small = study(variants=["column_major"])
    large = study(variants=["column_major", "row_major"], tunables={"group": [32, 64, 128]})
    with pytest.raises(UsageError, match=r"experiments\[1\]: 6 variants with their tunables; 7 cases in all, .* 5 in"):
        cases(small, large)  # an axis of one value multiplies nothing, and is not named


def test_the_same_case_twice_is_one_case() -> None:
    assert len(cases(study(), study())) == 1
    assert len(cases(study(), study(variants=["vectorized", "image"]))) == 2
    assert len(groups(study(), study(variants=["image"]))) == 1, "compared in one group"
    assert len(groups(study(), study(variants=["image"], measurement={"cache": "warm"}))) == 2


def test_targets_and_timeouts_of_a_study_override() -> None:
    one, two = groups(
        study(), study(problem="arg_extrema", variants=None, measurement={"max_noise": 0.5}, timeout=3),
        measurement={"max_noise": 0.1, "max_samples": 99}, timeout=50,
    )  # fmt: skip
    assert (one.targets.max_noise, one.targets.max_samples, one.timeout) == (0.1, 99, 50)
    assert (two.targets.max_noise, two.targets.max_samples, two.timeout) == (0.5, 99, 3)


def key(device: DeviceInfo = POCL, seed: int = 1, **change: Any) -> str:
    (case,) = cases(study(**change), devices=(device,), seed=seed)
    return case.key


def test_data_that_decide_the_time_are_timed_on_several_instances() -> None:
    drawn = {"workload": "face_detection", "problem": "windows", "presets": ["tiny"], "variants": ["tuned"]}
    (values,), (data,) = groups(study()), groups(drawn)
    assert (values.inputs, values.seed) == ({"a": 1}, 1)
    assert (data.inputs, data.seed) == ({"a": 1, "b": 1001, "c": 2001}, 1)
    assert {case.identity.inputs["c"] for case in data.cases} == {2001}
    (five,), (two,) = groups(drawn, instances=5, seed=9), groups({**drawn, "instances": 2}, instances=5)
    assert (list(five.inputs.values()), list(two.inputs)) == ([9, 1009, 2009, 3009, 4009], ["a", "b"])
    assert len({case.key for group in (data, five, two) for case in group.cases}) == 3
    photograph = {**drawn, "presets": ["astronaut"]}
    assert groups(photograph)[0].inputs == {"a": 1}, "an image from a file is what it is"


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2}, {"device": INTEL}, {"device": info(POCL.id, driver="2")}, {"device": info(POCL.id, chip="d")},
        {"presets": ["quick"]}, {"parameters": {"mean": 1.0}}, {"variants": ["image"]}, {"tunables": {"group": [32]}},
        {"profiles": ["hd7970"]},
    ],
)  # fmt: skip
def test_what_can_change_a_result_changes_the_key(other: dict[str, Any]) -> None:
    assert key(**other) != key()


def test_keys_are_stable_and_change_with_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    assert before == key(measurement={"max_noise": 0.5}), "how long it is sampled does not change what is run"
    monkeypatch.setattr(keys, "harness_digest", lambda: "another harness")
    changed = key()
    monkeypatch.setattr(workload.Workload, "source_digest", lambda self: "another workload")
    assert len({before, changed, key()}) == 3


def test_selectors() -> None:
    broken = info("opencl:broken:0", healthy=False, reason="planted")
    every = [POCL, INTEL, broken, GPU]

    def chosen(*selectors: str) -> list[str]:
        return [device.id for device in select_devices(selectors, every, "-d")]

    assert chosen("all") == [POCL.id, INTEL.id, GPU.id]
    assert chosen("gpu", "opencl:pocl:0") == [POCL.id, GPU.id], "in discovery's order, each once"
    assert chosen("cpu", "pocl") == [POCL.id, INTEL.id]
    assert chosen("opencl:intel") == [INTEL.id] and chosen("INTEL") == [INTEL.id]
    assert chosen("broken") == []
    with pytest.raises(UsageError, match=r"'opencl:pocl:00'.*did you mean 'opencl:pocl:0'"):
        chosen("opencl:pocl:00")


@pytest.mark.parametrize("selector", ["all", "cpu", "gpu"])
def test_classes_of_devices_may_be_empty(selector: str) -> None:
    assert select_devices([selector], [], "-d") == []


def test_a_bad_measurement_of_a_study_is_named() -> None:
    with pytest.raises(UsageError, match=r"experiments\[0\]\.measurement\.min_samples"):
        groups(study(measurement={"min_samples": 1}))


def test_title_says_what_where() -> None:
    (by_preset,) = groups(study())
    (by_size,) = groups(study(presets=None, parameters={"points": 5, "dims": 3}))
    assert by_preset.title == "svm_rbf/rbf_rows (tiny) on opencl:pocl:0"
    assert "points=5, dims=3" in by_size.title


def test_an_entry_for_some_devices() -> None:
    both = [study(devices=["cpu"]), study(presets=["quick"], devices=["gpu"])]
    found = groups(*both, devices=(POCL, GPU, INTEL), workers=3)
    assert [(group.device.id, group.preset, group.workers) for group in found] == [
        (POCL.id, "tiny", 3), (GPU.id, "quick", 3), (INTEL.id, "tiny", 3),
    ]  # fmt: skip
    assert [group.device.id for group in groups(*both)] == [POCL.id], "an entry may name no device of this machine"


def test_each_planned_case_is_held_by_its_entry() -> None:
    entries = [
        study(presets=["tiny"], check={"threshold": 0.1}),
        study(presets=["quick"], profiles=["native", "hd5870"], tunables={"group": [32, 64]}),
        study(parameters={"mean": [0.0, 1.0]}, variants=["image"]),
    ]
    experiment = Experiment.model_validate({"name": "e", "experiments": entries, "check": {"threshold": 0.03}})
    for number, entry in enumerate(experiment.experiments):
        for case in cases(entries[number]):
            assert experiment.study(case.identity) is entry
            assert experiment.checked(case.identity).threshold == (0.1 if number == 0 else 0.03)
    (other,) = cases(study(variants=["row_major"]))
    assert experiment.study(other.identity) is None
    assert not experiment.experiments[1].holds(
        cases(entries[1])[0].identity.model_copy(update={"tunables": {"group": 128}})
    )


def test_of_a_runtime_that_was_lost_nobody_knows_the_devices() -> None:
    unlisted: dict[str, Any] = {"platform": "intel-pip", "compute_units": 0, "healthy": False, "lost": True}
    lost = info("opencl:intel-pip:0", **unlisted, reason="killed by signal 9")
    for selector in ("opencl:intel:0", "OPENCL:Intel:1", "opencl:intel", "opencl:acme:0", "xeon"):
        with pytest.raises(InfrastructureError, match=f"-d: '{selector}' may be of what did not list[^$]*signal 9"):
            select_devices([selector], [POCL, lost], "-d")
    for selector in ("opencl:pocl:7", "cuda:intel:0"):
        with pytest.raises(UsageError, match=f"-d: no device matches '{selector}'"):
            select_devices([selector], [POCL, lost], "-d")
    assert select_devices(["all"], [POCL, lost], "-d") == [POCL]


def test_a_runtime_that_cannot_be_loaded_is_asked_for_by_its_name() -> None:
    unlisted: dict[str, Any] = {"platform": "nvidia-driver", "compute_units": 0, "healthy": False}
    absent = info("opencl:nvidia-driver:0", **unlisted, runtime="/lib64/libnvidia-opencl.so.1", reason="no device")
    with pytest.raises(InfrastructureError, match="may be of what did not list"):
        select_devices(["opencl:nvidia:0"], [POCL, absent], "-d")
    with pytest.raises(UsageError, match=r"no device matches 'opencl:pcl:0' \(did you mean 'opencl:pocl:0'\?\)"):
        select_devices(["opencl:pcl:0"], [POCL, absent], "-d")
