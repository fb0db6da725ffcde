"""Executions that are verified while they are timed: how many, which, and what comes of those that fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfport.model.errors import UsageError
from perfport.run.worker import audit
from perfport.run.worker.audit import Audit


class Recorder:
    """A built variant whose executions leave what is given; a NaN does not pass, a text is raised."""

    def __init__(self, *left: Any) -> None:
        self.left, self.poisoned, self.verified = list(left), 0, 0
        self.setup = self.device = self.variant = self

    def launch(self) -> None: ...

    def finish(self) -> None: ...

    def poison(self) -> None:
        self.poisoned += 1

    def outputs(self) -> dict[str, np.ndarray]:
        value = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(value, str):
            raise UsageError(value)
        return {"y": np.array([value])}

    def verify(self, outputs: dict[str, np.ndarray]) -> Any:
        self.verified += 1
        return type("Verification", (), {"passed": bool(np.isfinite(outputs["y"]).all())})()


def made(*left: Any) -> tuple[Recorder, list[bool], Audit]:
    recorder, passed = Recorder(*left), list[bool]()
    return recorder, passed, Audit(recorder, lambda outcome: passed.append(outcome.passed), lambda *_: None)  # type: ignore[arg-type]


def timed(checked: Audit, count: int) -> None:
    for _ in range(count):
        checked.prepare()
        checked.inspect()


def test_equal_outputs_are_compared_with_the_reference_once() -> None:
    recorder, passed, checked = made(1.0)
    checked.execute()
    checked.complete(60)
    assert checked.executions == audit.EXECUTIONS == recorder.poisoned and recorder.verified == 1 and passed == [True]


def test_each_wrong_execution_is_told() -> None:
    _, passed, checked = made(1.0, 1.0, np.nan, 1.0, np.nan, 1.0)
    for _ in range(6):
        checked.execute()
    assert passed == [True, False, False]


def test_beyond_the_least_number_it_is_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _, checked = made(1.0)
    drawn: list[int] = []
    monkeypatch.setattr(audit.secrets, "randbelow", lambda n: drawn.append(n) or len(drawn) % n)
    checked.executions = audit.EXECUTIONS
    timed(checked, 3 * audit.EVERY)
    assert checked.executions == audit.EXECUTIONS + 3 and set(drawn) == {audit.EVERY}
    assert recorder.poisoned == 3 * audit.EVERY, "whether it is compared or not"


def test_comparing_takes_no_longer_than_executing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, checked = made(1.0)
    clock = iter(range(0, 10**9, 10))  # each reading 10 s later: as long to execute as to compare
    monkeypatch.setattr(audit.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(audit.secrets, "randbelow", lambda n: 1)
    timed(checked, 5)
    assert checked.executions == 5
    checked._comparing += 1000
    timed(checked, 5)
    assert checked.executions == 5


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
