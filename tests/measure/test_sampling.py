"""Sampling, on a device that only pretends: order, stopping rule, budget, clocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from perfport.backend import Times
from perfport.measure import sampling
from perfport.measure.sampling import WARM_UP_LIMIT, Execution, Sampler, Subject, Targets


class FakeDevice:
    """Executes at once; spans come from the script, busy times only when asked to split (as on CUDA) if ``coarse``."""

    def __init__(self, spans: Iterator[float], coarse: bool = False) -> None:
        self.spans, self.coarse = spans, coarse
        self.timed_calls: list[tuple[bool, bool]] = []
        self.finished = 0

    def timed(self, execute: Callable[[], None], before: Any = None, split: bool = False) -> Times:
        self.timed_calls.append((before is not None, split))
        execute()
        span = next(self.spans)
        busy = None if self.coarse and not split else span / 2
        return Times(span, busy, 3, {} if busy is None else {"k": busy})

    def finish(self) -> None:
        self.finished += 1


def targets(**change: Any) -> Targets:
    return Targets(**{"cache": "warm", "min_samples": 5, "max_samples": 20, "time_budget": 1e6, **change})


def subject(key: str, execute: Callable[[], None], **flags: bool) -> Subject:
    """A case with one instance of its inputs."""
    return Subject(key, {"a": Execution(execute)}, **flags)


def sample(device: FakeDevice, wanted: Targets, subjects: list[Subject], need_wall: bool = False) -> list[str]:
    """Sample all; returns the keys in the order in which the subjects finish."""
    sampler = Sampler(device, wanted, need_wall)  # type: ignore[arg-type]
    return [subject.key for subject in sampler.run(subjects, lambda subject: None)]


def test_subjects_are_interleaved_and_announced_before_each_execution() -> None:
    log: list[str] = []
    subjects = [subject(key, lambda key=key: log.append(key)) for key in "ABC"]  # type: ignore[misc]
    sampler = Sampler(FakeDevice(itertools.repeat(1.0)), targets(max_samples=5), False)  # type: ignore[arg-type]
    list(sampler.run(subjects, lambda subject: log.append(f"({subject.key})")))
    assert log == ["(A)", "A", "(B)", "B", "(C)", "C"] * 5
    assert [subject.rounds for subject in subjects] == [[0, 1, 2, 3, 4]] * 3


def test_rounds_are_numbered_on() -> None:
    sampler = Sampler(FakeDevice(itertools.repeat(1.0)), targets(max_samples=5), False)  # type: ignore[arg-type]
    (done,) = sampler.run([subject("A", lambda: None)], lambda subject: None, first_round=40)
    assert done.rounds == [40, 41, 42, 43, 44]


def test_a_quiet_subject_stops_early_and_a_noisy_one_goes_on() -> None:
    noise = itertools.cycle([1.0, 3.0, 9.0])
    calm = subject("calm", lambda: None)
    loud = subject("loud", lambda: None)
    spans = (1.0 if i % 2 == 0 and i < 12 else next(noise) for i in itertools.count())
    order = sample(FakeDevice(spans), targets(), [calm, loud])
    assert order == ["calm", "loud"]
    assert len(calm.samples("span")) == 6 and len(loud.samples("span")) == 20
    assert calm.timing(targets()).target_met and not loud.timing(targets()).target_met
    assert loud.rounds == list(range(20)) and calm.rounds == loud.rounds[:6], "rounds pair what ran side by side"


def test_equal_samples_below_six_meet_no_target() -> None:
    one = subject("s", lambda: None)
    sample(FakeDevice(itertools.repeat(1.0)), targets(min_samples=3), [one])
    assert len(one.rounds) == 6 and one.timing(targets()).target_met
    few = subject("s", lambda: None)
    sample(FakeDevice(itertools.repeat(1.0)), targets(min_samples=3, max_samples=5), [few])
    assert len(few.rounds) == 5 and not few.timing(targets()).target_met


def test_samples_that_drift_are_sampled_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same spans, in an order that drifts and in one that does not."""
    spans = [1.0 + 0.002 * i for i in range(12)]
    mixed = [spans[i] for i in (5, 8, 3, 9, 1, 6, 10, 2, 7, 11, 4, 0)]
    taken = []
    for order in (spans, mixed):
        one = subject("s", lambda: None)
        sample(FakeDevice(iter(order)), targets(min_samples=12, max_samples=12, max_noise=0.011), [one])
        taken.append(one.timing(targets(max_noise=0.011)))
    drifting, steady = taken
    assert steady.target_met and not drifting.target_met
    assert drifting.summary["span"].median == steady.summary["span"].median


def test_the_budget_ends_sampling_but_not_before_the_least_number(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=10.0)
    monkeypatch.setattr(sampling.time, "perf_counter", lambda: next(clock))
    one = subject("s", lambda: None)
    sample(FakeDevice(itertools.cycle([1.0, 5.0])), targets(time_budget=25.0), [one])
    assert len(one.rounds) == 5
    one = subject("s", lambda: None)
    sample(FakeDevice(itertools.cycle([1.0, 5.0])), targets(time_budget=75.0), [one])
    assert len(one.rounds) == 8 and one.spent == 80.0


def test_clocks() -> None:
    device_one, host = subject("device", lambda: None), subject("host", lambda: None, host=True)
    driven = subject("driven", lambda: None, host_driven=True)
    sample(FakeDevice(itertools.repeat(1.0)), targets(max_samples=5), [device_one, host, driven], need_wall=True)
    assert (len(device_one.samples("span")), len(device_one.samples("wall")), device_one.rank) == (5, 5, "span")
    assert (host.samples("span"), host.rank) == ([], "wall") and len(host.samples("wall")) >= 5
    assert (driven.samples("span"), driven.rank) == ([], "wall") and len(driven.samples("wall")) >= 5
    alone = subject("alone", lambda: None)
    sample(FakeDevice(itertools.repeat(1.0)), targets(max_samples=5), [alone])
    assert alone.samples("wall") == [] and set(alone.timing(targets()).summary) == {"span", "busy"}


def test_host_work_is_not_waited_for_and_device_work_is() -> None:
    device = FakeDevice(itertools.repeat(1.0))
    sample(device, targets(min_samples=3, max_samples=3), [subject("h", lambda: None, host=True)])
    before = device.finished
    sample(device, targets(min_samples=3, max_samples=3), [subject("d", lambda: None, host_driven=True)])
    assert (before, device.finished - before) == (3, 6)


def test_busy_time_is_read_apart_where_it_would_disturb_the_span() -> None:
    device = FakeDevice(itertools.repeat(4.0), coarse=True)
    one = subject("s", lambda: None)
    sample(device, targets(max_samples=5), [one])
    assert device.timed_calls == [(False, False)] * 5 + [(False, True)] * 3
    taken = one.instances["a"]
    assert taken.busy == [2.0] * 3 and taken.kernels == {"k": 2.0} and len(taken.span) == 5
    fine = FakeDevice(itertools.repeat(4.0))
    sample(fine, targets(max_samples=5), [subject("s", lambda: None)])
    assert len(fine.timed_calls) == 5


def test_a_cold_cache_is_flushed_before_every_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    class Flush:
        nbytes = 1 << 27

        def __init__(self, device: Any) -> None: ...

        def __call__(self) -> None:
            log.append("flush")

    monkeypatch.setattr(sampling, "CacheFlush", Flush)
    device = FakeDevice(itertools.repeat(1.0))
    wanted = targets(cache="cold", min_samples=3, max_samples=3)
    sample(device, wanted, [one := subject("s", lambda: None)])
    assert device.timed_calls == [(True, False)] * 3 and one.timing(wanted).flushed_bytes == 1 << 27
    sample(device, wanted, [subject("h", lambda: log.append("run"), host=True)])
    assert log == ["flush", "run"] * 3
    sample(device, targets(max_samples=5), [warm := subject("w", lambda: None)])
    assert warm.timing(targets()).flushed_bytes is None


def test_warm_up_ends_when_times_agree_or_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(durations: Iterator[float], **change: Any) -> int:
        times = iter([0.0])
        sampler = Sampler(FakeDevice(times), targets(**change), False)  # type: ignore[arg-type]
        calls: list[int] = []
        monkeypatch.setattr(sampler, "_wall", lambda subject, one: calls.append(1) or next(durations))
        sampler.warm_up(subject("s", lambda: None), lambda one: None)
        return len(calls)

    assert count(itertools.repeat(1.0)) == 2
    assert count(iter([9.0, 4.0, 2.0, 1.99])) == 4
    assert count(itertools.cycle([1.0, 2.0])) == WARM_UP_LIMIT
    assert count(itertools.repeat(1.0), time_budget=2.0) == 1


@pytest.mark.parametrize(
    "bad", [{"max_noise": 0}, {"max_noise": 2}, {"min_samples": 2}, {"time_budget": 0}, {"cache": "hot"}, {"x": 1}]
)
def test_targets_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Targets(**bad)


def test_a_sample_of_several_instances_is_their_geometric_mean_and_each_is_kept_apart() -> None:
    log: list[str] = []
    spans = itertools.cycle([1.0, 2.0, 4.0])
    instances = {name: Execution(lambda name=name: log.append(name)) for name in "abc"}  # type: ignore[misc]
    one = Subject("s", instances)
    sample(FakeDevice(spans), targets(max_samples=5), [one])
    timing = one.timing(targets())
    assert timing.span == pytest.approx([2.0] * 5) and timing.rounds == [0, 1, 2, 3, 4]
    assert {name: found.samples for name, found in timing.instances.items()} == {
        "a": [1.0] * 5, "b": [2.0] * 5, "c": [4.0] * 5,
    }  # fmt: skip
    assert timing.instances["c"].summary.median == 4.0
    assert timing.kernels == {"k": pytest.approx(1.0)}
    assert log == ["a", "a", "b", "b", "c", "c"] * 5, "warm: each sample follows an execution on the same inputs"


def test_one_instance_is_not_told_apart_nor_executed_twice() -> None:
    log: list[str] = []
    one = subject("s", lambda: log.append("run"))
    sample(FakeDevice(itertools.repeat(1.0)), targets(max_samples=5), [one])
    assert one.timing(targets()).instances == {} and len(log) == 5


def test_an_instance_that_varies_keeps_the_case_sampled() -> None:
    """The stopping rule looks at the mean: noise of one instance of three counts."""
    spans = (value for value in itertools.cycle([1.0, 1.0, 1.0, 1.0, 1.0, 30.0]))
    one = Subject("s", {name: Execution(lambda: None) for name in "abc"})
    sample(FakeDevice(spans), targets(max_noise=0.01, max_samples=12), [one])
    assert len(one.rounds) == 12


def test_an_instance_of_no_duration_makes_no_case_crash() -> None:
    """A clock may be too coarse for a kernel that one instance hardly needs."""
    one = Subject("s", {name: Execution(lambda: None) for name in "ab"})
    sample(FakeDevice(itertools.cycle([1.0, 0.0])), targets(max_samples=5), [one])
    timing = one.timing(targets())
    assert timing.span == [0.0] * 5 and timing.kernels == {"k": 0.0}
