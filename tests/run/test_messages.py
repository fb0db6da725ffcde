"""Messages cross the process boundary whole, and every kind of them is one that the parent knows."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, is_dataclass
from typing import Any, get_args

import pytest
import report_data as data

from perfport.model.record import Status
from perfport.run import messages
from perfport.run.messages import (
    CaseFinished,
    CeilingsInUse,
    CeilingsProbed,
    DeviceLost,
    GroupFinished,
    Message,
    StepStarted,
    WorkerFailed,
)

EVERY: list[Any] = [
    StepStarted("key", "compile"), StepStarted(None, "opening the device"), CeilingsInUse("d", {"entries": {}}),
    CeilingsProbed({"when": "before"}), CaseFinished(data.record("fast")), GroupFinished(),
    WorkerFailed(Status.CRASHED, "Traceback"), DeviceLost(),
]  # fmt: skip


def test_every_kind_is_a_message() -> None:
    kinds = {cls for cls in vars(messages).values() if isinstance(cls, type) and is_dataclass(cls)}
    assert kinds == set(get_args(Message)) == {type(message) for message in EVERY}


@pytest.mark.parametrize("message", EVERY, ids=lambda message: type(message).__name__)
def test_messages_travel(message: Any) -> None:
    assert pickle.loads(pickle.dumps(message)) == message
    with pytest.raises(FrozenInstanceError):
        message.step = "another"
