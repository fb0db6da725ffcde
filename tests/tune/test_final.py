"""The winner among finalists: by fresh workers' records alone, and only beyond the interval of its gain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import report_data as data
import tunable_workload as tunable

from perfport.model.device import DeviceInfo
from perfport.model.record import Interval, Record, Status
from perfport.tune import final
from perfport.tune.final import SEARCHES, WORKERS, Finalists, groups, result
from perfport.tune.log import Trial
from perfport.tune.standing import Standing
from perfport.tune.target import Goal
from perfport.workload import discover

CPU = DeviceInfo.model_validate(data.device(data.POCL))
DEFAULT = {"turns": 64, "fault": "none"}
FAST, OTHER = {"turns": 4, "fault": "none"}, {"turns": 512, "fault": "none"}


def finalists(folder: Path, **presets: float) -> Finalists:
    workloads = discover([tunable.write(folder)])
    goal = Goal(workloads["tunable"], workloads["tunable"].variant("double", "turns"), CPU, presets or {"quick": 1.0})
    return Finalists(goal, (DEFAULT, FAST, OTHER), 7)


def record(config: dict[str, Any], seconds: float, **change: Any) -> Record:
    named = {"workload": "tunable", "problem": "double", "preset": "quick", "tunables": config, **change}
    key = f"{config}{named['preset']}"
    return data.record("turns", seconds, key=key, **named)


def test_groups_hold_the_finalists_at_every_size(tmp_path: Path) -> None:
    planned = groups([finalists(tmp_path, quick=1.0, more=1.0)], 1, "warm", 9.0)
    assert [group.preset for group in planned] == ["quick", "more"]
    assert all(group.workers == WORKERS and group.targets.cache == "warm" for group in planned)
    assert [case.identity.tunables for case in planned[0].cases] == [DEFAULT, FAST, OTHER]
    assert len({case.key for group in planned for case in group.cases}) == 6
    assert planned[0].cases[1].defaults == DEFAULT and planned[0].cases[0].identity.profile is None


def test_a_few_searches_of_a_problem_share_a_group(tmp_path: Path) -> None:
    """So that inputs and references are made once for them; their buffers have to fit side by side."""
    one = finalists(tmp_path, quick=1.0, more=1.0)
    names = [f"turns_{number}" for number in range(SEARCHES + 1)]
    among = [replace(one, goal=replace(one.goal, variant=type(n, (one.goal.variant,), {"name": n}))) for n in names]
    planned = groups(among, 1, "warm", 9.0)
    held = [(group.preset, sorted({case.identity.variant for case in group.cases})) for group in planned]
    expected = [names[:SEARCHES], names[SEARCHES:]]
    assert held == [(preset, variants) for preset in ("quick", "more") for variants in expected]
    assert [len(group.cases) for group in planned] == [3 * SEARCHES, 3] * 2


@pytest.mark.parametrize(
    ("relative", "chosen"), [(0.5, True), (0.985, True), (0.995, False), (1.2, False), (None, False)]
)
def test_only_a_gain_that_is_worth_it_is_measured_again(tmp_path: Path, relative: float | None, chosen: bool) -> None:
    goal, standing = finalists(tmp_path).goal, Standing({"quick": 1.0}, "mean")
    for config, value in ((DEFAULT, 1.0), (FAST, relative)):
        status = Status.OK if value else Status.WRONG
        named = {"device": CPU.id, "variant": tunable.VARIANT, "preset": "quick"}
        standing.add(Trial(**named, config=config, status=status, relative=value, seconds=value))
    found = final.finalists(SimpleNamespace(goal=goal, standing=standing, tried=2, held=DEFAULT))  # type: ignore
    assert (found.configs if found else None) == ((DEFAULT, FAST) if chosen else None)
    assert final.finalists(SimpleNamespace(goal=goal, standing=Standing({"quick": 1.0}, "mean"))) is None  # type: ignore


@pytest.mark.parametrize(("low", "chosen"), [(0.69, False), (0.51, False), (0.49, True)])
def test_what_its_samples_showed_to_be_slower_is_not_measured_again(tmp_path: Path, low: float, chosen: bool) -> None:
    goal, standing = finalists(tmp_path).goal, Standing({"quick": 1.0}, "mean")
    for config, value, least in ((DEFAULT, 1.0, 1.0), (FAST, 0.5, 0.49), (OTHER, 0.7, low)):
        named = {"device": CPU.id, "variant": tunable.VARIANT, "preset": "quick"}
        interval = Interval(value=value, low=least, high=2 * value - least)
        standing.add(Trial(**named, config=config, status=Status.OK, relative=value, seconds=value, ratio=interval))
    found = final.finalists(SimpleNamespace(goal=goal, standing=standing, tried=3, held=DEFAULT))  # type: ignore
    assert found and found.configs == ((DEFAULT, FAST, OTHER) if chosen else (DEFAULT, FAST))
    assert found.slower == (() if chosen else (OTHER,))
    records = [record(DEFAULT, 0.05), record(FAST, 0.025), *([record(OTHER, 0.035)] if chosen else [])]
    won = result(found, records, "mean")
    assert won.parameters == FAST and won.next == [OTHER]


@pytest.mark.parametrize(
    ("relative", "chosen"), [(0.9, True), (1.5, True), (0.995, False), (1.005, False), (None, False)]
)
def test_what_the_profile_has_is_measured_again_where_it_differs(
    tmp_path: Path, relative: float | None, chosen: bool
) -> None:
    """Also where it is not among the best of the search: the profile is to lose nothing by what is written."""
    goal, standing = finalists(tmp_path).goal, Standing({"quick": 1.0}, "mean")
    others = [{"turns": 64, "fault": name} for name in "abcdefg"]
    for number, (config, value) in enumerate(
        ((DEFAULT, 1.0), *((other, 0.9999) for other in others), (OTHER, relative))
    ):
        status = Status.OK if value else Status.WRONG
        named = {"device": CPU.id, "variant": tunable.VARIANT, "preset": "quick"}
        standing.add(Trial(**named, config=config, status=status, relative=value, seconds=value or number))
    found = final.finalists(SimpleNamespace(goal=goal, standing=standing, tried=2, held=OTHER))  # type: ignore
    assert (found is not None) is chosen
    if found:
        assert OTHER in found.configs and found.held == OTHER and found.configs[0] == DEFAULT
        assert len(found.configs) == len({repr(config) for config in found.configs})


def test_what_is_gained_over_the_profile_is_told(tmp_path: Path) -> None:
    each = replace(finalists(tmp_path), held=OTHER)
    won = result(each, [record(DEFAULT, 0.050), record(FAST, 0.025), record(OTHER, 0.040)], "mean")
    assert won.parameters == FAST and won.over_profile and won.over_profile.value == pytest.approx(1.6, rel=0.03)
    stands = result(each, [record(DEFAULT, 0.025), record(FAST, 0.050), record(OTHER, 0.040)], "mean")
    assert stands.answer == {} and stands.over_profile and stands.over_profile.value == pytest.approx(1.6, rel=0.03)
    kept = result(each, [record(DEFAULT, 0.050), record(FAST, 0.040), record(OTHER, 0.025)], "mean")
    assert kept.parameters == OTHER and kept.over_profile and kept.over_profile.value == pytest.approx(1.0)
    unknown = result(each, [record(DEFAULT, 0.050), record(FAST, 0.025)], "mean")
    assert unknown.parameters == FAST and unknown.over_profile is None
    assert result(finalists(tmp_path / "b"), [record(DEFAULT, 0.05), record(FAST, 0.025)], "mean").over_profile is None


def test_the_fastest_wins_by_its_gain(tmp_path: Path) -> None:
    known = [record(DEFAULT, 0.050), record(FAST, 0.025), record(OTHER, 0.040)]
    won = result(finalists(tmp_path), known, "mean")
    assert won.parameters == FAST and won.next == [OTHER] and (won.tried, won.of) == (7, 18)
    assert won.gain and won.gain.low > 1.9 and won.gain.value == pytest.approx(2, rel=0.03)
    assert won.share == pytest.approx(known[1].problem_bound.share.value)  # type: ignore[union-attr]


def test_what_a_search_that_went_on_no_longer_has_among_its_best_does_not_take_part(tmp_path: Path) -> None:
    each = finalists(tmp_path)
    known = [record(DEFAULT, 0.050), record(FAST, 0.020), record(OTHER, 0.040)]
    without = Finalists(each.goal, (DEFAULT, OTHER), 9)
    won = result(without, known, "mean")
    assert won.parameters == OTHER and won.next == []
    with_default = Finalists(each.goal, (DEFAULT, FAST), 9)
    assert result(with_default, known, "mean").next == []


def test_a_gain_within_its_interval_is_none(tmp_path: Path) -> None:
    known = [record(DEFAULT, 0.0500, noise=0.2), record(FAST, 0.0495, noise=0.2), record(OTHER, 0.09)]
    won = result(finalists(tmp_path), known, "mean")
    assert won.parameters is None and won.reason in (
        "no gain beyond its interval",
        "the code's defaults are the best of the finalists",
    )


@pytest.mark.parametrize("status", [Status.WRONG, Status.CONTENDED, Status.CRASHED])
def test_what_may_not_be_ranked_neither_wins_nor_is_compared_with(tmp_path: Path, status: Status) -> None:
    fast = [record(DEFAULT, 0.050), record(FAST, 0.01, status=status), record(OTHER, 0.025)]
    assert result(finalists(tmp_path / "a"), fast, "mean").parameters == OTHER
    default = [record(DEFAULT, 0.050, status=status), record(FAST, 0.01)]
    lost = result(finalists(tmp_path / "b"), default, "mean")
    assert lost.parameters is None and "the code's defaults have no result" in lost.reason


@pytest.mark.parametrize(
    ("others", "answer"),
    [
        ([record(FAST, 0.01, status=Status.CONTENDED)], None),
        ([record(FAST, 0.01, status=Status.CONTENDED), record(OTHER, 0.06)], None),
        ([record(FAST, 0.06)], None),  # of the other finalist there is no record
        ([record(FAST, 0.01, status=Status.WRONG), record(OTHER, 0.06)], {}),
        ([record(FAST, 0.06), record(OTHER, 0.06)], {}),
    ],
)
def test_where_a_finalist_was_disturbed_the_defaults_are_no_answer(
    tmp_path: Path, others: list[Record], answer: dict[str, Any] | None
) -> None:
    """That they stand is an answer, and goes into the profile: what was disturbed may well be faster."""
    found = result(finalists(tmp_path), [record(DEFAULT, 0.050), *others], "mean")
    assert found.answer == answer and (found.reason == final.DISTURBED) == (answer is None)


def test_over_several_sizes_the_mean_or_the_worst_decides(tmp_path: Path) -> None:
    seconds = {"quick": (0.050, 0.0125, 0.030), "more": (0.050, 0.060, 0.030)}
    known = [
        record(config, time, preset=preset, parameters={**data.SIZES, "points": len(preset)})
        for preset, times in seconds.items()
        for config, time in zip((DEFAULT, FAST, OTHER), times, strict=True)
    ]
    each = finalists(tmp_path, quick=1.0, more=1.0)
    assert result(each, known, "mean").parameters == FAST
    assert result(each, known, "worst").parameters == FAST
    heavy = Finalists(Goal(each.goal.workload, each.goal.variant, CPU, {"quick": 1.0, "more": 9.0}), each.configs, 7)
    won = result(heavy, known, "mean")
    assert won.parameters == OTHER and won.gain and won.gain.value == pytest.approx(5 / 3, rel=0.03)


def test_a_size_without_a_result_rules_a_configuration_out(tmp_path: Path) -> None:
    known = [
        record(config, 0.05 if config is DEFAULT else 0.06, preset=preset)
        for config in (DEFAULT, OTHER)
        for preset in ("quick", "more")
    ]
    known.append(record(FAST, 0.01))
    won = result(finalists(tmp_path, quick=1.0, more=1.0), known, "mean")
    assert won.parameters is None and won.reason == "the code's defaults are the best of the finalists"
