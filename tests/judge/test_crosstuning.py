"""The cross-tuning matrix: a variant's defaults and other devices' parameters, alike in all else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data

from perfport.judge import crosstuning
from perfport.judge.crosstuning import slowdowns
from perfport.measure.intervals import summarise
from perfport.model.device import DeviceInfo
from perfport.model.record import Record, Status
from perfport.report.pages.crosstuning import view
from perfport.run import plan
from perfport.run.defaults import describe
from perfport.run.experiment import Experiment
from perfport.store.collection import Collection
from perfport.workload import discover

DEFAULTS = {"group": 32, "unroll": True}
#: What profiles of the tests' own set: one a tunable of the variant, the other a macro alone.
PROFILES = {"hd7970": {"group": 64}, "gtx680": {"width": 4}}


@pytest.fixture(autouse=True)
def profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuning parameters for the tests' workload, which no shipped profile has."""
    monkeypatch.setattr(crosstuning, "parameters_of", lambda profile, identity: [PROFILES[profile]])


def environment() -> dict[str, Any]:
    """Return an environment that names the defaults of the tests' variant."""
    ids = (data.POCL, data.INTEL)
    return data.environment(ids, defaults={id_: {"demo/rows/tuned": DEFAULTS, "demo/rows/plain": {}} for id_ in ids})


def tuned(device: str, seconds: float = 0.02, **change: Any) -> Record:
    """Return a record of the variant on a CPU; keywords that are tunables replace its defaults."""
    own = {name: change.pop(name, value) for name, value in DEFAULTS.items()}
    return data.record("tuned", seconds, device=device, tunables=own, **change)


def records() -> list[Record]:
    """Return a variant with its own and two other devices' parameters, and one with its own alone.

    The fastest of all is an ablation, with the defaults of no device.
    """
    found = []
    for device, factor in ((data.POCL, 1.0), (data.INTEL, 2.0)):
        found += [
            tuned(device, 0.020, key=f"n{device}"),
            tuned(device, 0.010, key=f"o{device}", unroll=False),
            tuned(device, 0.020 * factor * 0.9, key=f"a{device}", group=64, profile="hd7970"),
            tuned(device, 0.012, key=f"x{device}", group=64, unroll=False, profile="hd7970"),
            tuned(device, key=f"b{device}", profile="gtx680", status=Status.UNSUPPORTED),
            data.record("plain", 0.020, key=f"p{device}", device=device),
        ]  # fmt: skip
    return found


def test_rows_differ_by_the_profile_alone(tmp_path: Path) -> None:
    """The defaults take 20 ms, an ablation 10, another device's parameters 18: these are ahead, by a tenth."""
    found = slowdowns(Collection([data.store(tmp_path / "run", records(), environment())]))
    assert {one.variant for one in found} == {"tuned"}
    by = {(one.profile, one.site.name): one for one in found}
    assert len(by) == len(found) == 6
    native, other, missing = (by[name, data.POCL] for name in ("native", "hd7970", "gtx680"))
    assert native.record.key == f"n{data.POCL}" and native.ratio
    assert native.ratio.value == pytest.approx(20 / 18, rel=0.02)
    assert native.ratio.low <= native.ratio.value <= native.ratio.high
    assert other.record.key == other.best.key == native.best.key == f"a{data.POCL}"
    assert other.ratio and other.ratio.value == 1.0
    assert missing.ratio is None and missing.status is Status.UNSUPPORTED
    assert by["native", data.INTEL].best.key == f"n{data.INTEL}"
    slow = by["hd7970", data.INTEL].ratio
    assert slow and slow.value == pytest.approx(1.8, rel=0.02)


def test_without_the_defaults_there_is_no_native_row(tmp_path: Path) -> None:
    """An ablation never stands for them."""
    left = [each for each in records() if not each.key.startswith("n")]
    found = slowdowns(Collection([data.store(tmp_path / "run", left, environment())]))
    assert {one.profile for one in found} == {"hd7970", "gtx680"}


def test_where_nobody_knows_the_defaults_there_is_no_matrix(tmp_path: Path) -> None:
    without = data.environment((data.POCL, data.INTEL))
    assert slowdowns(Collection([data.store(tmp_path / "run", records(), without)])) == []


def test_defaults_of_older_runs_are_todays(tmp_path: Path) -> None:
    """The committed runs do not say them; the variant's own say them for the device at hand."""
    found = discover(only="face_detection")["face_detection"]
    cls = found.variant("windows", "tuned")
    content = data.environment((data.POCL,))
    run = data.store(tmp_path / "run", [], content)
    info = DeviceInfo.model_validate(content["devices"][data.POCL])
    known = {name: t.default_for(info) for name, t in cls.tunables.items()}
    identity = data.record("tuned", workload="face_detection", problem="windows").identity
    identity = identity.model_copy(update={"tunables": dict.fromkeys(known, -1)})
    assert crosstuning.defaults(run, identity) == known
    left = identity.model_copy(update={"tunables": {name: -1 for name in known if name != "unroll"}})
    assert crosstuning.defaults(run, left) == {name: value for name, value in known.items() if name != "unroll"}, (
        "what did not exist was not chosen"
    )


def test_a_run_names_the_defaults_of_its_variants() -> None:
    found = discover(only="face_detection")
    info = DeviceInfo.model_validate(data.device(data.POCL))
    definition = Experiment.model_validate({
        "name": "x", "experiments": [
            {"workload": "face_detection", "problem": "windows", "presets": ["tiny"], "variants": ["tuned"],
             "tunables": {"unroll": [1]}},
        ],
    })  # fmt: skip
    groups = plan.make(definition, "x", found, [info], 1)
    (said,) = describe(groups)[data.POCL].values()
    assert said == {
        n: t.default_for(info) for n, t in found["face_detection"].variant("windows", "tuned").tunables.items()
    }
    assert groups[0].cases[0].identity.tunables["unroll"] == 1 != said["unroll"]


def test_view_has_the_numbers_and_a_heat_map(tmp_path: Path) -> None:
    collection = Collection([data.store(tmp_path / "run", records(), environment())])
    shown = view(collection)
    assert "`hd7970`" in shown.markdown and "unsupported" in shown.markdown
    (plot,) = shown.plots
    assert b"no result" in plot.content and b"slowdown" in plot.content
    slow = [row for row in shown.rows if row["slowdown"] and row["slowdown"] > 1]
    assert [(row["profile"], row["device"]) for row in slow] == [("hd7970", data.INTEL), ("native", data.POCL)]
    assert all(row["record"] != row["best record"] for row in slow)


def test_without_other_devices_parameters_there_is_no_matrix(tmp_path: Path) -> None:
    shown = view(Collection([data.store(tmp_path / "run", [data.record("a")])]))
    assert "No variant ran with the parameters" in shown.markdown and not shown.rows and not shown.plots


def test_the_fastest_of_equal_settings_makes_no_other_slower(tmp_path: Path) -> None:
    """Each of two settings is fast in half of its rounds: what one half chooses is slow in the other."""
    one, two = tuned(data.POCL, key="a"), tuned(data.POCL, key="b", group=64, profile="hd7970")
    assert one.timing and two.timing
    for record, halves in ((one, (0.010, 0.0201)), (two, (0.020, 0.0100))):
        assert record.timing
        record.timing.span = [halves[i >= 7] for i in range(15)]
        record.timing.summary["span"] = summarise(record.timing.span)
    found = slowdowns(Collection([data.store(tmp_path / "run", [one, two], environment())]))
    slower = next(each for each in found if each.record.key != each.best.key)
    assert slower.ratio and slower.ratio.value == pytest.approx(1.0) == slower.ratio.high


def test_portability_is_told_by_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device's own parameters are at the best; the code's are half as fast on one, one profile's on both."""
    whose = {data.POCL: "hd7970", data.INTEL: "gtx680"}
    monkeypatch.setattr(crosstuning, "_names", lambda profile, case: whose[case.site.name] == profile)
    times = {  # by device: the code's defaults, the first profile's, the second one's
        data.POCL: (0.040, 0.020, 0.080),
        data.INTEL: (0.020, 0.040, 0.020),
    }
    listed = []
    for device, (own, first, second) in times.items():
        listed += [
            tuned(device, own, key=f"n{device}", noise=0.0),
            tuned(device, first, key=f"a{device}", group=64, profile="hd7970", noise=0.0),
            tuned(device, second, key=f"b{device}", profile="gtx680", noise=0.0),
        ]
    run = data.store(tmp_path / "run", listed, environment())
    told = {each.parameters: each for each in crosstuning.by_parameters(slowdowns(Collection([run])))}
    expected = {crosstuning.DEFAULT: 2 / 3, crosstuning.TUNED: 1.0, "hd7970": 2 / 3, "gtx680": 0.4}
    assert told.keys() == expected.keys() and {each.sites for each in told.values()} == {2}
    for name, value in expected.items():
        assert told[name].application.value == pytest.approx(value, rel=0.01), name
        bound = told[name].architectural
        assert bound and 0 < bound.value < 1
    page = view(Collection([run])).markdown
    assert "## Portability by parameters" in page and "each device's own" in page
