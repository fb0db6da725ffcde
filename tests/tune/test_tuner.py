"""A variant's search on a device: faults cost one configuration, a kill costs what was in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest
import tunable_workload as tunable

from perfport.measure.ceilings import Ceilings, load_cached, store
from perfport.measure.intervals import Ratio
from perfport.model.device import DeviceInfo
from perfport.model.record import Interval, Status
from perfport.tune import log, profiles
from perfport.tune.bench import Contest, Outcome
from perfport.tune.log import Log, Result, Trial, read
from perfport.tune.space import Config, Space, name_of
from perfport.tune.target import Goal
from perfport.tune.tuner import Machine, Settings, Tuner
from perfport.workload import discover

pytestmark = pytest.mark.any_device

#: Seconds: much more than any step takes here, beside other tests, and less than the one that hangs.
TIMEOUT = 6.0


class Bench:
    """A workload, a device, and as many searches of them as are asked for."""

    def __init__(self, folder: Path, info: DeviceInfo) -> None:
        self.own = tunable.write(folder)
        self.folder, self.info = folder, info
        self.said: list[str] = []
        self.machines: list[Machine] = []

    def tuner(self, presets: dict[str, float] | None = None, timeout: float = TIMEOUT) -> Tuner:
        workloads = discover([self.own], only="tunable")
        variant = workloads["tunable"].variant("double", "turns")
        goal = Goal(workloads["tunable"], variant, self.info, presets or {"quick": 1.0})
        settings = Settings(1, "mean", "warm", timeout, [str(self.own)], lambda text: None, self.said.append)
        self.machines.append(Machine(self.info, settings, self.folder))
        return Tuner(goal, [], self.machines[-1], Log(self.folder), settings)


@pytest.fixture
def bench(
    tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_CACHE_HOME", no_ceilings["XDG_CACHE_HOME"])  # nothing is swept
    made = Bench(tmp_path, opencl_infos[0])
    yield made
    for machine in made.machines:
        machine.close()


def test_the_log_says_what_the_profile_had(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_config_dir", lambda name: str(tmp_path / "config" / name))
    bench.tuner()
    won = {"turns": 4, "fault": "none"}
    found = Result(
        device=bench.info.id, variant=tunable.VARIANT, presets={"quick": 1.0}, parameters=won, tried=1, of=9,
        gain=Interval(value=2.0, low=2.0, high=2.0),
    )  # fmt: skip
    profiles.update(profiles.own_file(bench.info), bench.info, {tunable.VARIANT: found}, 1)
    bench.folder = tmp_path / "later"
    bench.folder.mkdir()
    assert bench.tuner().held == won
    spaces = [each for folder in (tmp_path, bench.folder) for each in read(folder / "tune.jsonl")]
    assert [each.profile for each in spaces if isinstance(each, log.Space)] == [None, won]
    bench.folder = tmp_path
    again = bench.tuner()
    assert again.held == again.goal.defaults, "what it had when the search began, whatever was written since"


def trials(folder: Path) -> list[Trial]:
    return [each for each in read(folder / "tune.jsonl") if isinstance(each, Trial)]


def test_faults_cost_one_configuration_each_and_are_remembered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    held = "none", "hang", "crash", "wrong", "no_compile"
    restrict(monkeypatch, lambda config: config["fault"] in held[: 1 if config["turns"] > 4 else 5])
    tuner = bench.tuner()
    tuner.run(600.0)
    known = {(each.config["turns"], each.config["fault"]): each for each in trials(bench.folder)}
    assert len(known) == len(trials(bench.folder)) == 7 == tuner.tried
    expected = {
        "crash": Status.CRASHED,
        "hang": Status.TIMEOUT,
        "wrong": Status.WRONG,
        "no_compile": Status.COMPILE_ERROR,
    }
    for (_, fault), each in known.items():
        assert each.status is expected.get(fault, Status.OK), each
        assert (each.relative is None) == (fault in expected)
    assert "exited with code 3 (building)" in known[4, "crash"].reason
    assert "time-out of 6 s (building)" in known[4, "hang"].reason
    assert "undeclared" in known[4, "no_compile"].reason
    assert known[64, "none"].relative == 1.0 and known[64, "none"].ratio
    measured = {turns for turns, fault in known if fault == "none"}
    assert measured == {4, 64, 512} and tuner.standing.best and bench.said


def test_a_search_goes_on_and_measures_nothing_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without_faults(monkeypatch)
    first = bench.tuner({"quick": 1.0, "more": 1.0})
    count_down(first, 3, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        first.run(600.0)
    half = trials(bench.folder)
    assert len(half) == 3
    with (bench.folder / "tune.jsonl").open("a") as file:  # what a kill leaves
        file.write('{"kind":"trial","device":"opencl')
    second = bench.tuner({"quick": 1.0, "more": 1.0})
    assert second.spent == pytest.approx(first.spent) and second.tried == 2
    second.run(600.0)
    done = trials(bench.folder)
    assert done[:3] == half
    keys = [(name_of(each.config), each.preset) for each in done]
    assert len(keys) == len(set(keys))
    assert second.tried == 3 and second.standing.best == name_of({"turns": 4, "fault": "none"})
    lines = len(tunable.built(bench.own))
    bench.tuner({"quick": 1.0, "more": 1.0}).run(600.0)
    assert len(tunable.built(bench.own)) == lines and trials(bench.folder) == done


def test_times_are_told_over_the_reference_whatever_they_were_measured_beside(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a machine whose times are known: 1 us for each turn."""
    without_faults(monkeypatch)
    tuner = bench.tuner(timeout=60.0)
    limits = []

    def measure(contest: Contest, timeout: float) -> Outcome:
        limits.append(timeout)
        seconds = 1e-6 * contest.config["turns"]
        if contest.rival is None:
            return Outcome(Status.OK, seconds=seconds, took=4.0)
        value = contest.config["turns"] / contest.rival["turns"]
        assert contest.best == pytest.approx(1e-6 * contest.rival["turns"]) and contest.lead == 1.0
        return Outcome(Status.OK, seconds=seconds, ratio=Ratio(value=value, low=value, high=value), took=1.0)

    monkeypatch.setattr(tuner._machine, "measure", measure)
    tuner.run(600.0)
    known = {each.config["turns"]: each for each in trials(bench.folder)}
    assert {turns: each.relative for turns, each in known.items()} == {64: 1.0, 4: 4 / 64, 512: 512 / 64}
    assert tuner.spent == pytest.approx(2.0, abs=0.1), "the code's defaults, 4 s, are not of the budget"
    assert tuner.gain() == pytest.approx(16)
    assert limits == pytest.approx([60.0, 12.0, 12.0], abs=0.1)  # then not much longer than the slowest took


def test_what_the_place_in_a_round_does_for_newcomers_does_not_multiply(bench: Bench) -> None:
    """Whatever comes second takes 4 % less on this machine: 40 equal configurations, and one that is twice as fast."""
    tuner = bench.tuner()
    relative, beside = {}, set()
    for turns in (64, *range(100, 140), 4):
        config, seconds = {"turns": turns, "fault": "none"}, 0.5e-6 if turns == 4 else 1e-6
        rival = tuner._contest(config, "quick", {}).rival or config
        beside.add(rival["turns"])
        ratio = 0.96 * seconds / 1e-6
        outcome = Outcome(Status.OK, seconds=seconds, ratio=Ratio(value=ratio, low=ratio * 0.999, high=ratio * 1.001))
        trial = tuner._trial(config, "quick", outcome, 1.0)
        tuner.standing.add(trial)
        relative[turns] = trial.relative
    assert beside == {64}
    assert relative == pytest.approx({**dict.fromkeys(relative, 1.0), 4: 0.5})
    asked = tuner._contest({"turns": 200, "fault": "none"}, "quick", {})
    assert asked.rival == {"turns": 4, "fault": "none"} and asked.lead == pytest.approx(0.96)


def test_a_budget_that_is_used_up_ends_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code's defaults are not of it: what is made with them would leave nothing of a small one."""
    without_faults(monkeypatch)
    tuner = bench.tuner()
    tuner.run(1e-6)
    assert next(iter(trials(bench.folder))).config["turns"] == 64 and tuner.tried == 2
    spent = tuner.spent
    tuner.run(0.0)
    assert tuner.tried == 2 and bench.tuner().spent == pytest.approx(spent)


def test_a_configuration_whose_bound_is_too_high_is_not_timed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without_faults(monkeypatch)
    empty = load_cached(bench.info)
    assert empty
    entries = {"fp32_fma": {"value": 1e3, "low": 1e3, "high": 1e3, "unit": "FLOP/s", "samples": 9}}
    store(bench.info, Ceilings.model_validate({**empty.model_dump(), "entries": entries}))
    try:
        tuner = bench.tuner()
        tuner.run(600.0)
    finally:
        store(bench.info, empty)
    first, *rest = trials(bench.folder)
    assert first.share and first.share > 1 and not first.hopeless
    assert all(each.hopeless and "fp32_fma bound" in each.reason and not each.times for each in rest) and len(rest) == 2
    assert tuner.standing.ranked() == [name_of(tuner.goal.defaults)]


def without_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the tunable that plants faults, but for its default."""
    restrict(monkeypatch, lambda config: config["fault"] == "none")


def restrict(monkeypatch: pytest.MonkeyPatch, holds: Callable[[Config], bool]) -> None:
    """Leave out configurations."""
    whole = Goal.space.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Goal, "space", property(lambda goal: Space(whole(goal).values, holds)))


def count_down(tuner: Tuner, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt a search when the next trial after so many is begun."""
    measure: Callable[..., Any] = tuner._machine.measure
    left = [number]

    def counted(*given: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return measure(*given)

    monkeypatch.setattr(tuner._machine, "measure", counted)
