"""Executions that are verified while they are timed: how many, which, on which inputs, and what comes of failures."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from perfport.model.errors import RefusedError, UsageError
from perfport.run.worker import audit
from perfport.run.worker.audit import Audit
from perfport.workload import Peer


class Recorder:
    """A built variant whose executions leave what is given; a NaN does not pass, a text is raised."""

    host = host_driven = False
    by_buffers = True
    inputs: ClassVar[dict[str, Any]] = {}

    def __init__(self, *left: Any) -> None:
        self.left_by, self.verified, self.reads = list(left), 0, 0
        self.hands: list[float] = []  # what is handed over beside it
        self.poisoned: list[bool] = []  # whether scratch was, too
        self.timed_ones = 0
        self.setup = self.device = self.variant = self

    def launch(self) -> None: ...

    def timed(self, execute: Any) -> None:
        self.timed_ones += 1
        execute()

    def finish(self) -> None: ...

    def poison(self, scratch: bool = False) -> None:
        self.poisoned.append(scratch)

    @property
    def buffers(self) -> list[Any]:
        """What the next execution leaves, as its own buffer."""
        self.value = self.left_by.pop(0) if len(self.left_by) > 1 else self.left_by[0]
        return [self.value]

    def left(self) -> dict[str, np.ndarray]:
        self.reads += 1
        return {"y": np.array([self.value])}

    def handed(self) -> dict[str, np.ndarray]:
        if isinstance(self.value, str):
            raise UsageError(self.value)
        return {"z": np.array([self.hands.pop(0)])} if self.hands else {}

    def verify(self, outputs: dict[str, np.ndarray], problem: Any) -> Any:
        self.verified += 1
        return type("Verification", (), {"passed": all(np.isfinite(value).all() for value in outputs.values())})()


class Inputs:
    """Shared inputs whose contents are a flag; ``changed`` are the comparisons that see a change."""

    can_exchange = True

    def __init__(self) -> None:
        self.held, self.history, self.compared, self.changed = False, list[bool](), 0, set[int]()
        self.problem = self.contents = self

    def checksums(self, buffers: list[Any]) -> list[int]:
        return [hash(str(value)) for value in buffers]

    def hold(self, drawn: bool) -> None:
        self.held = drawn
        self.history.append(drawn)

    def compare(self, used: Any) -> None:
        self.compared += 1
        if self.compared in self.changed:
            raise RefusedError("changed")


def made(*left: Any) -> tuple[Any, list[bool], Audit]:
    recorder, passed = Recorder(*left), list[bool]()
    built: Any = recorder
    inputs: Any = Inputs()
    return recorder, passed, Audit(built, inputs, lambda outcome: passed.append(outcome.passed), lambda *_: None)


def timed(checked: Audit, count: int) -> None:
    for _ in range(count):
        checked.prepare()
        checked.inspect()


def test_equal_outputs_are_compared_with_the_reference_once() -> None:
    recorder, passed, checked = made(1.0)
    checked.execute()
    checked.complete(60)
    assert checked.executions == audit.EXECUTIONS == 20 and recorder.verified == 1 and passed == [True]
    assert recorder.reads == 1, "equal contents are not read"
    assert recorder.poisoned == [True] * audit.EXECUTIONS, "outputs and scratch, and none after the last"
    assert 0 < recorder.timed_ones < audit.EXECUTIONS, "some behind the gate"


def test_what_is_handed_over_is_compared_each_time() -> None:
    recorder, passed, checked = made(1.0)
    recorder.hands = [2.0, 2.0, 3.0, np.nan, 3.0]
    for _ in range(5):
        checked.execute()
    assert passed == [True, True, False] and recorder.reads == 3


def test_each_wrong_execution_is_told() -> None:
    _, passed, checked = made(1.0, 1.0, np.nan, 1.0, np.nan, 1.0)
    for _ in range(6):
        checked.execute()
    assert passed == [True, False, False]


def test_beyond_the_least_number_it_is_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _, checked = made(1.0)
    drawn: list[int] = []
    monkeypatch.setattr(audit.secrets, "randbelow", lambda n: drawn.append(n) or len(drawn) % n)
    monkeypatch.setattr(audit, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    checked.executions = audit.EXECUTIONS
    timed(checked, 3 * 8)
    assert checked.executions == audit.EXECUTIONS + 3 and drawn == [8] * 3 * 8
    assert recorder.poisoned == [False] * 6 * 8, "before and after, whether it is compared or not"


@pytest.mark.parametrize(("comparing", "compared"), [(1, 20), (2, 11), (10, 3)])
def test_comparing_takes_no_longer_than_executing(
    monkeypatch: pytest.MonkeyPatch, comparing: int, compared: int
) -> None:
    """Of twenty executions of 1 s each, the n-th where comparing has taken no longer than n seconds."""
    recorder, _, checked = made(1.0)
    now = [1000]
    monkeypatch.setattr(audit, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(audit.secrets, "randbelow", lambda n: 1)
    handed = recorder.handed
    recorder.handed = lambda: (now.__setitem__(0, now[0] + comparing), handed())[1]
    for _ in range(20):
        checked.prepare()
        now[0] += 1
        checked.inspect()
    assert checked.executions == compared


def test_completing_ends_with_the_time_and_where_enough_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = itertools.count(0, 10)
    monkeypatch.setattr(audit, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    for before, after in ((0, 6), (audit.EXECUTIONS - 2, audit.EXECUTIONS), (audit.EXECUTIONS, audit.EXECUTIONS + 1)):
        _, _, checked = made(1.0)
        checked.executions = before
        checked.complete(60)
        assert checked.executions == after


def test_an_error_waits_for_the_end() -> None:
    _, _, checked = made("capacity", 1.0)
    timed(checked, 4)
    assert checked.executions == 1
    with pytest.raises(UsageError, match="capacity"):
        checked.complete(60)


def test_no_time_is_one_execution() -> None:
    _, _, checked = made(1.0)
    checked.complete(0)
    assert checked.executions == 1


def test_what_the_host_drives_is_never_gated() -> None:
    recorder, _, checked = made(1.0)
    recorder.host_driven = True
    checked.complete(60)
    assert recorder.timed_ones == 0


def test_no_execution_has_the_inputs_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, passed, checked = made(1.0)
    monkeypatch.setattr(audit.secrets, "randbelow", lambda n: 0)  # every execution is compared
    checked.exchange(timed=True)
    checked.execute()
    timed(checked, 4)
    inputs: Any = checked.inputs
    assert inputs.history == [True, False, False, True, False, True], "untimed: its own are put back"
    assert recorder.verified == 2 and passed == [True, True], "on each of the two"
    checked.complete(0)
    assert inputs.history[-2:] == [False, False] and checked.executions == 6, "the last is on its own"


def test_its_own_inputs_are_put_back_whatever_an_execution_raises() -> None:
    recorder, _, checked = made(1.0)
    checked.exchange(timed=True)

    def launch() -> None:
        raise RefusedError("planted")

    recorder.launch = launch
    with pytest.raises(RefusedError, match="planted"):
        checked.execute()
    assert checked.inputs.history == [True, False]  # type: ignore[attr-defined]


def test_timed_executions_keep_their_inputs_where_data_decide_time() -> None:
    _, _, checked = made(1.0)
    checked.exchange(timed=False)
    timed(checked, 3)
    checked.complete(0)
    assert checked.inputs.history == [False] * 3 + [True, False, False, False]  # type: ignore[attr-defined]


@pytest.mark.parametrize("reason", ["problem", "images", "peer"])
def test_inputs_that_do_not_come_by_buffers_alone_stay(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _, checked = made(1.0)
    if reason == "problem":
        monkeypatch.setattr(Inputs, "can_exchange", False)
    elif reason == "images":
        recorder.by_buffers = False
    else:
        recorder.variant = object.__new__(type("Any", (Peer,), {"__init__": lambda self, setup: None}))
    checked.exchange(timed=True)
    timed(checked, 3)
    assert not checked.exchanges and not any(checked.inputs.history)  # type: ignore[attr-defined]


def test_every_execution_is_held_to_leaving_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, checked = made(1.0)
    inputs: Any = checked.inputs
    inputs.changed = {3}
    monkeypatch.setattr(audit.secrets, "randbelow", lambda n: 1)
    checked.executions = audit.EXECUTIONS  # none is compared with the reference
    timed(checked, 4)
    assert inputs.compared == 4
    with pytest.raises(RefusedError, match="changed"):
        checked.complete(0)
