"""Signals that ask a run to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from perfport.model.errors import Stopped
from perfport.run.signals import ASKING, heeded


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    """Each test starts from the default handlers, also where the tests themselves run under nohup."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ASKING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ASKING)
def test_a_signal_ends_what_goes_on(number: signal.Signals) -> None:
    closed = []
    with pytest.raises(Stopped, match=f"stopped by {number.name}") as stopped, heeded():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            for again in ASKING:  # a closed terminal brings more than one
                os.kill(os.getpid(), again)
            closed.append(True)
    assert closed and stopped.value.code == 128 + number
    assert all(signal.getsignal(other) is signal.SIG_DFL for other in ASKING)


def test_what_is_ignored_or_handled_stays_so() -> None:
    def handler(*_: object) -> None:
        pass

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    signal.signal(signal.SIGTERM, handler)  # a job of a batch system
    with heeded():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGTERM) is handler
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is handler
