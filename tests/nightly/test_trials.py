"""What `perfport check` makes of simulated nights: moderated variances, run effects, shifts, false discoveries."""

from __future__ import annotations

import math

import numpy as np
import pytest
import simulated_nights as simulated
from scipy.stats import t

from perfport.nightly.base import Before
from perfport.nightly.finding import Finding, Outcome
from perfport.nightly.night import Change
from perfport.nightly.trials import PairedTrial, Trial, settle

CASES = 100
SOURCE = Change("source", "a1b2c3d", "c3d4e5f", ("rows.cl",))


def finding(case: int = 0) -> Finding:
    """A case that is not judged yet."""
    series = f'["nightly","w","p",{{"n":{case}}},"v",{{}},["cuda:nvidia:0"],["H200"],"cuda",null,"fp32"]'
    return Finding(series, Outcome.CANNOT_TELL, threshold=0.02)


def test_a_case_against_a_run_is_students_test_with_pooled_variance() -> None:
    before, now = [0.0, 0.01, 0.02], [0.03, 0.05, 0.04, 0.06]
    trial = Trial(finding(), Before("run", before), now)
    settle([trial])
    pooled = (np.var(before, ddof=1) * 2 + np.var(now, ddof=1) * 3) / 5
    error = math.sqrt(pooled * (1 / 3 + 1 / 4))
    ratio = trial.finding.ratio
    assert ratio and math.log(ratio.value) == pytest.approx(-0.035)
    assert trial.finding.before == pytest.approx(math.exp(0.01))
    assert math.log(ratio.high / ratio.value) == pytest.approx(t.ppf(0.975, 5) * error)
    assert math.log(ratio.value / ratio.low) == pytest.approx(t.ppf(0.975, 5) * error)
    assert trial.finding.p_slower == pytest.approx(t.sf(0.035 / error, 5))
    assert trial.finding.p_faster == pytest.approx(t.cdf(0.035 / error, 5))


def test_sides_measured_in_turn_are_students_test_of_their_differences() -> None:
    base, now = [0.0, 0.3, 0.1, 0.2], [0.03, 0.34, 0.12, 0.23]
    trial = PairedTrial(finding(), Before("run", base), now)
    settle([trial])
    error = float(np.std([0.03, 0.04, 0.02, 0.03], ddof=1)) / 2
    ratio = trial.finding.ratio
    assert ratio and math.log(ratio.value) == pytest.approx(-0.03)
    assert math.log(ratio.high / ratio.value) == pytest.approx(t.ppf(0.975, 3) * error)
    assert trial.finding.p_slower == pytest.approx(t.sf(0.03 / error, 3)) and trial.finding.outcome is Outcome.SLOWER
    assert trial.finding.now == pytest.approx(math.exp(0.18)) and trial.finding.before == pytest.approx(math.exp(0.15))


def test_what_is_common_to_sides_measured_in_turn_is_their_code() -> None:
    """All cases are slower in the same minutes: no shift of the machine, whatever shift the first hour had."""
    trials: list[Trial] = [
        PairedTrial(finding(case), Before("run", [0.0, 1e-3, 2e-3]), [0.05, 0.051, 0.0521]) for case in range(8)
    ]
    others = steady(0.04)
    for case, trial in enumerate(others, 8):
        trial.finding.series = finding(case).series
    for order in (trials + others, others + trials):
        for trial in others:
            trial.first = [0.04 + level for level in (-1e-3, 0.0, 1e-3)]
        assert settle(order) == {trials[0].finding.place.site: pytest.approx(0.04)}
        assert [trial.finding.outcome.value for trial in trials] == ["slower"] * 8


@pytest.mark.parametrize("now", [[0.05], [0.05, 0.051], [0.0, 0.1]])
def test_a_case_against_nights_lies_where_a_night_may_lie(now: list[float]) -> None:
    """Nights vary by their own variance; workers that scatter more tonight count instead."""
    before = [0.0, 0.01, 0.02, 0.01]
    trial = Trial(finding(), Before("nights", before, nights=True), now)
    settle([trial])
    between = np.var(before, ddof=1)
    within = np.var(now, ddof=1) / 2 if len(now) > 1 else 0.0
    error = math.sqrt(between / 4 + max(between, within))
    ratio = trial.finding.ratio
    assert ratio and math.log(ratio.high / ratio.value) == pytest.approx(t.ppf(0.975, 3) * error)


@pytest.mark.parametrize(("shift", "outcome"), [(0.03, "slower"), (0.019, "same"), (-0.019, "same"), (-0.03, "faster")])
def test_a_change_counts_beyond_the_threshold_alone(shift: float, outcome: str) -> None:
    trial = Trial(finding(), Before("run", [0.0, 1e-4, 2e-4]), [shift, shift + 1e-4, shift + 2e-4])
    settle([trial])
    assert trial.finding.outcome == outcome


def test_one_case_in_twenty_is_the_limit() -> None:
    """The rate is 5 %: a p-value of 4 % alone is a discovery, one of 6 % a suspicion, and one of 21 % neither."""
    for p, outcome in (
        (0.04, Outcome.SLOWER), (0.06, Outcome.SUSPECTED), (0.19, Outcome.SUSPECTED), (0.21, Outcome.CANNOT_TELL)
    ):  # fmt: skip
        error = 0.03 / t.isf(p, 4)
        spread = error / math.sqrt(2 / 3)
        trial = Trial(finding(), Before("run", [-spread, 0.0, spread]), [0.03 - spread, 0.03, 0.03 + spread])
        settle([trial])
        assert trial.finding.p_slower == pytest.approx(p) and trial.finding.outcome is outcome


def steady(shift: float, cases: int = 8, again: float | None = None) -> list[Trial]:
    """Cases of which nothing changed but the machine: before, now, and measured again."""
    levels = [-1e-3, 0.0, 1e-3]
    return [
        Trial(
            finding(case), Before("run", levels), [shift + level for level in levels],
            [] if again is None else [again + level for level in levels],
        )
        for case in range(cases)
    ]  # fmt: skip


def test_a_shift_of_the_machine_is_told_once_and_taken_out() -> None:
    trials = steady(0.04)
    trials[0].first = [value + 0.05 for value in trials[0].first]
    shifts = settle(trials)
    assert shifts == {trials[0].finding.place.site: pytest.approx(0.04)}
    assert [trial.finding.outcome.value for trial in trials] == ["slower"] + ["same"] * 7
    ratio = trials[0].finding.ratio
    assert ratio and math.log(ratio.value) == pytest.approx(-0.05)


def test_what_was_measured_again_is_held_to_the_shift_of_its_own_hour() -> None:
    trials = steady(-0.05, again=0.03)
    settle(trials)
    assert {trial.finding.outcome for trial in trials} == {Outcome.SAME}
    trials = [*steady(0.04)[:6], *steady(0.04, again=0.04)[6:]]
    settle(trials)
    assert {trial.finding.outcome for trial in trials} == {Outcome.SAME}, "without controls the shift has lasted"


def test_suspects_are_no_controls() -> None:
    """Ten cases are slower and were measured again beside five that are not: the machine has not shifted."""
    trials = [*steady(0.0, 12), *steady(0.0, 5, again=0.0), *steady(0.05, 10, again=0.05)]
    for case, trial in enumerate(trials):
        trial.finding.series = finding(case).series
    settle(trials)
    assert [trial.finding.outcome.value for trial in trials] == ["same"] * 17 + ["slower"] * 10


def test_cases_with_a_new_source_are_judged_and_tell_nothing_of_the_machine() -> None:
    changed = Before("run", [-1e-3, 0.0, 1e-3], events=[SOURCE])
    trials = steady(0.05)
    for trial in trials:
        trial.before = changed
    assert list(settle(trials).values()) == [0.0]
    assert {trial.finding.outcome for trial in trials} == {Outcome.SLOWER}


def test_what_a_change_does_to_most_cases_is_no_scatter_of_runs() -> None:
    """Ten cases with a new source are slower by 5 to 50 %: six unchanged ones say that runs agree."""
    trials = steady(0.0, 16)
    for case, trial in enumerate(trials[:10], 1):
        trial.before = Before("run", [-1e-3, 0.0, 1e-3], events=[SOURCE])
        trial.first = [value + 0.05 * case for value in trial.first]
    settle(trials)
    assert [trial.finding.outcome.value for trial in trials] == ["slower"] * 10 + ["same"] * 6


RUN, IN_TURN, THREE, SEVEN, SOURCE_CHANGED, SOURCE_IN_TURN, DRIVER_CHANGED = simulated.BASES
#: What no base of stored times can tell from a slow-down: only both sides in turn do (docs/nightly.md).
TRACTABLE = [name for name in simulated.MACHINES if name != "two modes of runs"]


@pytest.mark.parametrize("name", simulated.MACHINES)
def test_at_most_one_red_night_in_twenty_is_false_where_both_sides_are_measured_in_turn(name: str) -> None:
    rng = np.random.default_rng(len(name))
    nights = [simulated.night(rng, simulated.MACHINES[name], CASES, IN_TURN) for _ in range(36)]
    assert sum(night.red > 0 for night in nights) <= 5, "as below"


@pytest.mark.parametrize("name", TRACTABLE)
@pytest.mark.parametrize(
    "bases", [(RUN, THREE, SEVEN), (SOURCE_CHANGED, SOURCE_IN_TURN, DRIVER_CHANGED)], ids=["calm", "events"]
)
def test_at_most_one_red_night_in_twenty_is_false(name: str, bases: tuple[simulated.Base, ...]) -> None:
    """Against a run, three nights and seven nights; across a changed source file and a changed driver."""
    rng = np.random.default_rng(len(name))
    nights = [simulated.night(rng, simulated.MACHINES[name], CASES, base) for base in bases for _ in range(12)]
    red = sum(night.red > 0 for night in nights)
    assert red <= 5, "six or more of 36 have a probability of 0.8 % where one in twenty is red"


@pytest.mark.parametrize(("name", "base", "slowdown", "seen"), [
    ("workers alone", IN_TURN, 0.05, 0.95), ("common shifts", IN_TURN, 0.05, 0.95),
    ("random walks", IN_TURN, 0.05, 0.9), ("long steps", IN_TURN, 0.05, 0.95), ("run effects", IN_TURN, 0.1, 0.9),
    ("all of it", IN_TURN, 0.1, 0.9),
    ("workers alone", RUN, 0.05, 0.95), ("workers alone", SEVEN, 0.05, 0.95), ("common shifts", RUN, 0.05, 0.95),
    ("common shifts", SEVEN, 0.05, 0.95), ("run effects", RUN, 0.1, 0.9), ("all of it", SEVEN, 0.1, 0.9),
    ("workers alone", SOURCE_CHANGED, 0.05, 0.95), ("common shifts", SOURCE_CHANGED, 0.05, 0.95),
    ("run effects", SOURCE_IN_TURN, 0.05, 0.9), ("workers alone", DRIVER_CHANGED, 0.05, 0.95),
    ("common shifts", DRIVER_CHANGED, 0.1, 0.9),
])  # fmt: skip
def test_a_slow_down_is_seen(name: str, base: simulated.Base, slowdown: float, seen: float) -> None:
    """Also one that came with an event of an earlier night: it stays seen."""
    rng = np.random.default_rng(5)
    found = [simulated.night(rng, simulated.MACHINES[name], CASES, base, 10, slowdown) for _ in range(4)]
    assert sum(night.seen for night in found) >= seen * 4 * 10
    assert sum(night.red for night in found) <= 4  # one in twenty of what is reported may be false
