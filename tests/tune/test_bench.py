"""What the measuring process keeps between configurations, and what it verifies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tunable_workload as tunable

from perfport.measure import sampling
from perfport.measure.sampling import Sampler
from perfport.model.device import DeviceInfo
from perfport.model.record import Status
from perfport.run.messages import StepStarted
from perfport.tune.bench import Bench, Contest
from perfport.tune.contest import Contender
from perfport.workload import Built

FAST, SLOW = {"turns": 4, "fault": "none"}, {"turns": 512, "fault": "none"}


@pytest.fixture
def told() -> list[StepStarted]:
    return []


@pytest.fixture
def bench(
    tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: dict[str, str], told: list[StepStarted],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", no_ceilings["XDG_CACHE_HOME"])
    made = Bench(opencl_infos[0], [str(tunable.write(tmp_path))], told.append)
    yield made
    made._close()


RIVAL = "building what others are measured beside"


def contest(config: dict[str, Any], rival: dict[str, Any] | None = None, **change: Any) -> Contest:
    what = {"workload": "tunable", "problem": "double", "variant": "turns", "preset": "quick"}
    values = {"parameters": {"n": 20000}, "seed": 1, "cache": "warm", "config": config, "rival": rival}
    return Contest(**{**what, **values, **change})


def test_inputs_and_the_best_are_made_once(bench: Bench, told: list[StepStarted], tmp_path: Path) -> None:
    first = bench.serve(contest(FAST))
    assert first.status is Status.OK and first.ratio and len(first.times) >= 7 and first.took
    assert 0.5 < first.ratio.value < 2, "beside itself"
    for _ in range(2):
        again = bench.serve(contest(SLOW, FAST))
        assert again.status is Status.OK and again.ratio and again.ratio.low > 1
        assert len(again.times) < 7 and again.reason
    steps = [each.step for each in told]
    assert steps.count("making inputs") == 1 and steps.count(RIVAL) == 1
    assert tunable.built(tmp_path / "tunable") == ["4 none 20000", "4 none 20000", "512 none 20000", "512 none 20000"]
    better = bench.serve(contest(FAST, SLOW))
    assert better.ratio and better.ratio.high < 1 and len(better.times) >= 7
    assert [each.step for each in told].count(RIVAL) == 2


class Flush:
    """In place of what displaces the caches: counts how often it is made, used and given back."""

    made: list[Flush]
    nbytes = 4096

    def __init__(self, device: Any) -> None:
        self.used, self.closed = 0, False
        Flush.made.append(self)

    def __call__(self) -> None:
        assert not self.closed
        self.used += 1

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def test_what_displaces_the_caches_is_made_once_for_a_problem(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    Flush.made = []
    monkeypatch.setattr(sampling, "CacheFlush", Flush)
    for config in (FAST, SLOW, FAST):
        assert bench.serve(contest(config, FAST, cache="cold")).status is Status.OK
    (cold,) = Flush.made
    assert cold.used > 20 and not cold.closed
    assert bench.serve(contest(FAST, FAST)).status is Status.OK, "warm"
    used = cold.used
    assert cold.closed and len(Flush.made) == 1
    assert bench.serve(contest(FAST, FAST, cache="cold")).status is Status.OK
    assert len(Flush.made) == 2 and cold.used == used
    bench._close()  # as before inputs of another problem are made
    assert Flush.made[1].closed


def test_what_cannot_be_made_again_is_not_used_closed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    Flush.made = []
    monkeypatch.setattr(sampling, "CacheFlush", Flush)
    assert bench.serve(contest(FAST, FAST, cache="cold")).status is Status.OK
    with monkeypatch.context() as patch:
        patch.setattr(Sampler, "__init__", lambda *_: 1 / 0)
        assert bench.serve(contest(FAST, FAST)).status is Status.CRASHED
    assert bench.serve(contest(FAST, FAST, cache="cold")).status is Status.OK
    assert [each.closed for each in Flush.made] == [True, False]


def test_the_hosts_clock_is_read_where_a_side_needs_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where the contest before needed it."""
    wanted = []
    monkeypatch.setattr(Sampler, "warm_up", lambda self, *_: wanted.append(self.need_wall))
    for host_driven in (False, True, False):
        monkeypatch.setattr(bench._workload("tunable").variant("double", "turns"), "host_driven", host_driven)
        assert bench.serve(contest(FAST, FAST)).status is Status.OK
    assert wanted == [False, False, True, True, False, False]


def test_beside_itself_nothing_is_cut_short(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    leads, done = [], Contender.done
    monkeypatch.setattr(Contender, "done", lambda self, targets: (leads.append(self.lead), done(self, targets))[1])
    assert bench.serve(contest(SLOW)).status is Status.OK
    assert set(leads) == {math.inf}
    leads.clear()
    assert bench.serve(contest(FAST, SLOW, lead=0.75)).status is Status.OK
    assert set(leads) == {0.75}


def test_a_wrong_result_is_found_each_time(bench: Bench) -> None:
    assert bench.serve(contest(FAST)).status is Status.OK
    for _ in range(2):
        wrong = bench.serve(contest({"turns": 4, "fault": "wrong"}, FAST))
        assert wrong.status is Status.WRONG and "max abs error 1" in wrong.reason and not wrong.times


def test_the_first_of_a_size_may_take_as_long_as_its_inputs_and_reference(
    bench: Bench, told: list[StepStarted]
) -> None:
    for _ in range(2):
        assert bench.serve(contest(FAST)).status is Status.OK
    steps = [(each.step, each.key is None) for each in told if each.step in ("building", "verifying", "sampling")]
    assert steps == [
        ("building", True), ("verifying", True), ("sampling", False),
        ("building", False), ("verifying", False), ("sampling", False),
    ]  # fmt: skip


def test_equal_outputs_are_verified_once_for_each_precision_class(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[str] = []
    verify: Callable[..., Any] = Built.verify
    monkeypatch.setattr(
        Built, "verify", lambda built, outputs: (verified.append(built.variant.precision), verify(built, outputs))[1]
    )
    turns = bench._workload("tunable").variant("double", "turns")
    others = {name: type(name, (turns,), {"name": name, "precision": name}) for name in ("fp32", "tf32")}
    for name in (None, "fp32", "tf32", "tf32"):
        bench._workload("tunable").variants["double"]["other"] = others.get(name or "", turns)
        assert bench.serve(contest(FAST, variant="other" if name else "turns")).status is Status.OK
    assert verified == ["fp32", "tf32"]


def test_variants_of_one_problem_share_inputs_and_what_passed(bench: Bench, told: list[StepStarted]) -> None:
    assert bench.serve(contest(FAST)).status is Status.OK
    assert bench.serve(contest(FAST, FAST)).status is Status.OK
    other = bench.serve(contest({}, variant="bare"))  # has no such tunables: its kernel cannot be built
    assert other.status is Status.CRASHED and not bench._grounds["quick"].rivals
    assert bench.serve(contest(FAST, FAST)).status is Status.OK
    steps = [each.step for each in told]
    assert steps.count("making inputs") == 1 and steps.count(RIVAL) == 2


def test_sizes_have_inputs_of_their_own(bench: Bench, told: list[StepStarted]) -> None:
    for _ in range(2):
        assert bench.serve(contest(FAST)).status is Status.OK
        assert bench.serve(contest(FAST, preset="more", parameters={"n": 40000})).status is Status.OK
    assert [each.step for each in told].count("making inputs") == 2


@pytest.mark.parametrize(
    ("config", "change", "status"),
    [
        ({"turns": 4, "fault": "no_compile"}, {}, Status.COMPILE_ERROR),
        (FAST, {"parameters": {"n": "many"}}, Status.CRASHED),
        (FAST, {"variant": "gone"}, Status.UNSUPPORTED),
    ],
)
def test_what_goes_wrong_is_told(bench: Bench, config: dict[str, Any], change: dict[str, Any], status: Status) -> None:
    outcome = bench.serve(contest(config, **change))
    assert outcome.status is status and outcome.reason and outcome.log
