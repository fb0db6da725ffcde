"""`perfport check`: verdicts, what is worse than slow, what is no alarm, thresholds, exit codes, summary and JUnit."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import report_data as data
from check_data import VARIANTS, case, finding, outcomes, runs, store

from perfport.model.record import Failure, Record, Status
from perfport.nightly.base import AgainstNights, AgainstRun
from perfport.nightly.check import controls, judge, suspects
from perfport.nightly.finding import Outcome
from perfport.nightly.history import History, add
from perfport.store.results import Run


def test_faster_slower_same(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v1": 0.0525, "v2": 0.04, "v3": 0.0503})
    judgement = judge(run, AgainstRun(base, run))
    found = outcomes(judgement)
    assert (found["v1"], found["v2"]) == (Outcome.SLOWER, Outcome.FASTER)
    assert {found[name] for name in ("v0", "v3", "v4", "v5", "v6", "v7")} == {Outcome.SAME}
    assert judgement.findings[0].place.variant == "v1", "the worst first"
    slower = finding(judgement, "v1")
    assert slower.ratio and slower.ratio.low < 1 / 1.05 < slower.ratio.high < 1
    assert slower.before == pytest.approx(0.05, rel=0.01) and slower.now == pytest.approx(0.0525, rel=0.01)


@pytest.mark.parametrize("nights", [False, True])
def test_other_inputs_are_said_and_not_judged(tmp_path: Path, nights: bool) -> None:
    """For work that depends on its data, other inputs are other work: five times slower means nothing."""

    def drawn(record: Record, seed: int) -> Record:
        inputs = {"a": seed, "b": seed + 1000}
        return record.model_copy(update={"identity": record.identity.model_copy(update={"inputs": inputs})})

    earlier = [
        store(tmp_path / f"n{i}", [drawn(case(v, seed=i), 1) for v in VARIANTS], i + 1)
        for i in range(4 if nights else 1)
    ]
    tonight = [drawn(case(v, 0.25, seed=9), 4 if v in VARIANTS[:2] else 1) for v in VARIANTS]
    run = store(tmp_path / "now", tonight, 9)
    history = tmp_path / "history"
    for one in earlier:
        add(one, history)
    against = AgainstNights(History(history), run, 7) if nights else AgainstRun(earlier[0], run)
    judgement = judge(run, against)
    found = outcomes(judgement)
    assert {found[v] for v in VARIANTS[:2]} == {Outcome.CHANGED} and {found[v] for v in VARIANTS[2:]} == {
        Outcome.SLOWER
    }
    assert finding(judgement, "v0").why == "inputs of seeds 4, 1004, before of seeds 1, 1001: not compared"


@pytest.mark.parametrize("before", [{}, {"a": 1}])
def test_nights_on_other_inputs_have_not_vanished(tmp_path: Path, before: dict[str, int]) -> None:
    """Also on the second night on new inputs, when their series is in the history."""

    def night(number: int, inputs: dict[str, int]) -> Run:
        records = [case(v, seed=number) for v in VARIANTS]
        made = [r.model_copy(update={"identity": r.identity.model_copy(update={"inputs": inputs})}) for r in records]
        return store(tmp_path / f"n{number}", made, number)

    history = tmp_path / "history"
    for number in (1, 2, 3):
        add(night(number, before), history)
    add(night(4, {"a": 9}), history)
    judgement = judge(run := night(5, {"a": 9}), AgainstNights(History(history), run, 7))
    assert set(outcomes(judgement).values()) == {Outcome.CANNOT_TELL} and not judgement.of(Outcome.VANISHED)


def test_worse_than_slow_comes_first(tmp_path: Path) -> None:
    now = {
        "v1": data.record("v1", status=Status.CRASHED), "v2": data.record("v2", status=Status.WRONG), "v3": None,
        "v4": data.record("v4", status=Status.UNAVAILABLE), "v5": 0.09, "new": 0.05,
    }  # fmt: skip
    base, run = runs(tmp_path, now)
    judgement = judge(run, AgainstRun(base, run))
    listed = [(found.place.variant, found.outcome.value) for found in judgement.findings[:5]]
    assert listed == [("v2", "wrong"), ("v3", "vanished"), ("v1", "failed"), ("v4", "failed"), ("v5", "slower")]
    assert outcomes(judgement)["new"] is Outcome.NEW


def test_what_failed_before_is_no_new_alarm_but_wrong_is(tmp_path: Path) -> None:
    bad = [data.record("v0", status=Status.CRASHED), data.record("v1", status=Status.WRONG)]
    base = store(tmp_path / "base", [*bad, *(case(v, seed=1) for v in VARIANTS[2:])])
    run = store(tmp_path / "now", [*bad, *(case(v, seed=2) for v in VARIANTS[2:])], 1)
    found = outcomes(judge(run, AgainstRun(base, run)))
    assert (found["v0"], found["v1"]) == (Outcome.NO_RESULT, Outcome.WRONG)


def test_a_case_that_left_the_experiment_has_not_vanished(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v3": None}, check={"variants": [v for v in VARIANTS if v != "v3"]})
    judgement = judge(run, AgainstRun(base, run))
    assert finding(judgement, "v3").why == "no longer in the experiment"
    assert outcomes(judgement)["v3"] is Outcome.NO_RESULT


def test_another_default_is_a_new_series(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v3": case("v3", 0.08, tunables={"group": 128})})
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v3"] is Outcome.CHANGED and not judgement.of(Outcome.VANISHED)


def test_the_nights_after_another_default_miss_no_case(tmp_path: Path) -> None:
    """But what stood beside another value of the tunable, and does no longer, has vanished."""

    def night(number: int, *groups: int) -> Run:
        made = [case("v3", seed=number, tunables={"group": group}) for group in groups]
        return store(tmp_path / f"n{number}", [*(case(v, seed=number) for v in VARIANTS if v != "v3"), *made], number)

    for number, group in enumerate((64, 64, 64, 128)):
        add(night(number, group), tmp_path / "h")
    for number, group, why in ((4, 128, "1 night of this series"), (5, 64, "compared with 3 nights")):
        run = night(number, group)
        judgement = judge(run, AgainstNights(History(tmp_path / "h"), run, 7))
        assert len(judgement.findings) == len(VARIANTS) and why in finding(judgement, "v3").why
    add(night(6, 64, 128), tmp_path / "h")
    run = night(7, 128)
    judgement = judge(run, AgainstNights(History(tmp_path / "h"), run, 7))
    assert [found.place.tunables for found in judgement.of(Outcome.VANISHED)] == [{"group": 64}]


def test_thresholds_of_the_experiment_and_of_an_entry(tmp_path: Path) -> None:
    for name, keys in (("a", {"check": {"check": {"threshold": 0.2}}}), ("b", {})):
        base, run = runs(tmp_path / name, {"v1": 0.055}, **keys)
        slower = judge(run, AgainstRun(base, run)).of(Outcome.SLOWER)
        assert bool(slower) == (name == "b")


def test_fewer_than_three_workers_are_no_verdict(tmp_path: Path) -> None:
    base = store(tmp_path / "base", [case(v, seed=1, workers=1) for v in VARIANTS])
    run = store(tmp_path / "now", [case(v, 0.1, seed=2) for v in VARIANTS], 1)
    judgement = judge(run, AgainstRun(base, run))
    assert set(outcomes(judgement).values()) == {Outcome.CANNOT_TELL}
    assert "1 fresh workers; 3 on each side are needed" in judgement.findings[0].why


def test_contended_is_no_verdict(tmp_path: Path) -> None:
    slow = case("v1", 0.2).model_copy(update={"status": Status.CONTENDED, "failure": Failure(reason="others")})
    base, run = runs(tmp_path, {"v1": slow})
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v1"] is Outcome.CANNOT_TELL and "contended: others" in finding(judgement, "v1").why
    turned = judge(base, AgainstRun(run, base))
    assert [finding(each, "v1").without for each in (judgement, turned)] == ["contended"] * 2, "here, or in the base"
    again = judge(base, AgainstRun(base, base), {finding(turned, "v1").record.key: slow})
    assert finding(again, "v1").without == "contended", "the second time"


def test_what_is_measured_again_counts_together(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v1": case("v1", 0.0515, noise=0.01, seed=5)})
    against = AgainstRun(base, run)
    wanted = suspects(judge(run, against), 5)
    assert [record.identity.variant for record in wanted] == ["v1"]
    (key,) = [record.key for record in wanted]
    calm = judge(run, against, {key: case("v1", 0.05, seed=6, workers=5)})
    assert not calm.of(Outcome.SLOWER) and finding(calm, "v1").again == 5 and not suspects(calm, 5)
    real = judge(run, against, {key: case("v1", 0.0525, seed=7, workers=5)})
    assert outcomes(real)["v1"] is Outcome.SLOWER and "5 workers measured it again" in finding(real, "v1").why
    wrong = judge(run, against, {key: data.record("v1", status=Status.WRONG)})
    assert outcomes(wrong)["v1"] is Outcome.WRONG


def test_a_new_driver_is_named_and_judged_against_a_run(tmp_path: Path) -> None:
    """What changed is what one compares two runs for; nights before the change are no base."""
    base, run = runs(tmp_path, {"v1": 0.06}, driver="4.0")
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v1"] is Outcome.SLOWER and "since driver 3.1 -> 4.0" in finding(judgement, "v1").why
    assert set(judgement.shifts.values()) == {0.0}, "a change of everything is no shift of the machine"


def test_a_machine_that_is_slower_as_a_whole_is_no_alarm(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {**dict.fromkeys(VARIANTS, 0.052), "v1": 0.057})
    judgement = judge(run, AgainstRun(base, run))
    (shift,) = judgement.shifts.values()
    assert shift == pytest.approx(math.log(1.04), abs=0.004)
    assert [found.place.variant for found in judgement.of(Outcome.SLOWER)] == ["v1"]


def test_controls_are_steady_cases_of_the_suspects_device(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v1": 0.06, "v2": 0.04, "v3": None})
    judgement = judge(run, AgainstRun(base, run))
    wanted = suspects(judgement, 5)
    chosen = controls(judgement, wanted)
    assert [record.identity.variant for record in wanted] == ["v1"]
    names = [record.identity.variant for record in chosen]
    assert sorted(names) == ["v0", "v2", "v4", "v5", "v6", "v7"] and names[-1] == "v2", "the nearest first"
    assert controls(judgement, []) == []
    few = ("v0", "v1", "v4", "v5", "v6")
    judgement.findings = [found for found in judgement.findings if found.place.variant in few]
    assert controls(judgement, wanted) == [], "four are too few to tell"


@pytest.mark.parametrize(("workers", "told"), [(2, False), (3, True)])
def test_three_workers_on_each_side_are_enough(tmp_path: Path, workers: int, told: bool) -> None:
    """Whichever side has fewer."""
    for name, sides in (("a", (workers, 4)), ("b", (4, workers))):
        base = store(tmp_path / name / "base", [case(v, seed=1, workers=sides[0]) for v in VARIANTS])
        run = store(tmp_path / name / "now", [case(v, seed=2, workers=sides[1]) for v in VARIANTS], 1)
        judgement = judge(run, AgainstRun(base, run))
        assert all((found.ratio is not None) is told for found in judgement.findings)
        assert told or judgement.findings[0].why.startswith("measured by 2 fresh workers; 3 on each side are needed")


@pytest.mark.parametrize(("nights", "told"), [(2, False), (3, True)])
def test_three_nights_are_enough(tmp_path: Path, nights: int, told: bool) -> None:
    for number in range(nights):
        add(store(tmp_path / f"n{number}", [case(v, seed=number) for v in VARIANTS], number), tmp_path / "h")
    run = store(tmp_path / "now", [case(v, seed=9) for v in VARIANTS], 9)
    judgement = judge(run, AgainstNights(History(tmp_path / "h"), run, 7))
    assert all((found.ratio is not None) is told for found in judgement.findings)
    assert told or judgement.findings[0].why == "2 nights of this series; 3 are needed"


def test_the_worst_of_one_outcome_comes_first(tmp_path: Path) -> None:
    base, run = runs(tmp_path, {"v1": 0.055, "v4": 0.06, "v6": 0.0525})
    judgement = judge(run, AgainstRun(base, run))
    assert [found.place.variant for found in judgement.of(Outcome.SLOWER)] == ["v4", "v1", "v6"]
    ratios = [found.ratio.value for found in judgement.of(Outcome.SAME) if found.ratio]
    assert ratios == sorted(ratios)


def test_a_failure_says_whether_it_is_new(tmp_path: Path) -> None:
    crashed = data.record("v0", status=Status.CRASHED)
    base = store(tmp_path / "base", [crashed, *(case(v, seed=1) for v in VARIANTS[1:])])
    now = [crashed, data.record("v1", status=Status.CRASHED), *(case(v, seed=2) for v in VARIANTS[2:])]
    unknown = [data.record("new", status=Status.CRASHED), data.record("gone", status=Status.UNSUPPORTED)]
    run = store(tmp_path / "now", [*now, *unknown], 1)
    judgement = judge(run, AgainstRun(base, run))
    assert outcomes(judgement)["v0"] is Outcome.NO_RESULT and finding(judgement, "v0").why.endswith(" (before, too)")
    assert outcomes(judgement)["v1"] is Outcome.FAILED and not finding(judgement, "v1").why.endswith(" (before, too)")
    assert outcomes(judgement)["new"] is Outcome.FAILED and outcomes(judgement)["gone"] is Outcome.NO_RESULT
    assert not finding(judgement, "gone").why.endswith(" (before, too)")


def test_five_controls_are_enough_and_are_of_the_suspects_device(tmp_path: Path) -> None:
    sides = []
    for folder, slow in (("base", 0.05), ("now", 0.06)):
        here = [case(v, slow if v == "v1" else 0.05, seed=len(folder), device=data.INTEL) for v in VARIANTS[:6]]
        there = [case(v, 0.05, seed=len(folder), device=data.POCL) for v in VARIANTS]
        sides.append(store(tmp_path / folder, [*here, *there], len(sides)))
    judgement = judge(sides[1], AgainstRun(*sides))
    chosen = controls(judgement, suspects(judgement, 5))
    assert {record.identity.devices[0] for record in chosen} == {data.INTEL} and len(chosen) == 5


def test_what_has_no_ratio_stands_among_what_has_not_changed(tmp_path: Path) -> None:
    loud = case("v0", 0.05).model_copy(update={"status": Status.CONTENDED})
    base, run = runs(tmp_path, {"v0": loud, "v1": 0.0508})
    judgement = judge(run, AgainstRun(base, run))
    listed = [found.place.variant for found in judgement.of(Outcome.CANNOT_TELL)]
    assert listed.index("v1") < listed.index("v0")
