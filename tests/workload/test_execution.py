"""Running a variant once: order of what happens, statuses of errors, buffers given back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from perfport.backend.offline import OfflineDevice, cuda_info
from perfport.model.errors import (
    CompileError,
    DeviceMemoryError,
    InfrastructureError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
from perfport.model.record import Status
from perfport.workload import Built, Session, Variant, build, discover
from perfport.workload.execution import status_of

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CompileError("c"), Status.COMPILE_ERROR), (UnsupportedError("u"), Status.UNSUPPORTED),
        (UnavailableError("u"), Status.UNAVAILABLE), (DeviceMemoryError("m"), Status.OUT_OF_MEMORY),
        (MemoryError(), Status.OUT_OF_MEMORY), (UsageError("u"), Status.UNSUPPORTED),
        (InfrastructureError("i"), Status.CRASHED), (ValueError("v"), Status.CRASHED),
    ],
)  # fmt: skip
def test_each_error_has_its_status(error: Exception, status: Status) -> None:
    assert status_of(error) is status


def test_outputs_are_poisoned_before_the_launch_and_compared_after_it() -> None:
    order: list[str] = []

    class Recorder:
        """Device, setup and variant in one."""

        @property
        def device(self) -> Recorder:
            return self

        def __getattr__(self, name: str) -> Any:
            return lambda *given: order.append(name) or (given[0] if given else "results")

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        order.append("in")
        yield
        order.append("out")

    recorder = cast(Any, Recorder())
    assert Built(recorder, recorder).execute(around) == "results"
    assert order == ["poison", "in", "launch", "out", "finish", "results", "verify"]


class Greedy(Variant):
    """Allocates and then fails."""

    name = "greedy"
    freed: list[str] = []

    def __init__(self, setup: Any) -> None:
        setup.buffers.append(type("B", (), {"free": lambda self: Greedy.freed.append("freed")})())
        assert setup.tunables == {"a": 1} and setup.profile == {"P": 2}
        raise DeviceMemoryError("planted")


@pytest.fixture
def session() -> Session:
    """A problem of the faulty workload, on a device that only compiles."""
    faulty = discover([DATA / "faulty"])["faulty"]
    problem = faulty.problem("double")
    return Session(OfflineDevice(cuda_info("sm_90")), problem(problem.Parameters(n=3), 1), faulty.folder)  # type: ignore[arg-type]


def test_a_variant_that_cannot_be_built_gives_its_buffers_back(session: Session) -> None:
    with pytest.raises(DeviceMemoryError, match="planted"):
        build(Greedy, session, {"a": 1}, {"p": 2})
    assert Greedy.freed == ["freed"]


def test_what_the_device_lacks_is_known_before_anything_is_built(session: Session) -> None:
    needy = type("Needy", (Greedy,), {"needs": ("teleport",)})
    with pytest.raises(UnsupportedError, match="needs teleport"):
        build(needy, session, {}, {})
